//! Reads request bodies within the limits of every door: size, time, and the bytes that the hub holds for a caller.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use plexus_core::{DoorFigures, RejectReason};
use plexus_protocol::MAX_BODY_BYTES;
use tokio::time::{Instant, timeout, timeout_at};

use crate::callers::Charge;
use crate::json_value_count;
use crate::limits::DoorLimits;
use crate::refusal::Refusal;

/// The number of bytes of a rejected body to read and discard. A client that is disconnected while it still writes
/// would see a broken connection instead of the reason.
const DISCARD_BYTES: usize = 8 * MAX_BODY_BYTES;
/// The largest body of an unauthenticated request.
pub(crate) const UNAUTHENTICATED_BYTES: usize = 4 * 1024;

/// A complete body. Its bytes count as held until `charge` is dropped.
pub(crate) struct ReadBody {
    pub(crate) bytes: Bytes,
    pub(crate) charge: Charge,
}

/// Reads bodies within these limits, and counts those that exceed the time limit.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) limits: &'a DoorLimits,
    pub(crate) figures: &'a DoorFigures,
}

impl Reader<'_> {
    /// Reads the whole body of an authenticated request. The body is JSON.
    pub(crate) async fn read(self, body: Body, mut charge: Charge) -> Result<ReadBody, Refusal> {
        let size = Size { most: MAX_BODY_BYTES, discarded: DISCARD_BYTES, refusal: Refusal::TooLarge };
        let bytes = self.collect(body, size, Some(&mut charge)).await?;
        if !json_value_count::are_within_limit(&bytes) {
            return Err(Refusal::TooManyValues);
        }
        Ok(ReadBody { bytes, charge })
    }

    /// Reads the whole body of an unauthenticated request. It does not wait for bytes beyond the limit.
    pub(crate) async fn read_small(self, body: Body) -> Result<Bytes, Refusal> {
        let limits = &DoorLimits { body: self.limits.head, ..*self.limits };
        let most = UNAUTHENTICATED_BYTES;
        let size = Size { most, discarded: most, refusal: Refusal::UnauthenticatedTooLarge };
        Reader { limits, ..self }.collect(body, size, None).await
    }

    /// Discards the body of a rejected request, within the same limits.
    pub(crate) async fn discard(self, body: Body) {
        let size = Size { most: 0, discarded: DISCARD_BYTES, refusal: Refusal::TooLarge };
        // The request was rejected for another reason.
        let _ = self.collect(body, size, None).await;
    }

    async fn collect(
        self,
        mut body: Body,
        size: Size,
        mut charge: Option<&mut Charge>,
    ) -> Result<Bytes, Refusal> {
        if body.size_hint().lower() > size.discarded as u64 {
            return Err(size.refusal);
        }
        let by = Instant::now() + self.limits.body;
        let (mut whole, mut seen, mut refused) = (BytesMut::new(), 0, None);
        while seen <= size.discarded {
            let frame = timeout_at(by, timeout(self.limits.body_stall, body.frame())).await;
            let Ok(Ok(frame)) = frame else {
                self.figures.rejected(RejectReason::Body);
                return Err(Refusal::BodyTooSlow);
            };
            let Some(frame) = frame else { break };
            let Ok(data) = frame.map_err(|_| Refusal::BrokenBody)?.into_data() else { continue };
            seen += data.len();
            if refused.is_none() {
                let room = charge.as_mut().map_or(Ok(()), |charge| charge.grow(data.len()));
                refused = if seen > size.most { Some(size.refusal) } else { room.err() };
            }
            if refused.is_none() {
                whole.extend_from_slice(&data);
            } else {
                whole = BytesMut::new();
                if let Some(charge) = &mut charge {
                    charge.clear();
                }
            }
        }
        refused.map_or_else(|| Ok(whole.freeze()), Err)
    }
}

/// The size limits of a body.
#[derive(Clone, Copy)]
struct Size {
    most: usize,
    /// The total number of bytes to read from a body that exceeds `most`.
    discarded: usize,
    refusal: Refusal,
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::time::Duration;

    use futures::{StreamExt as _, stream};
    use plexus_protocol::Principal;

    use super::*;
    use crate::callers::Callers;

    async fn read(limits: DoorLimits, body: Body) -> Result<Bytes, Refusal> {
        let figures = DoorFigures::default();
        let call = Callers::new(limits, figures.clone()).enter(&Principal::Operator)?;
        let reader = Reader { limits: &limits, figures: &figures };
        reader.read(body, Arc::new(call).charge()).await.map(|taken| taken.bytes)
    }

    /// `count` pieces of one kilobyte each, a few milliseconds apart.
    fn pieces(count: usize) -> impl futures::Stream<Item = Result<Bytes, io::Error>> {
        stream::iter(0..count).then(|_| async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(Bytes::from(vec![b'x'; 1024]))
        })
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_the_limit_only() {
        let read = async |bytes: usize| read(DoorLimits::default(), Body::from(vec![b'x'; bytes])).await;
        assert_eq!(read(MAX_BODY_BYTES).await.unwrap().len(), MAX_BODY_BYTES);
        assert_eq!(read(MAX_BODY_BYTES + 1).await, Err(Refusal::TooLarge));
    }

    #[tokio::test]
    async fn a_body_may_be_slow_but_may_neither_stall_nor_exceed_the_time_limit() {
        let usual = DoorLimits::default();
        let slow = read(usual, Body::from_stream(pieces(20))).await.unwrap();
        assert_eq!(slow.len(), 20 * 1024);
        let short = Duration::from_millis(100);
        let stops = Body::from_stream(pieces(2).chain(stream::pending()));
        let limits = DoorLimits { body_stall: short, ..usual };
        assert_eq!(read(limits, stops).await, Err(Refusal::BodyTooSlow));
        let goes_on = Body::from_stream(pieces(usize::MAX));
        let limits = DoorLimits { body: short, ..usual };
        assert_eq!(read(limits, goes_on).await, Err(Refusal::BodyTooSlow));
    }

    #[tokio::test]
    async fn an_unauthenticated_body_is_limited_to_a_few_kilobytes() {
        let (limits, figures) = (DoorLimits::default(), DoorFigures::default());
        let reader = Reader { limits: &limits, figures: &figures };
        let fits = reader.read_small(Body::from(vec![b'x'; UNAUTHENTICATED_BYTES])).await.unwrap();
        assert_eq!(fits.len(), UNAUTHENTICATED_BYTES);
        let body = Body::from(vec![b'x'; UNAUTHENTICATED_BYTES + 1]);
        assert_eq!(reader.read_small(body).await, Err(Refusal::UnauthenticatedTooLarge));
        let unending =
            Body::from_stream(stream::repeat_with(|| Ok::<_, io::Error>(Bytes::from_static(b"xx"))));
        assert_eq!(reader.read_small(unending).await, Err(Refusal::UnauthenticatedTooLarge));
    }
}
