//! HTTP connections: how many may be open, and how long each phase of a request may take.

use super::tls::Encryption;
use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Timeouts for clients, the number of connections, and the size of imports.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// For all headers of a request, counted from when the server starts to wait. Idle connections are closed after
    /// this time.
    pub head: Duration,
    /// For a whole body; in bulk transfers, for each part.
    pub body: Duration,
    /// Largest body of an import, in bytes.
    pub import_bytes: u64,
    /// Connections at the same time. Further clients wait to be accepted.
    pub connections: usize,
    /// For requests in progress when the server stops.
    pub ending: Duration,
}

impl Default for ClientLimits {
    fn default() -> ClientLimits {
        ClientLimits {
            head: Duration::from_secs(30),
            body: Duration::from_secs(60),
            import_bytes: 1 << 30,
            connections: 8_192,
            ending: Duration::from_secs(10),
        }
    }
}

/// Pause after `accept` fails, for example because too many files are open.
const RELIEF: Duration = Duration::from_millis(100);

pub(super) async fn serve(
    router: Router,
    patience: ClientLimits,
    encryption: Option<Encryption>,
    listener: TcpListener,
    ended: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let (places, connections) = (Arc::new(Semaphore::new(patience.connections)), GracefulShutdown::new());
    let mut ended = pin!(ended);
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await.map_err(std::io::Error::other)?;
            listener.accept().await.map(|(stream, peer)| (place, stream, peer))
        };
        tokio::select! {
            accepted = accepted => match accepted {
                Ok((place, stream, peer)) => {
                    let talk = ClientConnection { router: router.clone(), patience, peer, ending: connections.watcher() };
                    let encryption = encryption.clone();
                    tokio::spawn(async move {
                        talk.begin(stream, encryption).await;
                        drop(place);
                    });
                }
                Err(_) => tokio::time::sleep(RELIEF).await,
            },
            () = &mut ended => break,
        }
    }
    drop(listener);
    // Endless streams would otherwise block the shutdown forever.
    let _ = tokio::time::timeout(patience.ending, connections.shutdown()).await;
    Ok(())
}

/// The state of one connection.
struct ClientConnection {
    router: Router,
    patience: ClientLimits,
    peer: SocketAddr,
    ending: Watcher,
}

impl ClientConnection {
    /// Serves one connection until it ends. Errors are dropped, because there is no client left to report them to.
    async fn begin(self, stream: TcpStream, encryption: Option<Encryption>) {
        // Small responses are sent at once.
        let _ = stream.set_nodelay(true);
        match encryption {
            None => self.go_on(stream).await,
            Some(Encryption(acceptor)) => {
                // A TLS handshake has the same time limit as the headers.
                if let Ok(Ok(stream)) = tokio::time::timeout(self.patience.head, acceptor.accept(stream)).await {
                    self.go_on(stream).await;
                }
            }
        }
    }

    async fn go_on(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let (inner, peer) = (TowerToHyperService::new(self.router), self.peer);
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            inner.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.patience.head)
            .serve_connection(TokioIo::new(stream), service);
        drop(self.ending.watch(connection).await);
    }
}
