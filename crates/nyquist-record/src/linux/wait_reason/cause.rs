//! The answer to what a thread waits for.

use std::sync::Arc;

use nyquist_convert::event::{Tid, WaitReason};

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitCause {
    pub(crate) reason: WaitReason,
    /// The object, as text for the target of the wait.
    pub(crate) object: Option<Arc<str>>,
    /// The thread that holds it, if known.
    pub(crate) holder: Option<Tid>,
}

impl WaitCause {
    /// A result without an object and a holder.
    pub(super) fn some(reason: WaitReason) -> Self {
        Self { reason, object: None, holder: None }
    }
}
