//! Connections: how many there may be, and how long one may take to say what it wants.

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
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
                    let talk = talk(router.clone(), patience, stream, peer, &connections);
                    tokio::spawn(async move {
                        talk.await;
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

/// One connection, until it ends. One that breaks has nobody left to tell.
fn talk(
    router: Router,
    patience: Patience,
    stream: TcpStream,
    peer: SocketAddr,
    connections: &GracefulShutdown,
) -> impl Future<Output = ()> + use<> {
    let inner = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        inner.call(request)
    });
    // Small answers are not held back to be sent together.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .serve_connection(TokioIo::new(stream), service);
    let connection = connections.watch(connection);
    async move { drop(connection.await) }
}
