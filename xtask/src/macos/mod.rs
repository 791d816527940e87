//! Programs of macOS that are linked without its SDK: stubs of the system's libraries, and checks of what was linked.

pub(crate) mod frameworks;
pub(crate) mod program;
mod signature;
