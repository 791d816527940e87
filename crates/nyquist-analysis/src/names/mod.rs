//! Function names: short ones for display, ones that are comparable between builds, and the modules in them.

mod brackets;
mod comparable;
pub(crate) mod find;
mod module_name;
pub(crate) mod own_code;
pub(crate) mod pattern;
mod short;
mod shortener;

pub use comparable::{comparable_name, is_only_address};
pub use module_name::module_name;
pub use short::{short_name, without_hash};
