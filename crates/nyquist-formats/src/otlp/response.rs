//! The answer of a receiver (`ExportProfilesServiceResponse`).

use prost::Message;

/// `ExportProfilesServiceResponse`.
#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

/// `ExportProfilesPartialSuccess`.
#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(bytes = "vec", tag = "2")]
    message: Vec<u8>,
}

/// The reason if the receiver has rejected profiles, although it answered that all is well.
pub fn rejected(answer: &[u8]) -> Option<String> {
    let partial = Response::decode(answer).ok()?.partial_success?;
    let message = String::from_utf8_lossy(&partial.message).into_owned();
    (partial.rejected > 0).then(|| if message.is_empty() { "it gives no reason".to_owned() } else { message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_success_may_be_a_rejection() {
        let answer = |rejected, message: &str| {
            let partial_success = Some(PartialSuccess { rejected, message: message.into() });
            super::rejected(&Response { partial_success }.encode_to_vec())
        };
        assert_eq!(answer(3, "too old").as_deref(), Some("too old"));
        assert_eq!(answer(0, "a warning"), None);
        assert_eq!((super::rejected(b""), super::rejected(b"garbage")), (None, None));
    }
}
