//! A profile's document as in the file, of any version.

use super::raw::{RawCounter, RawMeta, RawTables, RawThread};
use super::raw_gecko::{RawMappedLib, RawProcess};

/// The document.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawProfile {
    pub(super) meta: Option<RawMeta>,
    pub(super) libs: Vec<RawMappedLib>,
    pub(super) shared: RawTables,
    pub(super) threads: Option<Vec<RawThread>>,
    pub(super) counters: Vec<RawCounter>,
    /// A gecko profile. Of the members above it has only `meta`, which may come after its libs.
    #[serde(skip)]
    pub(super) gecko: Option<RawProcess>,
}
