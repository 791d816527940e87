//! Method traces of Android's runtime (`.trace`), from `Debug.startMethodTracing`, `am profile` and Android Studio.
//!
//! Their layouts are described in the comments of `runtime/trace.h` of Android's `platform/art`.

mod header;
mod read;
mod records;
#[cfg(test)]
mod tests;

pub(crate) use header::is_trace;
pub use read::read_value;
