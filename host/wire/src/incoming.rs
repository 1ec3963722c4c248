//! Accepts connections, a bounded number of them, and never waits for any one of them while it does.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::connection::Connection;

// Out of descriptors or memory, accepting fails at once and would spin; connections that end free some.
const PAUSE: Duration = Duration::from_millis(50);

/// How connections are taken in.
pub(crate) struct Incoming {
    pub tls: Option<Arc<ServerConfig>>,
    pub handshake: Duration,
    /// A permit is a connection.
    pub places: Arc<Semaphore>,
    /// No more connections.
    pub stop: CancellationToken,
    /// An end to those there are.
    pub closed: CancellationToken,
    /// To the server.
    pub to: mpsc::Sender<io::Result<Connection>>,
}

impl Incoming {
    /// Accepts until it is stopped. Handshakes under way then end with it.
    pub(crate) async fn run(self, listener: TcpListener) {
        let mut handshakes = JoinSet::new();
        let mut full = false;
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                Some(_) = handshakes.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, address)) => match self.places.clone().try_acquire_owned() {
                    Ok(place) => {
                        full = false;
                        handshakes.spawn(self.handshake(stream, address, place));
                    }
                    // Told once, not for each: whoever opens thousands of connections should not fill the log too.
                    Err(_) if full => {}
                    Err(_) => {
                        full = true;
                        warn!(%address, "no place for another connection, closing new ones");
                    }
                },
                Err(error) => {
                    warn!(%error, "cannot accept connections, trying again");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn handshake(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        place: tokio::sync::OwnedSemaphorePermit,
    ) -> impl Future<Output = ()> + use<> {
        let begun = Connection::begin(stream, address, self.tls.clone(), place, self.closed.clone());
        let (most, to) = (self.handshake, self.to.clone());
        async move {
            match timeout(most, begun).await {
                // A server that is gone takes no more; the connection is then dropped, which closes it.
                Ok(Ok(connection)) => drop(to.send(Ok(connection)).await),
                Ok(Err(error)) => debug!(%address, %error, "a connection came to nothing"),
                Err(_) => debug!(%address, "a connection did not begin in time"),
            }
        }
    }
}
