//! Function names: as people read them, and as profiles of several builds have in common.

mod brackets;
mod comparable;
mod short;
mod shortener;

pub use comparable::{comparable_name, is_only_address};
pub use short::{short_name, without_hash};
