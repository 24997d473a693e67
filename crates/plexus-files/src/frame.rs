//! The wire format between hub and helper: one message in each direction. A message is a JSON text and a body of raw
//! bytes, each preceded by its length, so that neither side reads more than it allows.

use std::io::{self, Read, Write};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The largest JSON text: a baseline of a worktree, or the answer of a diff.
pub(crate) const MAX_JSON: u64 = 32 * 1024 * 1024;

/// Reads a JSON text and the length of the body that follows it.
pub(crate) fn read_head(from: &mut impl Read) -> io::Result<(Vec<u8>, u64)> {
    let length = check_json(read_length(from)?)?;
    let mut json = Vec::new();
    from.take(length).read_to_end(&mut json)?;
    if json.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((json, read_length(from)?))
}

/// Writes a message.
pub(crate) fn write(to: &mut impl Write, json: &[u8], body: &mut impl Read, length: u64) -> io::Result<()> {
    check_json(json.len() as u64)?;
    to.write_all(&(json.len() as u64).to_le_bytes())?;
    to.write_all(json)?;
    to.write_all(&length.to_le_bytes())?;
    match io::copy(&mut body.take(length), to)? {
        copied if copied == length => Ok(()),
        // The file became shorter meanwhile.
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads a JSON text and the length of the body that follows it, without blocking the thread.
pub(crate) async fn receive_head(from: &mut (impl AsyncRead + Unpin)) -> io::Result<(Vec<u8>, u64)> {
    let length = check_json(from.read_u64_le().await?)?;
    let mut json = Vec::new();
    from.take(length).read_to_end(&mut json).await?;
    if json.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((json, from.read_u64_le().await?))
}

/// Writes a message, without blocking the thread.
pub(crate) async fn send(
    to: &mut (impl AsyncWrite + Unpin),
    json: &[u8],
    body: &mut (impl AsyncRead + Unpin),
    length: u64,
) -> io::Result<()> {
    check_json(json.len() as u64)?;
    to.write_u64_le(json.len() as u64).await?;
    to.write_all(json).await?;
    to.write_u64_le(length).await?;
    receive_body(body, to, length).await
}

/// Copies a body of exactly this length.
pub(crate) async fn receive_body(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    length: u64,
) -> io::Result<()> {
    match tokio::io::copy(&mut from.take(length), to).await? {
        copied if copied == length => to.flush().await,
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn read_length(from: &mut impl Read) -> io::Result<u64> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    Ok(u64::from_le_bytes(length))
}

fn check_json(length: u64) -> io::Result<u64> {
    if length <= MAX_JSON {
        return Ok(length);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_written_frame_is_read_at_the_other_end() {
        let mut sent = Vec::new();
        send(&mut sent, b"{}", &mut &b"body and more"[..], 4).await.unwrap();
        let mut written = Vec::new();
        write(&mut written, b"{}", &mut &b"body and more"[..], 4).unwrap();
        assert_eq!(sent, written);
        let mut from = &sent[..];
        assert_eq!(read_head(&mut from).unwrap(), (b"{}".to_vec(), 4));
        assert_eq!(from, b"body");
        let (mut from, mut body) = (&sent[..], Vec::new());
        assert_eq!(receive_head(&mut from).await.unwrap(), (b"{}".to_vec(), 4));
        receive_body(&mut from, &mut body, 4).await.unwrap();
        assert_eq!(body, b"body");
    }

    #[tokio::test]
    async fn a_message_that_is_too_large_or_cut_off_is_an_error() {
        let mut huge = (MAX_JSON + 1).to_le_bytes().to_vec();
        huge.extend(b"{}");
        assert!(read_head(&mut &huge[..]).is_err() && receive_head(&mut &huge[..]).await.is_err());
        let mut whole = Vec::new();
        write(&mut whole, b"{}", &mut &b""[..], 0).unwrap();
        for cut in 0..whole.len() {
            assert!(
                read_head(&mut &whole[..cut]).is_err() && receive_head(&mut &whole[..cut]).await.is_err()
            );
        }
        assert!(
            write(&mut Vec::new(), b"{}", &mut &b"abc"[..], 4).is_err(),
            "the body is shorter than announced"
        );
        assert!(receive_body(&mut &b"abc"[..], &mut Vec::new(), 4).await.is_err());
    }
}
