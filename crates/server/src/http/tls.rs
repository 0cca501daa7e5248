//! HTTPS: the server's own certificate and key, read from files.

use lukasa_model::{Error, ErrorCode, Result};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Encrypts connections with the server's certificate.
#[derive(Clone)]
pub struct Encryption(pub(super) TlsAcceptor);

impl Encryption {
    /// Reads a certificate chain, the server's certificate first, and its private key; both PEM.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Encryption> {
        let unreadable = |path: &Path, why: &dyn std::fmt::Display| {
            Error::invalid(ErrorCode::InvalidCertificate, format!("`{}` cannot be read: {why}", path.display()))
                .hint("it must be a PEM file that this process may read")
        };
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
            .map_err(|e| unreadable(certificate, &e))?;
        if chain.is_empty() {
            return Err(unreadable(certificate, &"it has no certificate"));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|e| unreadable(key, &e))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::internal(format!("TLS cannot be set up: {e}")))?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|e| {
                Error::invalid(
                    ErrorCode::InvalidCertificate,
                    format!("`{}` is not the key of `{}`: {e}", key.display(), certificate.display()),
                )
            })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Encryption(TlsAcceptor::from(Arc::new(config))))
    }
}
