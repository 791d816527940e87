//! One file per endpoint, and common parts of the JSON endpoints.

pub(crate) mod assembly;
mod json;
pub(crate) mod profile;
pub(crate) mod source;
pub(crate) mod symbolicate;
pub(crate) mod viewer;
