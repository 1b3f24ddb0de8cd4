//! TLS to servers: which certificates are trusted.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use wayleave_store::{Detail, StoreError};

use crate::dsn::{ClientCertificate, TlsMode};

/// The TLS configuration for a mode; `None` if the mode disables TLS.
pub(crate) fn config(
    mode: TlsMode,
    authority: Option<&Path>,
    identity: Option<&ClientCertificate>,
) -> Result<Option<ClientConfig>, StoreError> {
    let provider = Arc::new(ring::default_provider());
    let failed = |error: rustls::Error| StoreError::Tls {
        detail: Detail::new(error, []),
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    Ok(match mode {
        TlsMode::Disable => None,
        TlsMode::Prefer | TlsMode::Require => Some(
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate { provider }))
                .with_no_client_auth(),
        ),
        TlsMode::VerifyFull => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(authorities(authority)?);
            let builder = builder.with_root_certificates(roots);
            Some(match identity {
                None => builder.with_no_client_auth(),
                Some(identity) => {
                    let chain = certificates(&identity.chain, "sslcert")?;
                    let key = private_key(&identity.key)?;
                    builder.with_client_auth_cert(chain, key).map_err(failed)?
                }
            })
        }
    })
}

/// The authorities to trust: those in the named file, or the machine's own.
pub(crate) fn authorities(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let Some(file) = file else {
        let found = rustls_native_certs::load_native_certs().certs;
        if found.is_empty() {
            let detail = Detail::from_static("this machine has no list of trusted authorities");
            return Err(StoreError::Tls { detail });
        }
        return Ok(found);
    };
    certificates(file, "sslrootcert")
}

/// The certificates in a PEM file that a parameter names.
fn certificates(
    file: &Path,
    parameter: &'static str,
) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let unreadable = || StoreError::Tls {
        detail: Detail::from_static(match parameter {
            "sslcert" => "the file `sslcert` names holds no readable PEM certificate",
            _ => "the file `sslrootcert` names holds no readable PEM certificate",
        }),
    };
    let found: Vec<_> = CertificateDer::pem_file_iter(file)
        .map_err(|_| unreadable())?
        .collect::<Result<_, _>>()
        .map_err(|_| unreadable())?;
    if found.is_empty() {
        Err(unreadable())
    } else {
        Ok(found)
    }
}

/// The private key in a PEM file.
fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, StoreError> {
    PrivateKeyDer::from_pem_file(file).map_err(|_| StoreError::Tls {
        detail: Detail::from_static("the file `sslkey` names holds no readable PEM private key"),
    })
}

/// Checks that the files of a client's certificate can be read.
pub(crate) fn check_identity(identity: &ClientCertificate) -> Result<(), StoreError> {
    certificates(&identity.chain, "sslcert")?;
    private_key(&identity.key).map(drop)
}

/// Whether an error comes from the TLS library, directly or inside an I/O error.
pub(crate) fn is_failure(error: &(dyn Error + 'static)) -> bool {
    let inside = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    error.is::<rustls::Error>()
        || inside.is_some_and(<dyn Error + Send + Sync>::is::<rustls::Error>)
}

/// Accepts any certificate, but still requires the server to prove that it holds the key.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
