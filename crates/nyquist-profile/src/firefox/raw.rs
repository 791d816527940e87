//! The parts of a profile's document as in the file: columns of any version, not yet checked.
//!
//! Members that a version lacks are `None` or empty. Unknown members are skipped.

use super::raw_nyquist::RawNyquist;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde_json::Value;

use super::flag::Flag;

/// `meta`.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawMeta {
    pub(super) preprocessed_profile_version: Option<f64>,
    /// The version of the gecko format. Without the other version, it shows that the profile was never
    /// processed.
    pub(super) version: Option<f64>,
    pub(super) product: Option<String>,
    pub(super) interval: f64,
    pub(super) start_time: f64,
    pub(super) profiling_start_time: Option<f64>,
    pub(super) profiling_end_time: Option<f64>,
    pub(super) symbolicated: Option<bool>,
    pub(super) sample_units: Option<RawSampleUnits>,
    pub(super) arguments: Option<String>,
    pub(super) oscpu: Option<String>,
    pub(super) platform: Option<String>,
    pub(super) abi: Option<String>,
    #[serde(rename = "CPUName")]
    pub(super) cpu_name: Option<String>,
    #[serde(rename = "logicalCPUs")]
    pub(super) logical_cpus: Option<f64>,
    #[serde(rename = "physicalCPUs")]
    pub(super) physical_cpus: Option<f64>,
    pub(super) main_memory: Option<f64>,
    pub(super) imported_from: Option<String>,
    pub(super) categories: Vec<RawCategory>,
    pub(super) marker_schema: Vec<RawMarkerSchema>,
    pub(super) extra: Vec<RawExtraSection>,
    pub(super) nyquist: RawNyquist,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct RawSampleUnits {
    #[serde(rename = "threadCPUDelta")]
    pub(super) thread_cpu_delta: Option<String>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct RawCategory {
    pub(super) name: String,
    pub(super) color: String,
    pub(super) subcategories: Vec<String>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct RawExtraSection {
    pub(super) label: String,
    pub(super) entries: Vec<RawExtraEntry>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct RawExtraEntry {
    pub(super) label: String,
    pub(super) value: Value,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawMarkerSchema {
    pub(super) name: String,
    pub(super) display: Vec<String>,
    /// Before version 55 `data`, with fields that have a value and no key.
    #[serde(alias = "data")]
    pub(super) fields: Vec<RawField>,
    pub(super) tooltip_label: Option<String>,
    pub(super) table_label: Option<String>,
    pub(super) chart_label: Option<String>,
    pub(super) description: Option<String>,
    pub(super) is_stack_based: bool,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct RawField {
    pub(super) key: Option<String>,
    pub(super) label: Option<String>,
    /// A name, or an object that describes a table.
    pub(super) format: Value,
    pub(super) value: Option<String>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawLib {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) debug_name: String,
    pub(super) debug_path: String,
    pub(super) breakpad_id: String,
    pub(super) code_id: Option<String>,
    pub(super) arch: Option<String>,
}

/// The code tables. They are shared since version 60, the strings since 56; before, each thread had its own.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawTables {
    pub(super) stack_table: Option<RawStacks>,
    pub(super) frame_table: RawFrames,
    pub(super) func_table: RawFuncs,
    pub(super) resource_table: RawResources,
    pub(super) native_symbols: RawNativeSymbols,
    pub(super) sources: RawSources,
    pub(super) source_location_table: RawLocations,
    pub(super) string_array: Vec<String>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawStacks {
    pub(super) frame: Vec<RawIndex>,
    /// Until version 65.
    pub(super) prefix: Option<Vec<RawIndex>>,
    /// Since version 66.
    pub(super) prefix_offset: Option<Vec<RawIndex>>,
    /// Until version 52.
    pub(super) category: Option<Vec<RawIndex>>,
    /// Until version 52.
    pub(super) subcategory: Option<Vec<RawIndex>>,
    pub(super) length: Option<usize>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawFrames {
    pub(super) address: Option<Vec<RawIndex>>,
    pub(super) inline_depth: Option<Vec<RawIndex>>,
    pub(super) category: Option<Vec<RawIndex>>,
    pub(super) subcategory: Option<Vec<RawIndex>>,
    pub(super) func: Vec<RawIndex>,
    pub(super) native_symbol: Option<Vec<RawIndex>>,
    pub(super) line: Option<Vec<RawIndex>>,
    pub(super) column: Option<Vec<RawIndex>>,
    /// Since version 70; before, a frame's lib was that of its function's resource.
    pub(super) lib: Option<Vec<RawIndex>>,
    /// Since version 64.
    pub(super) original_location: Option<Vec<RawIndex>>,
    pub(super) length: Option<usize>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawFuncs {
    pub(super) name: Vec<RawIndex>,
    #[serde(rename = "isJS")]
    pub(super) is_js: Option<Vec<Flag>>,
    #[serde(rename = "relevantForJS")]
    pub(super) relevant_for_js: Option<Vec<Flag>>,
    pub(super) resource: Option<Vec<RawIndex>>,
    /// Since version 58.
    pub(super) source: Option<Vec<RawIndex>>,
    /// Until version 57.
    pub(super) file_name: Option<Vec<RawIndex>>,
    pub(super) line_number: Option<Vec<RawIndex>>,
    pub(super) column_number: Option<Vec<RawIndex>>,
    pub(super) length: Option<usize>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct RawResources {
    /// Until version 69.
    pub(super) lib: Option<Vec<RawIndex>>,
    pub(super) name: Vec<RawIndex>,
    pub(super) length: Option<usize>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawNativeSymbols {
    pub(super) lib_index: Vec<RawIndex>,
    pub(super) address: Vec<RawIndex>,
    pub(super) name: Vec<RawIndex>,
    /// Since version 42.
    pub(super) function_size: Option<Vec<RawIndex>>,
    pub(super) length: Option<usize>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct RawSources {
    pub(super) filename: Vec<RawIndex>,
    pub(super) length: Option<usize>,
}

/// Source locations of functions and frames. Since version 64.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct RawLocations {
    pub(super) source: Vec<RawIndex>,
    pub(super) line: Vec<RawIndex>,
    pub(super) column: Vec<RawIndex>,
    pub(super) length: Option<usize>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawThread {
    pub(super) process_startup_time: Option<f64>,
    pub(super) process_shutdown_time: Option<f64>,
    pub(super) register_time: Option<f64>,
    pub(super) unregister_time: Option<f64>,
    pub(super) name: String,
    /// An extension: the thread's own name, if `name` is a different name of its row.
    pub(super) nyquist_name: Option<String>,
    /// Since version 46.
    pub(super) is_main_thread: Option<bool>,
    pub(super) process_name: Option<String>,
    pub(super) pid: RawText,
    pub(super) tid: RawText,
    pub(super) samples: RawSamples,
    pub(super) markers: RawMarkers,
    /// Until version 40.
    pub(super) libs: Vec<RawLib>,
    pub(super) stack_table: Option<RawStacks>,
    pub(super) frame_table: RawFrames,
    pub(super) func_table: RawFuncs,
    pub(super) resource_table: RawResources,
    pub(super) native_symbols: RawNativeSymbols,
    pub(super) string_array: Vec<String>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSamples {
    pub(super) stack: Vec<RawIndex>,
    pub(super) time: Option<Vec<RawNumber>>,
    /// Since version 50.
    pub(super) time_deltas: Option<Vec<RawNumber>>,
    pub(super) weight: Option<Vec<RawNumber>>,
    pub(super) weight_type: Option<String>,
    #[serde(rename = "threadCPUDelta")]
    pub(super) thread_cpu_delta: Option<Vec<RawNumber>>,
    /// An extension: the number of intervals of waiting that a sample stands for.
    #[serde(rename = "nyquistOffCpuWeight")]
    pub(super) off_cpu_weight: Option<Vec<RawNumber>>,
    pub(super) length: Option<usize>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawMarkers {
    pub(super) data: Vec<Value>,
    pub(super) name: Vec<RawIndex>,
    pub(super) start_time: Vec<RawNumber>,
    pub(super) end_time: Vec<RawNumber>,
    pub(super) phase: Vec<RawIndex>,
    pub(super) category: Vec<RawIndex>,
    pub(super) length: Option<usize>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawCounter {
    pub(super) name: String,
    pub(super) category: String,
    pub(super) description: String,
    pub(super) color: Option<String>,
    pub(super) pid: RawText,
    pub(super) samples: RawCounterSamples,
    /// Until version 47, instead of `samples`.
    pub(super) sample_groups: Vec<RawSampleGroup>,
    pub(super) display: Option<RawDisplay>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct RawSampleGroup {
    pub(super) samples: RawCounterSamples,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawCounterSamples {
    pub(super) time: Option<Vec<RawNumber>>,
    pub(super) time_deltas: Option<Vec<RawNumber>>,
    pub(super) count: Vec<RawNumber>,
    pub(super) number: Option<Vec<RawNumber>>,
    pub(super) length: Option<usize>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawDisplay {
    pub(super) graph_type: String,
    pub(super) unit: String,
    pub(super) color: String,
    pub(super) marker_schema_location: Option<String>,
    pub(super) sort_weight: f64,
    pub(super) label: String,
}

/// An index or another number of up to 32 bits; `null` and -1 mean none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawIndex(u32);

impl RawIndex {
    pub(super) const NONE: Self = Self(u32::MAX);

    /// An index, or none if it is too large.
    pub(super) fn new(index: u32) -> Self {
        Self(index)
    }

    pub(super) fn get(self) -> Option<u32> {
        (self != Self::NONE).then_some(self.0)
    }
}

/// A number; `null` is read as NaN, which JSON itself cannot represent.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawNumber(pub(super) f64);

/// Text, or a number converted to its digits: pids before version 47, and all tids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RawText {
    pub(super) text: String,
    pub(super) was_number: bool,
}

struct IndexVisitor;

impl Visitor<'_> for IndexVisitor {
    type Value = RawIndex;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an index below 2^32 - 1, -1 or null")
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<RawIndex, E> {
        match u32::try_from(value) {
            Ok(value) if value != u32::MAX => Ok(RawIndex(value)),
            _ => Err(E::invalid_value(de::Unexpected::Unsigned(value), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<RawIndex, E> {
        match u64::try_from(value) {
            Ok(value) => self.visit_u64(value),
            Err(_) if value == -1 => Ok(RawIndex::NONE),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(value), &self)),
        }
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<RawIndex, E> {
        if value.fract() == 0.0 && (-1.0..f64::from(u32::MAX)).contains(&value) {
            self.visit_i64(value as i64)
        } else {
            Err(E::invalid_value(de::Unexpected::Float(value), &self))
        }
    }

    fn visit_unit<E: de::Error>(self) -> Result<RawIndex, E> {
        Ok(RawIndex::NONE)
    }
}

impl<'de> Deserialize<'de> for RawIndex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IndexVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = RawNumber;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or null")
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<RawNumber, E> {
        Ok(RawNumber(value as f64))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<RawNumber, E> {
        Ok(RawNumber(value as f64))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<RawNumber, E> {
        Ok(RawNumber(value))
    }

    fn visit_unit<E: de::Error>(self) -> Result<RawNumber, E> {
        Ok(RawNumber(f64::NAN))
    }
}

impl<'de> Deserialize<'de> for RawNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = RawText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<RawText, E> {
        Ok(RawText { text: text.into(), was_number: false })
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<RawText, E> {
        Ok(RawText { text: value.to_string(), was_number: true })
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<RawText, E> {
        Ok(RawText { text: value.to_string(), was_number: true })
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<RawText, E> {
        Ok(RawText { text: value.to_string(), was_number: true })
    }

    fn visit_unit<E: de::Error>(self) -> Result<RawText, E> {
        Ok(RawText::default())
    }
}

impl<'de> Deserialize<'de> for RawText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_small_whole_and_not_negative() {
        let check = |json: &str, expected: Option<Option<u32>>| {
            assert_eq!(serde_json::from_str::<RawIndex>(json).ok().map(RawIndex::get), expected, "{json}");
        };
        check("0", Some(Some(0)));
        check("7.0", Some(Some(7)));
        check("4294967294", Some(Some(u32::MAX - 1)));
        check("null", Some(None));
        check("-1", Some(None));
        check("-1.0", Some(None));
        for bad in ["4294967295", "4294967295.0", "-2", "1.5", "1e300", "\"0\"", "true", "[]"] {
            check(bad, None);
        }
    }
}
