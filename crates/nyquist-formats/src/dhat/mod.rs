//! DHAT's JSON: bytes and blocks of memory by the stack that allocated them.

mod read;
mod write;

pub use read::{read, read_value};
pub use write::write;
