//! Function names: short ones for display, and ones that are comparable between builds.

mod brackets;
mod comparable;
mod short;
mod shortener;

pub use comparable::{comparable_name, is_only_address};
pub use short::{short_name, without_hash};
