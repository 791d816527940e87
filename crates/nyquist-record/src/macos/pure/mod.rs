//! The parts that do not call macOS, or call it behind traits, so that they are tested on every system.

pub(crate) mod child;
#[cfg(unix)]
pub(crate) mod copies;
pub(crate) mod denied;
pub(crate) mod entitlements;
pub(crate) mod images;
pub(crate) mod launching;
pub(crate) mod listing;
pub(crate) mod modules;
pub(crate) mod names;
pub(crate) mod opening;
pub(crate) mod process_status;
pub(crate) mod program_file;
pub(crate) mod senders;
pub(crate) mod signing;
pub(crate) mod status;
