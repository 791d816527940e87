//! Other processes.

pub(crate) use nyquist_record::linux::{process_has_ended, process_state};
