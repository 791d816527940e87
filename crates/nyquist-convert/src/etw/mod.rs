//! Traces of Windows (Event Tracing for Windows): events of its kernel to events of a profile, for files and for
//! live sessions alike.

mod clr_code;
mod events;
mod held;
mod images;
mod import;
mod keyed_stacks;
mod paths;
mod survey;
mod switches;
mod tasks;

pub use events::{EtwCounts, EtwEvents};
pub use import::{EtwError, EtwImported, EtwOptions, import};
pub use survey::Survey;
