//! One file an endpoint, and what those that take JSON share.

pub(crate) mod assembly;
mod json;
pub(crate) mod profile;
pub(crate) mod source;
pub(crate) mod symbolicate;
pub(crate) mod viewer;
