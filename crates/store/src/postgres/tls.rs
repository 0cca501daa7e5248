//! TLS to PostgreSQL, with the settings of libpq: `sslmode`, `sslrootcert`, `sslcert`, `sslkey`.

use lukasa_model::{Error, ErrorCode, Result};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Encrypted;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};

/// How the server's certificate is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TlsMode {
    Disable,
    /// Encrypted if the server offers it, without a check. The default, as in libpq.
    #[default]
    Prefer,
    /// Always encrypted, without a check.
    Require,
    /// Always encrypted; the certificate must be signed by a trusted authority.
    VerifyCa,
    /// Like `VerifyCa`, and the certificate must be for the requested host.
    VerifyFull,
}

impl TlsMode {
    /// Parses a value of `sslmode`.
    pub fn parse(text: &str) -> Result<TlsMode> {
        Ok(match text {
            "disable" => TlsMode::Disable,
            "prefer" => TlsMode::Prefer,
            "require" => TlsMode::Require,
            "verify-ca" => TlsMode::VerifyCa,
            "verify-full" => TlsMode::VerifyFull,
            other => {
                return Err(Error::invalid(ErrorCode::InvalidUrl, format!("`{other}` is no sslmode"))
                    .hint("use disable, prefer, require, verify-ca or verify-full"));
            }
        })
    }

    /// The corresponding mode of the client library, which only knows whether to use TLS.
    pub fn wanted(self) -> SslMode {
        match self {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        }
    }
}

/// The TLS settings of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TlsSettings {
    pub mode: TlsMode,
    /// A file of trusted certificates, or `system` for those of the machine, which are the default.
    pub roots: Option<PathBuf>,
    /// Files of the client's certificate and key.
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

/// Encrypts connections; `None` disables TLS.
#[derive(Clone)]
pub(super) struct Tls(Option<Arc<ClientConfig>>);

impl Tls {
    /// Reads the certificates and keys that the settings name. Fails if a file is unreadable or the files do not match.
    pub fn new(wanted: &TlsSettings) -> Result<Tls> {
        if wanted.mode == TlsMode::Disable {
            return Ok(Tls(None));
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = verifier(wanted, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::internal(format!("TLS cannot be set up: {e}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match (&wanted.certificate, &wanted.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let chain = certificates(certificate)?;
                let key = PrivateKeyDer::from_pem_file(key).map_err(|e| unreadable(key, &e))?;
                builder.with_client_auth_cert(chain, key).map_err(|e| {
                    Error::invalid(
                        ErrorCode::InvalidCertificate,
                        format!("sslcert and sslkey do not fit together: {e}"),
                    )
                })?
            }
            _ => {
                return Err(Error::invalid(ErrorCode::InvalidUrl, "of sslcert and sslkey one is missing")
                    .hint("give both files, or neither"));
            }
        };
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Tls(Some(Arc::new(config))))
    }
}

fn unreadable(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::invalid(ErrorCode::InvalidCertificate, format!("`{}` cannot be read: {why}", path.display()))
        .hint("it must be a PEM file that this process may read")
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>);
    let all = all.map_err(|e| unreadable(path, &e))?;
    if all.is_empty() { Err(unreadable(path, &"it has no certificate")) } else { Ok(all) }
}

fn verifier(wanted: &TlsSettings, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>> {
    // As in libpq: naming a root implies verification.
    let mode = match (wanted.mode, &wanted.roots) {
        (TlsMode::Require, Some(_)) => TlsMode::VerifyCa,
        (mode, _) => mode,
    };
    if !matches!(mode, TlsMode::VerifyCa | TlsMode::VerifyFull) {
        return Ok(Arc::new(Unchecked(Arc::clone(provider))));
    }
    let mut roots = RootCertStore::empty();
    match wanted.roots.as_deref().filter(|path| *path != Path::new("system")) {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|e| unreadable(path, &e))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(Error::invalid(ErrorCode::InvalidCertificate, "there are no trusted certificates on this machine")
            .hint("name a file of them with sslrootcert"));
    }
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|e| Error::internal(format!("TLS cannot be set up: {e}")))?;
    Ok(if mode == TlsMode::VerifyFull { chain } else { Arc::new(ForAnyHost(chain)) })
}

/// Accepts any certificate: encrypted, but not protected against a man in the middle.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Checks who signed a certificate, but not for which host.
#[derive(Debug)]
struct ForAnyHost(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for ForAnyHost {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, TlsError> {
        match self.0.verify_server_cert(certificate, between, host, ocsp, now) {
            // The host name is checked last, so everything else is valid.
            Err(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = EncryptedStream;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        // A Unix socket has no host name, and TLS is not used for it.
        let host = if host.is_empty() { "localhost" } else { host };
        let host = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Handshake { config: self.0.clone(), host })
    }
}

pub(super) struct Handshake {
    config: Option<Arc<ClientConfig>>,
    host: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = EncryptedStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<EncryptedStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let config = self.config.ok_or_else(|| io::Error::other("TLS was not requested"))?;
            TlsConnector::from(config).connect(self.host, socket).await.map(EncryptedStream)
        })
    }
}

/// An encrypted connection.
pub(super) struct EncryptedStream(Encrypted<Socket>);

impl TlsStream for EncryptedStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for EncryptedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, to)
    }
}

impl AsyncWrite for EncryptedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
