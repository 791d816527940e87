//! Requests to end, and what a recording is ended with.

pub(crate) use nyquist_record::linux::launch::Signaller;
pub(crate) use nyquist_record::linux::signals::{
    EndSignal, KILL, Request, Requests, on_own_stack, outlive_file_size_limit,
};
pub(crate) use nyquist_record::linux::{StopHandle, now};
