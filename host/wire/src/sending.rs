//! Keeps the reason when a client's own side of a call fails.
//!
//! A message over the limit is refused while the request's body is made. HTTP/2 has no room for reasons: hyper resets
//! the stream, and the caller would read of an "internal error" of its own making. So the body is watched here, and its
//! error takes the place of what the reset looks like.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::transport::Channel;
use tower::Service;

type Fault = Arc<OnceLock<Status>>;
type BoxError = Box<dyn Error + Send + Sync>;

/// A channel whose calls fail with their own reasons.
#[derive(Clone, Debug)]
pub struct Sending(pub(crate) Channel);

impl Service<Request<Body>> for Sending {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let fault = Fault::default();
        let request = request.map(|body| Body::new(Watched { body, fault: fault.clone(), sent: true }));
        let answered = self.0.call(request);
        Box::pin(async move {
            match answered.await {
                Ok(response) => Ok(response.map(|body| Body::new(Watched { body, fault, sent: false }))),
                Err(error) => Err(fault.get().cloned().map_or_else(|| error.into(), Into::into)),
            }
        })
    }
}

/// A body that tells its error, or, on the way back, takes the one that was told.
struct Watched {
    body: Body,
    fault: Fault,
    sent: bool,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        frame.map_err(|error| {
            if self.sent {
                // The first is the reason; later ones follow from it.
                let _ = self.fault.set(error.clone());
                error
            } else {
                self.fault.get().cloned().unwrap_or(error)
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
