//! The parts that do not call macOS, so that they are tested on every system.

pub(crate) mod images;
pub(crate) mod launching;
pub(crate) mod refusal;
pub(crate) mod senders;
pub(crate) mod status;
