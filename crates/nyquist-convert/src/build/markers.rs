//! The marker stage: markers of events become those of the profile.

use crate::event;
use crate::event::{FieldValue, MarkerCategory};
use nyquist_profile::{
    CategoryColor, CategoryId, Marker, MarkerField, MarkerFormat, MarkerSchema, MarkerSchemaId, MarkerTiming,
    MarkerValue, ProcessIndex, ProfileBuilder, StackId, StringId, Thread, ThreadIndex, well_known,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// How many categories there may be: the Firefox Profiler stores a category in a byte, and frames need some
/// too.
const MAX_CATEGORIES: usize = 128;

/// The profile's entries for markers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Markers {
    schemas: FxHashMap<Arc<MarkerSchema>, MarkerSchemaId>,
    /// How many kinds of markers have requested each name.
    schema_names: FxHashMap<String, u32>,
    tracks: FxHashMap<(ProcessIndex, Arc<str>), ThreadIndex>,
}

/// A marker's contents, without its row and time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content<'a> {
    pub(crate) name: &'a str,
    pub(crate) schema: Option<&'a Arc<MarkerSchema>>,
    /// The values of the schema's fields, in the schema's order.
    pub(crate) values: &'a [FieldValue],
    pub(crate) category: Option<&'a MarkerCategory>,
    /// Where its thread was.
    pub(crate) stack: Option<StackId>,
}

impl<'a> From<&'a event::Marker> for Content<'a> {
    fn from(marker: &'a event::Marker) -> Self {
        Self {
            name: &marker.name,
            schema: marker.schema.as_ref(),
            values: &marker.values,
            category: marker.category.as_ref(),
            stack: None,
        }
    }
}

impl Markers {
    /// The thread of the profile that shows a process's track of that name. It is made at its first use.
    pub(crate) fn track(
        &mut self,
        builder: &mut ProfileBuilder,
        process: ProcessIndex,
        name: &Arc<str>,
    ) -> ThreadIndex {
        *self.tracks.entry((process, Arc::clone(name))).or_insert_with(|| {
            let tid = format!("{}:{name}", builder.profile().process(process).pid);
            builder.add_thread(Thread::new(process, tid, &**name))
        })
    }

    /// Adds a marker to a thread.
    pub(crate) fn add(
        &mut self,
        builder: &mut ProfileBuilder,
        thread: ThreadIndex,
        content: Content<'_>,
        timing: MarkerTiming,
    ) {
        let schema = content.schema.map(|schema| self.schema(builder, schema));
        let values = content.schema.iter().flat_map(|schema| &schema.fields).zip(content.values);
        let values = values.map(|(field, value)| fitting(builder, field.format, value)).collect();
        let name = builder.intern_string(content.name);
        let category = category(builder, content.category);
        builder.add_marker(thread, Marker { name, timing, category, schema, values, stack: content.stack });
    }

    fn schema(&mut self, builder: &mut ProfileBuilder, schema: &Arc<MarkerSchema>) -> MarkerSchemaId {
        if let Some(&id) = self.schemas.get(schema) {
            return id;
        }
        let name = self.unused_name(&schema.name);
        let row = MarkerSchema { name, fields: distinct(&schema.fields), ..(**schema).clone() };
        let id = builder.add_marker_schema(row);
        self.schemas.insert(Arc::clone(schema), id);
        id
    }

    /// A name for a kind of marker that no other kind has: the requested name, or this name with a number
    /// appended.
    fn unused_name(&mut self, requested: &str) -> String {
        let reserved = requested.is_empty() || MarkerSchema::RESERVED_NAMES.contains(&requested);
        let mut name = if reserved { format!("{requested}_") } else { requested.to_owned() };
        let base = name.clone();
        while self.schema_names.contains_key(&name) {
            let uses = self.schema_names.entry(base.clone()).or_default();
            *uses += 1;
            name = format!("{base}.{uses}");
        }
        self.schema_names.insert(name.clone(), 0);
        name
    }
}

/// Removes the ids of flows that only one marker has. They connect nothing, and a program that marks each of
/// its calls has millions of them. Linear in the markers.
pub(crate) fn drop_lonely_flows(builder: &mut ProfileBuilder) {
    let is_flow = |format| matches!(format, MarkerFormat::FlowId | MarkerFormat::TerminatingFlowId);
    let formats: Vec<Vec<bool>> = builder
        .profile()
        .marker_schemas()
        .iter()
        .map(|schema| schema.fields.iter().map(|field| is_flow(field.format)).collect())
        .collect();
    let threads = builder.profile().threads().len();
    let mut uses: FxHashMap<StringId, u32> = FxHashMap::default();
    for index in 0..threads {
        each_flow(builder.thread_mut(ThreadIndex::from_index(index)), &formats, |value| {
            if let MarkerValue::String(id) = value {
                *uses.entry(*id).or_default() += 1;
            }
        });
    }
    for index in 0..threads {
        each_flow(builder.thread_mut(ThreadIndex::from_index(index)), &formats, |value| {
            if matches!(value, MarkerValue::String(id) if uses.get(id) == Some(&1)) {
                *value = MarkerValue::Missing;
            }
        });
    }
}

fn each_flow(thread: &mut Thread, formats: &[Vec<bool>], mut each: impl FnMut(&mut MarkerValue)) {
    for marker in &mut thread.markers {
        let Some(is_flow) = marker.schema.and_then(|schema| formats.get(schema.index())) else { continue };
        for (value, _) in marker.values.iter_mut().zip(is_flow).filter(|(_, is_flow)| **is_flow) {
            each(value);
        }
    }
}

/// Converts the value to one that a field of this format can have.
fn fitting(builder: &mut ProfileBuilder, format: MarkerFormat, value: &FieldValue) -> MarkerValue {
    match value {
        FieldValue::Missing => MarkerValue::Missing,
        FieldValue::String(text) if format.takes_text() => MarkerValue::String(builder.intern_string(text)),
        FieldValue::Integer(number) if format.is_text() => {
            MarkerValue::String(builder.intern_string(&number.to_string()))
        }
        FieldValue::Number(number) if format.is_text() => {
            MarkerValue::String(builder.intern_string(&number.to_string()))
        }
        FieldValue::Integer(number) => MarkerValue::Integer(*number),
        FieldValue::Number(number) => MarkerValue::Number(*number),
        FieldValue::String(text) => number_in(text),
    }
}

/// The number that a text consists of, for a field that shows numbers.
fn number_in(text: &str) -> MarkerValue {
    match (text.parse(), text.parse()) {
        (Ok(integer), _) => MarkerValue::Integer(integer),
        (_, Ok(number)) => MarkerValue::Number(number),
        _ => MarkerValue::Missing,
    }
}

/// The fields with distinct keys, because the keys become properties of one object. Their labels stay
/// unchanged.
fn distinct(fields: &[MarkerField]) -> Vec<MarkerField> {
    let mut used: FxHashSet<String> = MarkerField::RESERVED_KEYS.map(str::to_owned).into_iter().collect();
    let mut distinct = Vec::with_capacity(fields.len());
    for field in fields {
        let mut field = field.clone();
        if used.contains(&field.key) {
            field.label.get_or_insert_with(|| field.key.clone());
            // The index in the schema is unique, whatever the other keys are.
            field.key = format!("{}.{}", field.key, distinct.len());
        }
        while !used.insert(field.key.clone()) {
            field.key.push('_');
        }
        distinct.push(field);
    }
    distinct
}

fn category(builder: &mut ProfileBuilder, category: Option<&MarkerCategory>) -> CategoryId {
    match category {
        Some(category) if builder.profile().categories().len() < MAX_CATEGORIES => {
            builder.add_category(&category.name, category.color)
        }
        _ => builder.add_category(well_known::OTHER, CategoryColor::Grey),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::test_events::{MS, at, converter};
    use crate::event::{Event, EventKind, Pid, Tid, Timestamp, Track};
    use nyquist_profile::{Meta, Profile};

    fn field(key: &str) -> MarkerField {
        MarkerField { key: key.to_owned(), label: None, format: MarkerFormat::String }
    }

    #[test]
    fn keys_become_distinct_and_keep_their_labels() {
        let check = |keys: &[&str], expected: &[&str]| {
            let fields: Vec<_> = keys.iter().map(|key| field(key)).collect();
            let distinct = distinct(&fields);
            let found: Vec<_> = distinct.iter().map(|field| field.key.as_str()).collect();
            assert_eq!(found, expected);
            let labels = distinct.iter().map(|field| field.label.as_deref().unwrap_or(&field.key));
            assert!(labels.eq(keys.iter().copied()), "{distinct:?}");
        };
        check(&["a", "b"], &["a", "b"]);
        check(&["type", "x", "cause"], &["type.0", "x", "cause.2"]);
        check(&["a", "a.2", "a"], &["a", "a.2", "a.2_"]);
    }

    #[test]
    fn values_fit_their_fields() {
        let mut builder = ProfileBuilder::new(Meta::default());
        let mut check = |format, value: FieldValue, expected: &str| {
            let text = match fitting(&mut builder, format, &value) {
                MarkerValue::String(id) => format!("{:?}", &builder.profile().strings()[id]),
                MarkerValue::Missing => "missing".to_owned(),
                MarkerValue::Integer(number) => number.to_string(),
                MarkerValue::Number(number) => format!("{number:?}"),
            };
            assert_eq!(text, expected, "{value:?} as {format:?}");
        };
        check(MarkerFormat::String, FieldValue::Integer(7), "\"7\"");
        check(MarkerFormat::FlowId, FieldValue::Number(0.5), "\"0.5\"");
        check(MarkerFormat::Integer, FieldValue::Integer(-7), "-7");
        check(MarkerFormat::Bytes, FieldValue::String("12".into()), "12");
        check(MarkerFormat::Decimal, FieldValue::String("1.5".into()), "1.5");
        check(MarkerFormat::Duration, FieldValue::String("long".into()), "missing");
        check(MarkerFormat::Pid, FieldValue::String("77.1".into()), "\"77.1\"");
        check(MarkerFormat::Url, FieldValue::Missing, "missing");
    }

    fn marker(track: Track, name: &str, timing: event::MarkerTiming) -> event::Marker {
        event::Marker {
            pid: Pid(1),
            track,
            name: name.into(),
            timing,
            schema: None,
            values: Vec::new(),
            category: None,
        }
    }

    fn marked(time_ms: u64, marker: event::Marker) -> Event {
        at(time_ms, EventKind::Marker(Box::new(marker)))
    }

    /// Each marker of each thread as "thread: name timing", with times in ms.
    fn markers(profile: &Profile) -> Vec<String> {
        let line = |thread: &Thread, marker: &Marker| {
            let timing = match marker.timing {
                MarkerTiming::Instant(time) => format!("at {}", time / MS),
                MarkerTiming::Interval(start, end) => format!("{} to {}", start / MS, end / MS),
                MarkerTiming::IntervalStart(time) => format!("from {}", time / MS),
                MarkerTiming::IntervalEnd(time) => format!("until {}", time / MS),
            };
            format!("{}: {} {timing}", thread.tid, profile.string(marker.name))
        };
        let mut lines = Vec::new();
        for thread in profile.threads() {
            lines.extend(thread.markers.iter().map(|marker| line(thread, marker)));
        }
        lines
    }

    #[test]
    fn markers_are_on_their_tracks_at_their_times() {
        let mut converter = converter();
        let thread = |tid| Track::Thread(Tid(tid));
        let since = |time: u64| event::MarkerTiming::Interval { start: Timestamp(time * MS) };
        converter.push(marked(9, marker(thread(1), "outer", since(2))));
        converter.push(marked(5, marker(thread(1), "inner", since(3))));
        converter.push(marked(4, marker(thread(2), "tick", event::MarkerTiming::Instant)));
        converter.push(marked(
            6,
            marker(Track::Named("tasks".into()), "task", event::MarkerTiming::IntervalStart),
        ));
        converter
            .push(marked(8, marker(Track::Named("tasks".into()), "task", event::MarkerTiming::IntervalEnd)));
        let profile = converter.finish().profile;
        assert_eq!(
            markers(&profile),
            [
                "2: tick at 4",
                "1: outer 2 to 9",
                "1: inner 3 to 5",
                "1:tasks: task from 6",
                "1:tasks: task until 8"
            ]
        );
        let main: Vec<_> = profile.threads().iter().map(|thread| thread.is_main).collect();
        assert_eq!(main, [false, true, false]);
    }

    #[test]
    fn kinds_of_one_name_that_differ_are_kept_apart() {
        let mut converter = converter();
        let schema = |name: &str, key: &str| {
            let field = MarkerField { key: key.to_owned(), label: None, format: MarkerFormat::Integer };
            Some(Arc::new(MarkerSchema {
                name: name.to_owned(),
                fields: vec![field],
                ..MarkerSchema::default()
            }))
        };
        for (name, key) in [("job", "a"), ("job", "b"), ("job", "a"), ("IPC", "a"), ("job.1", "x")] {
            let mut marker = marker(Track::Thread(Tid(1)), "m", event::MarkerTiming::Instant);
            marker.schema = schema(name, key);
            marker.values = vec![FieldValue::Integer(7)];
            converter.push(marked(1, marker));
        }
        let profile = converter.finish().profile;
        let names: Vec<_> = profile.marker_schemas().iter().map(|schema| schema.name.as_str()).collect();
        assert_eq!(names, ["job", "job.1", "IPC_", "job.1.1"]);
        let kinds = profile.threads()[0].markers.iter().map(|marker| marker.schema.unwrap().index());
        assert_eq!(kinds.collect::<Vec<_>>(), [0, 1, 0, 2, 3]);
        assert!(profile.threads()[0].markers.iter().all(|marker| marker.values == [MarkerValue::Integer(7)]));
    }

    #[test]
    fn an_id_that_only_one_marker_has_is_no_flow() {
        let mut converter = converter();
        let field = MarkerField { key: "flow".to_owned(), label: None, format: MarkerFormat::FlowId };
        let schema =
            Arc::new(MarkerSchema { name: "s".to_owned(), fields: vec![field], ..MarkerSchema::default() });
        for (time, id) in [(1, "a"), (2, "b"), (3, "a")] {
            let mut marker = marker(Track::Thread(Tid(time)), "m", event::MarkerTiming::Instant);
            marker.schema = Some(Arc::clone(&schema));
            marker.values = vec![FieldValue::String(id.into())];
            converter.push(marked(u64::from(time), marker));
        }
        let profile = converter.finish().profile;
        let values =
            profile.threads().iter().flat_map(|thread| &thread.markers).map(|marker| marker.values[0]);
        let flows = values.map(|value| matches!(value, MarkerValue::String(_)));
        assert_eq!(flows.collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn evicting_forgets_markers_that_are_over() {
        let mut converter = converter();
        let thread = Track::Thread(Tid(1));
        let since = |time: u64| event::MarkerTiming::Interval { start: Timestamp(time * MS) };
        converter.push(marked(1, marker(thread.clone(), "old", event::MarkerTiming::Instant)));
        converter.push(marked(2, marker(thread.clone(), "over", event::MarkerTiming::IntervalStart)));
        converter.push(marked(3, marker(thread.clone(), "over", event::MarkerTiming::IntervalEnd)));
        converter.push(marked(4, marker(thread.clone(), "open", event::MarkerTiming::IntervalStart)));
        converter.push(marked(9, marker(thread, "long", since(1))));
        converter.advance(Timestamp(100 * MS));
        converter.evict(Timestamp(8 * MS));
        assert_eq!(markers(&converter.finish().profile), ["1: long 1 to 9", "1: open from 4"]);
    }
}
