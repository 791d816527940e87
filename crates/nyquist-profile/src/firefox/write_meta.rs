//! Writes the facts about the recording: `meta`, the categories and the marker schemas.

use std::io::Write;

use super::FormatVersion;
use super::first_view::FirstView;
use super::idle_category::IdleCategory;
use super::json::JsonWriter;
use super::wait_color::{COLOR_FIELD, has_colors};
use crate::category::{Category, CategoryColor, CategoryPair};
use crate::code::FuncKind;
use crate::id::CategoryId;
use crate::marker::{MarkerField, MarkerSchema};
use crate::meta::{ExtraInfo, Meta};
use crate::profile::Profile;

/// The version of the gecko format that corresponds to the processed profile.
const GECKO_VERSION: u64 = 24;

/// The default category: the first grey one.
pub(super) fn default_category(profile: &Profile) -> CategoryPair {
    let index = profile.categories().iter().position(|category| category.color == CategoryColor::Grey);
    CategoryId::from_index(index.unwrap_or(0)).into()
}

/// Writes the value of the member `meta`.
pub(super) fn write_meta<W: Write>(json: &mut JsonWriter<W>, profile: &Profile, version: FormatVersion) {
    let meta = profile.meta();
    json.object(|json| {
        json.key("preprocessedProfileVersion").integer(version.number().into());
        json.key("version").integer(GECKO_VERSION);
        json.key("processType").integer(0);
        json.key("stackwalk").integer(1);
        json.key("debug").boolean(false);
        // The front end has a switch between JavaScript and native code if a profile has both.
        let has_js = profile.funcs().iter().any(|func| func.kind == FuncKind::JavaScript);
        json.key("usesOnlyOneStackType").boolean(!has_js);
        json.key("sourceCodeIsNotOnSearchfox").boolean(true);
        if version == FormatVersion::V49 {
            json.key("doesNotUseFrameImplementation").boolean(true);
        }
        write_symbolication(json, profile);
        write_recording(json, meta, shown_end(profile));
        write_first_view(json, &FirstView::of(profile));
        write_machine(json, meta);
        let idle = IdleCategory::of(profile);
        let categories = profile.categories().iter().map(Some).chain(idle.map(|_| None));
        json.column("categories", categories, |json, category| match category {
            Some(category) => write_category(json, category),
            None => IdleCategory::write(json, profile),
        });
        json.column("markerSchema", profile.marker_schemas(), |json, schema| {
            write_marker_schema(json, schema, version);
        });
        write_extra(json, &meta.extra);
        json.key("nyquist").object(|json| {
            json.key("lostSamples").integer(meta.lost_samples);
            if !meta.measure.is_cpu_time() {
                json.key("measure").object(|json| {
                    json.key("name").string(&meta.measure.name);
                    json.key("unit").string(meta.measure.unit.as_str());
                });
            }
            if meta.has_exact_times {
                json.key("hasExactTimes").boolean(true);
            }
            if let Some(idle) = idle {
                json.key("idleCategory").integer(idle.index() as u64);
            }
        });
    });
}

/// If there is no lib with symbols to request, the file makes the front end request none.
fn write_symbolication<W: Write>(json: &mut JsonWriter<W>, profile: &Profile) {
    let symbolicated = profile.meta().symbolicated;
    let can_ask = profile.libs().iter().any(|lib| !lib.debug_name.is_empty() && !lib.breakpad_id.is_empty());
    json.key("symbolicated").boolean(symbolicated);
    if !symbolicated && !can_ask {
        json.key("symbolicationNotSupported").boolean(true);
    }
}

/// The end of the recording, if it is known. The front end shows the times before it, so it is after all samples,
/// also if what was read has samples after its end. A 64-bit float has no single nanoseconds of years.
fn shown_end(profile: &Profile) -> Option<u64> {
    let after = |last: u64| last.saturating_add(1 + (last >> 50));
    let last = profile.threads().iter().filter_map(|thread| Some(after(thread.samples.last()?.time))).max();
    profile.meta().profiling_end.map(|end| end.max(last.unwrap_or(0)))
}

fn write_recording<W: Write>(json: &mut JsonWriter<W>, meta: &Meta, end: Option<u64>) {
    json.key("product").string(&meta.product);
    // The front end divides by the interval.
    json.key("interval").milliseconds(meta.interval.max(1));
    // Microseconds are thousandths of a millisecond, so the two-step scale is exact.
    json.key("startTime").milliseconds(meta.start_time.saturating_mul(1_000));
    for (key, time) in [("profilingStartTime", meta.profiling_start), ("profilingEndTime", end)] {
        if let Some(time) = time {
            json.key(key).milliseconds(time);
        }
    }
    if meta.has_cpu_deltas {
        json.key("sampleUnits").object(|json| {
            json.key("time").string("ms");
            json.key("eventDelay").string("ms");
            json.key("threadCPUDelta").string("ns");
        });
    }
    write_texts(json, [("arguments", &meta.arguments), ("importedFrom", &meta.imported_from)]);
}

fn write_first_view<W: Write>(json: &mut JsonWriter<W>, view: &FirstView) {
    // The front end requires at least one of each, or none.
    let Some(selected) = view.selected else { return };
    json.column("initialVisibleThreads", &view.visible, |json, index| json.integer(*index as u64));
    json.column("initialSelectedThreads", [selected], |json, index| json.integer(index as u64));
}

fn write_machine<W: Write>(json: &mut JsonWriter<W>, meta: &Meta) {
    write_texts(
        json,
        [
            ("oscpu", &meta.oscpu),
            ("platform", &meta.platform),
            ("abi", &meta.abi),
            ("CPUName", &meta.cpu_name),
        ],
    );
    let counts = [
        ("logicalCPUs", meta.logical_cpus.map(u64::from)),
        ("physicalCPUs", meta.physical_cpus.map(u64::from)),
        ("mainMemory", meta.main_memory),
    ];
    for (key, count) in counts {
        if let Some(count) = count {
            json.key(key).integer(count);
        }
    }
}

fn write_texts<W: Write, const N: usize>(json: &mut JsonWriter<W>, texts: [(&str, &Option<String>); N]) {
    for (key, text) in texts {
        if let Some(text) = text {
            json.key(key).string(text);
        }
    }
}

fn write_category<W: Write>(json: &mut JsonWriter<W>, category: &Category) {
    json.object(|json| {
        json.key("name").string(&category.name);
        json.key("color").string(category.color.as_str());
        json.column("subcategories", &category.subcategories, |json, name| json.string(name));
    });
}

fn write_marker_schema<W: Write>(json: &mut JsonWriter<W>, schema: &MarkerSchema, version: FormatVersion) {
    json.object(|json| {
        json.key("name").string(&schema.name);
        json.column("display", &schema.display, |json, place| json.string(place.as_str()));
        write_texts(
            json,
            [
                ("tooltipLabel", &schema.tooltip_label),
                ("tableLabel", &schema.table_label),
                ("chartLabel", &schema.chart_label),
            ],
        );
        match version {
            FormatVersion::V49 => write_fields_v49(json, schema),
            FormatVersion::V66 => {
                json.column("fields", &schema.fields, write_field);
                write_texts(json, [("description", &schema.description)]);
                if has_colors(schema) {
                    json.key("colorField").string(COLOR_FIELD);
                }
                if schema.is_stack_based {
                    json.key("isStackBased").boolean(true);
                }
            }
        }
    });
}

/// Before version 55, the description was a field without a key.
fn write_fields_v49<W: Write>(json: &mut JsonWriter<W>, schema: &MarkerSchema) {
    let fields = schema.fields.iter().map(Ok).chain(schema.description.as_deref().map(Err));
    json.column("data", fields, |json, field| match field {
        Ok(field) => write_field(json, field),
        Err(description) => json.object(|json| {
            json.key("label").string("Description");
            json.key("value").string(description);
        }),
    });
}

fn write_field<W: Write>(json: &mut JsonWriter<W>, field: &MarkerField) {
    json.object(|json| {
        json.key("key").string(&field.key);
        write_texts(json, [("label", &field.label)]);
        json.key("format").string(field.format.as_str());
    });
}

/// Writes the lines of the information panel, grouped by heading.
fn write_extra<W: Write>(json: &mut JsonWriter<W>, extra: &[ExtraInfo]) {
    if extra.is_empty() {
        return;
    }
    let mut sections: Vec<&str> = Vec::new();
    for info in extra {
        if !sections.contains(&info.section.as_str()) {
            sections.push(&info.section);
        }
    }
    json.column("extra", sections, |json, section| {
        json.object(|json| {
            json.key("label").string(section);
            let entries = extra.iter().filter(|info| info.section == section);
            json.column("entries", entries, |json, info| {
                json.object(|json| {
                    json.key("label").string(&info.label);
                    json.key("format").string("string");
                    json.key("value").string(&info.value);
                });
            });
        });
    });
}
