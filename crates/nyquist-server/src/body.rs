//! Reads the body of a request, within a limit of bytes and time.

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use crate::config::Limits;
use crate::reply::ApiError;

/// If a body is too long, this many times the limit is read and discarded. Then the client has sent all of
/// it and reads the response, instead of finding the connection reset.
const DISCARDED: u64 = 4;

/// Reads the whole body, of at most `most` bytes. Memory is not reserved by the length in a header. It
/// grows as bytes arrive.
pub(crate) async fn read(mut body: Incoming, most: usize, limits: &Limits) -> Result<Vec<u8>, ApiError> {
    let longest_read = (most as u64).saturating_mul(DISCARDED);
    if body.size_hint().lower() > longest_read {
        return Err(too_long(most));
    }
    let (mut bytes, mut length) = (Vec::new(), 0_u64);
    while let Some(data) = next_data(&mut body, limits).await? {
        length += data.len() as u64;
        if length <= most as u64 {
            bytes.extend_from_slice(&data);
        } else if length <= longest_read {
            bytes = Vec::new();
        } else {
            break;
        }
    }
    if length > most as u64 { Err(too_long(most)) } else { Ok(bytes) }
}

/// The next chunk of the body; trailers are empty chunks.
async fn next_data(body: &mut Incoming, limits: &Limits) -> Result<Option<hyper::body::Bytes>, ApiError> {
    match timeout(limits.stall_timeout, body.frame()).await {
        Ok(Some(Ok(frame))) => Ok(Some(frame.into_data().unwrap_or_default())),
        Ok(Some(Err(error))) => {
            Err(ApiError::bad_request(format_args!("the request's body broke off: {error}")))
        }
        Ok(None) => Ok(None),
        Err(_) => Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "the request's body did not come in time")),
    }
}

fn too_long(most: usize) -> ApiError {
    let message = format_args!("the request's body is longer than {most} bytes").to_string();
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}
