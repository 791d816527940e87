//! Requests to end, and what a recording is ended with.

pub(crate) use nyquist_record::windows::launch::Signaller;
pub(crate) use nyquist_record::windows::signals::{EndRequest, EndSignal, KILL, Requests, on_own_stack};
pub(crate) use nyquist_record::windows::{StopHandle, now};

/// The size of files is not limited here.
pub(crate) fn outlive_file_size_limit() {}
