//! The gecko format as in the file.

use serde::Deserialize;
use serde_json::Value;

use super::raw::{RawLib, RawMeta};

/// One process with its child processes.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawProcess {
    pub(super) meta: Option<RawMeta>,
    pub(super) libs: Vec<RawMappedLib>,
    pub(super) threads: Vec<RawGeckoThread>,
    pub(super) processes: Vec<RawProcess>,
}

/// A lib with its mapped addresses, which a processed profile does not have.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawMappedLib {
    pub(super) start: u64,
    pub(super) end: u64,
    #[serde(flatten)]
    pub(super) lib: RawLib,
}

/// A thread.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawGeckoThread {
    pub(super) name: String,
    pub(super) process_name: Option<String>,
    pub(super) tid: Value,
    pub(super) pid: Value,
    pub(super) register_time: Option<f64>,
    pub(super) unregister_time: Option<f64>,
    pub(super) samples: RawTable,
    pub(super) markers: RawTable,
    pub(super) stack_table: RawTable,
    pub(super) frame_table: RawTable,
    pub(super) string_table: Vec<String>,
}

/// Rows of values, and the positions of the columns in them.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawTable {
    pub(super) schema: std::collections::BTreeMap<String, usize>,
    pub(super) data: Vec<Vec<Value>>,
}

impl RawTable {
    /// The value of a row; null if the column or the value is missing.
    pub(super) fn value<'a>(&self, row: &'a [Value], column: &str) -> &'a Value {
        self.schema.get(column).and_then(|&place| row.get(place)).unwrap_or(&Value::Null)
    }

    pub(super) fn number(&self, row: &[Value], column: &str) -> Option<f64> {
        self.value(row, column).as_f64()
    }

    pub(super) fn index(&self, row: &[Value], column: &str) -> Option<usize> {
        self.value(row, column).as_u64().and_then(|index| usize::try_from(index).ok())
    }
}
