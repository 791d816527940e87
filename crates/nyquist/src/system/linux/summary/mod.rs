//! Messages about a recording, in the terminal and in the profile.

mod events;
mod outcome;
mod recorded;
mod waits;

pub(crate) use outcome::{outcome_lines, print_before_start, print_outcome};
pub(crate) use recorded::{Recorded, print};
