//! Function names: short ones for display, ones that are comparable between builds, and the modules in them.

mod brackets;
mod comparable;
mod module_name;
mod short;
mod shortener;

pub use comparable::{comparable_name, is_only_address};
pub use module_name::module_name;
pub use short::{short_name, without_hash};
