//! Reads the facts about the recording: `meta`, the categories and the marker schemas.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::raw::{RawCategory, RawExtraSection, RawMarkerSchema, RawMeta, RawThread};
use super::raw_nyquist::RawMeasure;
use crate::builder::ProfileBuilder;
use crate::category::CategoryColor;
use crate::id::MarkerSchemaId;
use crate::marker::{MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema};
use crate::measure::{Measure, Unit};
use crate::meta::{ExtraInfo, Meta};

/// The number of ns in a unit of CPU deltas; `None` if they are missing or not times.
pub(super) type CpuUnit = Option<f64>;

/// Converts a time in ms to ns; invalid times become 0. It is exact up to 2^33 ms (99 days), from where floating-point
/// numbers of ms are more than a ns apart.
pub(super) fn nanoseconds(milliseconds: f64) -> u64 {
    // The whole would lose bits of the fraction. A cast from a floating-point number saturates, and gives 0 for
    // negative numbers and NaN.
    let whole = milliseconds.trunc();
    let rest = ((milliseconds - whole) * 1e6).round() as u64;
    (whole as u64).saturating_mul(1_000_000).saturating_add(rest)
}

/// Reads `meta`. Whether there are CPU deltas depends on the threads too.
pub(super) fn read_meta(raw: &RawMeta, threads: &[RawThread]) -> (Meta, CpuUnit) {
    let unit = raw.sample_units.as_ref().and_then(|units| units.thread_cpu_delta.as_deref());
    let cpu_unit = match unit {
        Some("ns") => Some(1.0),
        Some("µs") => Some(1_000.0),
        _ => None,
    };
    let has_deltas =
        threads.is_empty() || threads.iter().any(|thread| thread.samples.thread_cpu_delta.is_some());
    let meta = Meta {
        product: raw.product.clone().unwrap_or_default(),
        interval: nanoseconds(raw.interval),
        start_time: (raw.start_time * 1e3).round() as u64,
        profiling_start: raw.profiling_start_time.map(nanoseconds),
        profiling_end: raw.profiling_end_time.map(nanoseconds),
        symbolicated: raw.symbolicated.unwrap_or(true),
        measure: raw.nyquist.measure.as_ref().map_or_else(Measure::default, read_measure),
        sample_distance: None,
        has_exact_times: raw.nyquist.has_exact_times,
        has_cpu_deltas: cpu_unit.is_some() && has_deltas,
        arguments: raw.arguments.clone(),
        oscpu: raw.oscpu.clone(),
        platform: raw.platform.clone(),
        abi: raw.abi.clone(),
        cpu_name: raw.cpu_name.clone(),
        logical_cpus: raw.logical_cpus.map(|count| count as u32),
        physical_cpus: raw.physical_cpus.map(|count| count as u32),
        main_memory: raw.main_memory.map(|bytes| bytes as u64),
        imported_from: raw.imported_from.clone(),
        lost_samples: raw.nyquist.lost_samples as u64,
        extra: read_extra(&raw.extra),
    };
    (meta, cpu_unit)
}

/// The unit of samples; an unknown unit is a count.
fn read_measure(raw: &RawMeasure) -> Measure {
    Measure { name: raw.name.clone(), unit: Unit::of_name(&raw.unit).unwrap_or(Unit::Count) }
}

fn read_extra(sections: &[RawExtraSection]) -> Vec<ExtraInfo> {
    let info = |section: &str, label: &str, value: &Value| ExtraInfo {
        section: section.into(),
        label: label.into(),
        value: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    };
    sections
        .iter()
        .flat_map(|section| {
            section.entries.iter().map(move |entry| info(&section.label, &entry.label, &entry.value))
        })
        .collect()
}

/// Adds all categories in their order, because frames refer to them by index.
pub(super) fn read_categories(builder: &mut ProfileBuilder, raw: &[RawCategory]) {
    for category in raw {
        let color = CategoryColor::from_name(&category.color).unwrap_or(CategoryColor::Grey);
        builder.push_category(&category.name, color, &category.subcategories);
    }
}

/// Adds the marker schemas and returns them by name.
pub(super) fn read_marker_schemas(
    builder: &mut ProfileBuilder,
    raw: Vec<RawMarkerSchema>,
) -> FxHashMap<String, MarkerSchemaId> {
    let mut ids = FxHashMap::default();
    for schema in raw {
        // Markers are found by the name, so a schema without one of its own is that of none.
        if schema.name.is_empty() || ids.contains_key(&schema.name) {
            continue;
        }
        ids.insert(schema.name.clone(), builder.add_marker_schema(read_marker_schema(schema)));
    }
    ids
}

fn read_marker_schema(raw: RawMarkerSchema) -> MarkerSchema {
    let old_description = raw
        .fields
        .iter()
        .find(|field| field.key.is_none() && field.label.as_deref() == Some("Description"))
        .and_then(|field| field.value.clone());
    let fields = raw.fields.into_iter().filter_map(|field| {
        let format = field.format.as_str().and_then(MarkerFormat::from_name);
        Some(MarkerField {
            key: field.key?,
            label: field.label,
            format: format.unwrap_or(MarkerFormat::String),
        })
    });
    MarkerSchema {
        name: raw.name,
        display: raw.display.iter().filter_map(|place| MarkerDisplay::from_name(place)).collect(),
        fields: fields.collect(),
        tooltip_label: raw.tooltip_label,
        table_label: raw.table_label,
        chart_label: raw.chart_label,
        description: raw.description.or(old_description),
        is_stack_based: raw.is_stack_based,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_99_days_are_exact() {
        let last = 1_000_000 << 33;
        let steps = (0..60).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let many = (0..10_000).map(|number| last - 1 - number * 7_919_777);
        for time in steps.chain(many).filter(|&time| time < last) {
            // As it is written.
            let text = format!("{}.{:06}", time / 1_000_000, time % 1_000_000);
            assert_eq!(nanoseconds(text.parse().unwrap()), time, "{text}");
        }
        for invalid in [-1.5, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(nanoseconds(invalid), 0);
        }
        assert_eq!(nanoseconds(f64::INFINITY), u64::MAX);
        assert_eq!(nanoseconds(1e300), u64::MAX);
    }
}
