//! Recorded stacks of real programs, and the unwinders that walk them.

pub mod a64;
pub mod cpu;
pub mod instruction;
pub mod known;
pub mod made;
pub mod peer;
pub mod perf_data;
pub mod recording;
pub mod shuffle;
pub mod steps;
pub mod truth;
pub mod x64;
