//! Spools: what a conversion has made is written to disk while it goes on, and read back if its process does not end
//! well.

pub(crate) mod generated;
pub(crate) mod recover;
pub(crate) mod source;
pub(crate) mod tap;
