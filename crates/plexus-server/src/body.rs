//! Reads request bodies within the one limit that holds on every door.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use plexus_protocol::MAX_BODY_BYTES;

use crate::refusal::Refusal;

/// How much of a body that is too large is read and thrown away: a client that is cut off while it still writes
/// would see a broken connection instead of the reason.
const DISCARD_BYTES: usize = 8 * MAX_BODY_BYTES;

/// The whole body, if it is within the limit.
pub(crate) async fn read(mut body: Body) -> Result<Bytes, Refusal> {
    let mut whole = BytesMut::new();
    let mut seen = 0_usize;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Refusal::BrokenBody)?.into_data() else { continue };
        seen += data.len();
        if seen <= MAX_BODY_BYTES {
            whole.extend_from_slice(&data);
        } else if seen > DISCARD_BYTES {
            break;
        } else {
            whole = BytesMut::new();
        }
    }
    if seen > MAX_BODY_BYTES { Err(Refusal::TooLarge) } else { Ok(whole.freeze()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_taken_up_to_the_limit_and_not_above() {
        let fits = read(Body::from(vec![b'x'; MAX_BODY_BYTES])).await.unwrap();
        assert_eq!(fits.len(), MAX_BODY_BYTES);
        assert_eq!(read(Body::from(vec![b'x'; MAX_BODY_BYTES + 1])).await, Err(Refusal::TooLarge));
    }
}
