//! Parquet tables of profiles, which SQL engines query. `docs/reference/formats/parquet.md` documents the schema.

mod column;
mod page_header;
mod pages;
mod read;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod texts;
mod write;

pub use read::{TableReader, read, read_labelled};
pub use rows::WriteOptions;
pub use write::{TableWriter, write};

/// The kind of rows of CPU time, as in pprof.
const CPU: &str = "cpu";
/// The kind of rows of waiting.
const OFF_CPU: &str = "off_cpu";

/// The key of the file's metadata that has the version of the schema, and the version that is written.
const VERSION_KEY: &str = "nyquist.schema";
const VERSION: &str = "1";
/// The key of the file's metadata that has the sampling interval.
const INTERVAL_KEY: &str = "nyquist.interval_ns";
/// The key of the file's metadata that has the recorded program.
const PRODUCT_KEY: &str = "nyquist.product";
