//! Connections: how many there may be, and how long one may take to say what it wants.

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

/// How long is waited for others, for how many, and how much they may send in bulk.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For all headers of a request, from the first moment of waiting for them; so idle connections end after this.
    pub head: Duration,
    /// For a whole body; where a body may be long, for each part of it.
    pub body: Duration,
    /// Largest body of an import, in bytes.
    pub import_bytes: u64,
    /// Connections at the same time; who comes after waits to be let in.
    pub connections: usize,
    /// For requests under way when serving ends.
    pub ending: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            head: Duration::from_secs(30),
            body: Duration::from_secs(60),
            import_bytes: 1 << 30,
            connections: 8_192,
            ending: Duration::from_secs(10),
        }
    }
}

/// Between attempts when no connection can be taken, as when too many files are open.
const RELIEF: Duration = Duration::from_millis(100);

pub(super) async fn serve(
    router: Router,
    patience: Patience,
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
                    let talk = Talk { router: router.clone(), patience, peer, ending: connections.watcher() };
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
    // Streams without an end would hold us up for ever.
    let _ = tokio::time::timeout(patience.ending, connections.shutdown()).await;
    Ok(())
}

/// What a connection needs to be talked on.
struct Talk {
    router: Router,
    patience: Patience,
    peer: SocketAddr,
    ending: Watcher,
}

impl Talk {
    /// One connection, until it ends. One that breaks has no other side left to report to.
    async fn begin(self, stream: TcpStream, encryption: Option<Encryption>) {
        // Small answers are not held back to be sent together.
        let _ = stream.set_nodelay(true);
        match encryption {
            None => self.go_on(stream).await,
            Some(Encryption(acceptor)) => {
                // Who takes longer than for headers does not mean to ask anything.
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
