//! A profile's document as it is in the file, of any version.

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
    /// What Firefox itself has written: then nothing of the above but `meta` is there. It may have its libs before that.
    #[serde(skip)]
    pub(super) gecko: Option<RawProcess>,
}
