//! The certificate a listener shows, and its key.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

use crate::settings::TlsFiles;

/// A certificate that cannot be shown.
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
    /// The two do not belong together.
    #[error("`serve.tls`: the certificate and the key cannot be used together")]
    Pair(#[source] rustls::Error),
}

/// How a listener encrypts, with the files of a project folder.
pub(crate) fn server(folder: &Path, files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let (cert, key) = (folder.join(&files.cert), folder.join(&files.key));
    let chain: Option<Vec<_>> = CertificateDer::pem_file_iter(&cert)
        .ok()
        .and_then(|found| found.collect::<Result<_, _>>().ok());
    let chain = chain
        .filter(|chain| !chain.is_empty())
        .ok_or(TlsError::Certificate { file: cert })?;
    // What is wrong with the file is not told: its text is the key.
    let key = PrivateKeyDer::from_pem_file(&key).map_err(|_| TlsError::Key { file: key })?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let mut config = builder
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
