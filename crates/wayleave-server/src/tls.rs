//! The certificate of a listener, and its key.
//!
//! Certificates are renewed every few weeks, by any program, so the files are checked at every TLS
//! handshake, and read if they have changed. Unusable files never replace a working pair.

use std::{
    fmt,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use wayleave_project::settings::TlsFiles;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No certificate in the file.
    #[error("`serve.tls.cert`: no PEM certificate can be read from `{}`", file.display())]
    Certificate {
        /// The file.
        file: PathBuf,
    },
    /// No key in the file.
    #[error("`serve.tls.key`: no PEM private key can be read from `{}`", file.display())]
    Key {
        /// The file.
        file: PathBuf,
    },
    /// The certificate and the key do not belong together.
    #[error("`serve.tls`: the certificate and the key cannot be used together")]
    Pair(#[source] rustls::Error),
}

/// The TLS configuration of a listener, from the files of a project folder.
pub(crate) fn server(folder: &Path, files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let files = Files {
        cert: folder.join(&files.cert),
        key: folder.join(&files.key),
        provider: Arc::clone(&provider),
    };
    let shown = CertificateResolver::new(files)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(shown));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The paths of a certificate and its key.
struct Files {
    cert: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
}

/// Identifies one version of a file; `None` for a missing file.
type Stamp = Option<(u64, u64, u64, (i64, i64), (i64, i64))>;

impl Files {
    fn read(&self) -> Result<CertifiedKey, TlsError> {
        let chain: Option<Vec<_>> = CertificateDer::pem_file_iter(&self.cert)
            .ok()
            .and_then(|found| found.collect::<Result<_, _>>().ok());
        let chain =
            chain
                .filter(|chain| !chain.is_empty())
                .ok_or_else(|| TlsError::Certificate {
                    file: self.cert.clone(),
                })?;
        // The parse error is not reported: the file's text is the key.
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|_| TlsError::Key {
            file: self.key.clone(),
        })?;
        CertifiedKey::from_der(chain, key, &self.provider).map_err(TlsError::Pair)
    }

    fn stamps(&self) -> [Stamp; 2] {
        [&self.cert, &self.key].map(|file| {
            // Links are followed: a renewal often redirects one.
            let found = std::fs::metadata(file).ok()?;
            let modified = (found.mtime(), found.mtime_nsec());
            let changed = (found.ctime(), found.ctime_nsec());
            Some((found.dev(), found.ino(), found.size(), modified, changed))
        })
    }
}

/// Resolves to the last usable certificate.
struct CertificateResolver {
    files: Files,
    pair: ArcSwap<CertifiedKey>,
    /// The stamps of the files when they were last read, whatever their contents.
    read: Mutex<[Stamp; 2]>,
}

impl CertificateResolver {
    fn new(files: Files) -> Result<Self, TlsError> {
        // Stamped before reading, so that a change meanwhile is read again.
        let stamps = files.stamps();
        let pair = files.read()?;
        Ok(Self {
            files,
            pair: ArcSwap::from_pointee(pair),
            read: Mutex::new(stamps),
        })
    }

    fn renew(&self) {
        // If another connection is reloading, this one gets the current certificate.
        let Ok(mut read) = self.read.try_lock() else {
            return;
        };
        let stamps = self.files.stamps();
        if *read == stamps {
            return;
        }
        *read = stamps;
        match self.files.read() {
            Ok(pair) => {
                self.pair.store(Arc::new(pair));
                tracing::info!("a renewed certificate is in use");
            }
            Err(error) => {
                tracing::warn!(%error, "a renewed certificate cannot be used; the previous one stays in use");
            }
        }
    }
}

impl fmt::Debug for CertificateResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateResolver")
            .field("cert", &self.files.cert)
            .finish_non_exhaustive()
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.renew();
        Some(self.pair.load_full())
    }
}
