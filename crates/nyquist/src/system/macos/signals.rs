//! Requests to end, and what a recording is ended with.

pub(crate) use nyquist_record::macos::launch::Signaller;
pub(crate) use nyquist_record::macos::signals::{
    EndRequest, EndSignal, KILL, Requests, on_own_stack, outlive_file_size_limit,
};
pub(crate) use nyquist_record::macos::{StopHandle, now};
