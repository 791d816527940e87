//! The Firefox Profiler's processed profile format.
//!
//! Its types are documented in the front end's repository: `src/types/profile.ts` and
//! `docs-developer/CHANGELOG-formats.md`, to whose version numbers this module's comments refer.

mod breakpad_id;
mod check;
mod check_tables;
mod check_threads;
mod checker;
mod exact_rows;
mod first_view;
mod flag;
mod gecko;
mod gzip;
mod idle_category;
mod idle_rows;
mod json;
mod native_allocations;
mod omit_counters;
mod raw;
mod raw_gecko;
mod raw_nyquist;
mod raw_profile;
mod read;
mod read_ahead;
mod read_error;
mod read_meta;
mod read_tables;
mod read_thread;
mod row_names;
mod subset;
mod wait_color;
mod write;
mod write_meta;
mod write_tables;
mod write_thread;

use std::fmt;
use std::str::FromStr;

pub use check::{check, check_bytes};
pub use checker::Violation;
pub use omit_counters::without_counters;
pub use read::read;
pub use read_error::{Inconsistency, NEWEST_VERSION, OLDEST_VERSION, ReadError};
pub use write::{WriteOptions, write, write_without_counters};

/// A version of the format that can be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormatVersion {
    /// Tables for each thread, absolute times, integers without nulls as weights and CPU deltas: the
    /// version that today's third-party readers support.
    V49,
    /// Tables shared between threads, times as differences.
    #[default]
    V66,
}

impl FormatVersion {
    /// The number in the profile's `meta.preprocessedProfileVersion`.
    pub fn number(self) -> u32 {
        match self {
            Self::V49 => 49,
            Self::V66 => 66,
        }
    }
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

/// The text is not a supported version.
#[derive(Debug, thiserror::Error)]
#[error("profile version {0:?} cannot be written: choose 49 or 66")]
pub struct UnknownFormatVersion(String);

impl FromStr for FormatVersion {
    type Err = UnknownFormatVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "49" => Ok(Self::V49),
            "66" => Ok(Self::V66),
            _ => Err(UnknownFormatVersion(text.into())),
        }
    }
}
