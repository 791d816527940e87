//! OpenTelemetry's profiles (`ProfilesData` of `profiles/v1development`), which the collector and its agents
//! exchange.

mod json;
mod json_fields;
mod label_filter;
mod message;
mod read;
mod response;
#[cfg(test)]
mod tests;
mod write;

pub use json::read as read_json;
pub use read::{read, read_labelled, read_value};
pub use response::rejected;
pub use write::{WriteOptions, write, write_with};

/// The names of attributes, from OpenTelemetry's semantic conventions.
mod key {
    pub(super) const PID: &str = "process.pid";
    pub(super) const EXECUTABLE: &str = "process.executable.name";
    pub(super) const BUILD_ID: &str = "process.executable.build_id.gnu";
    pub(super) const FILE_HASH: &str = "process.executable.build_id.htlhash";
    pub(super) const SERVICE: &str = "service.name";
    pub(super) const TID: &str = "thread.id";
    pub(super) const THREAD: &str = "thread.name";
    pub(super) const FRAME_TYPE: &str = "profile.frame.type";
}

/// The type of frames of the kernel.
const KERNEL: &str = "kernel";
/// The types of the values and of the period for CPU time.
const SAMPLES: &str = "samples";
const CPU: &str = "cpu";
/// The type of the value for time of waiting.
const OFF_CPU: &str = "off_cpu";
