//! Makes a connection: the rule about plaintext first, then TCP, then TLS, all in one bounded time.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use crate::address::Address;
use crate::error::{Result, WireError};
use crate::plaintext::PlaintextRule;
use crate::tls;

/// Everything that a connection is made from; the client keeps it to make the next when one breaks.
pub(crate) struct Dial {
    pub address: Address,
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    pub plaintext: PlaintextRule,
    pub most: Duration,
}

impl Dial {
    pub(crate) async fn dial(&self) -> Result<Dialled> {
        let address = &self.address.shown;
        match timeout(self.most, self.connect()).await {
            Ok(connected) => connected,
            Err(_) => Err(WireError::TimedOut { what: format!("no connection to {address} within {:?}", self.most) }),
        }
    }

    async fn connect(&self) -> Result<Dialled> {
        let shown = &self.address.shown;
        let unreachable = |error: io::Error| WireError::Unreachable { address: shown.clone(), why: error.to_string() };
        let found = lookup_host((self.address.host.as_str(), self.address.port)).await.map_err(unreachable)?;
        let found: Vec<SocketAddr> = found.collect();
        if self.tls.is_none() {
            // All of them, and those that are then connected to: a name may stand for this machine and another.
            found.iter().try_for_each(|address| self.plaintext.check(address))?;
        }
        let stream = TcpStream::connect(found.as_slice()).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let io = match &self.tls {
            None => Either::Left(stream),
            Some((config, name)) => {
                let connected = TlsConnector::from(config.clone()).connect(name.clone(), stream).await;
                Either::Right(Box::new(connected.map_err(|error| self.no_tls(error))?))
            }
        };
        Ok(Dialled { io, address: shown.clone() })
    }

    fn no_tls(&self, error: io::Error) -> WireError {
        let address = &self.address.shown;
        tls::explain(&error, address).unwrap_or_else(|| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => WireError::Tls {
                address: address.clone(),
                why:
                    "the peer closed the connection during the handshake; it may not speak TLS there, or have as many \
                      connections as it takes"
                        .into(),
            },
            _ => WireError::Unreachable { address: address.clone(), why: error.to_string() },
        })
    }
}

/// A connection whose errors of TLS can still be told when only their text is left of them.
pub(crate) struct Dialled {
    io: Either<TcpStream, Box<TlsStream<TcpStream>>>,
    address: String,
}

impl Dialled {
    fn told<T>(&self, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        done.map_err(|error| tls::explained(error, &self.address))
    }
}

impl AsyncRead for Dialled {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.io).poll_read(cx, into);
        self.told(done)
    }
}

impl AsyncWrite for Dialled {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.told(done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.io).poll_flush(cx);
        self.told(done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.io).poll_shutdown(cx);
        self.told(done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.io).poll_write_vectored(cx, parts);
        self.told(done)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
