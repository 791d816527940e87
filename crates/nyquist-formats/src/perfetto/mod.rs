//! Perfetto's traces in protobuf (`.perfetto-trace`, `.pftrace`): stacks of samples, and slices of tracks.

mod clocks;
mod message;
mod packets;
mod read;
mod sequence;
mod stack_sample_message;
mod stack_samples;
#[cfg(test)]
mod tests;
mod texts;
mod tracks;
mod write;
mod write_markers;

pub use read::{read, read_value};
pub use write::write;
