//! A response body that holds resources until it is written: the caller's slot and the connection. Large pieces are
//! split, so that the resources are released when nearly everything is written, and not when writing starts.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// The largest piece that the body yields at once.
const PIECE: usize = 16 * 1024;

/// A response that holds `held` until its body is written or dropped.
pub(crate) fn holding<K: Send + Unpin + 'static>(response: Response, held: K) -> Response {
    response.map(|body| Body::new(HoldingBody { body, piece: Bytes::new(), held: Some(held) }))
}

struct HoldingBody<K> {
    body: Body,
    /// The rest of the last piece of `body`.
    piece: Bytes,
    held: Option<K>,
}

impl<K: Unpin> HttpBody for HoldingBody<K> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.piece.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.piece = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    self.held = None;
                    return Poll::Ready(None);
                }
            }
        }
        let next = PIECE.min(self.piece.len());
        Poll::Ready(Some(Ok(Frame::data(self.piece.split_to(next)))))
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, piece) = (self.body.size_hint(), self.piece.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + piece);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + piece);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn a_response_is_complete_and_holds_its_resources_until_its_last_piece() {
        let (held, mut gone) = tokio::sync::oneshot::channel::<()>();
        let whole: Bytes = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut body = holding(whole.clone().into_response(), held).into_body();
        assert_eq!(body.size_hint().exact(), Some(400_000), "its length is still known");
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            assert_eq!(gone.try_recv(), Err(tokio::sync::oneshot::error::TryRecvError::Empty));
            let data = frame.unwrap().into_data().unwrap();
            assert!(data.len() <= PIECE);
            read.extend_from_slice(&data);
        }
        assert_eq!(read, whole);
        assert_eq!(gone.try_recv(), Err(tokio::sync::oneshot::error::TryRecvError::Closed));
    }
}
