//! Tracepoints as markers with their fields, and `kmem:rss_stat` as counters.

use std::sync::Arc;

use nyquist_perf::file::{self, TracepointFormat, Tracepoints};
use nyquist_profile::{CounterGraph, GraphColor, MarkerDisplay, MarkerField, MarkerSchema};
use rustc_hash::FxHashMap;

use crate::decode::perf::{field_value, marker_format, shown_fields};
use crate::event::{Counter, CounterKind, EventKind, Marker, MarkerTiming, Pid, Tid, Track};

/// The marker kinds that were made for tracepoints so far.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// The kinds of markers, and their names, by the numbers of the tracepoints.
    kinds: FxHashMap<u64, (Arc<MarkerSchema>, Arc<str>)>,
    counters: FxHashMap<usize, Arc<CounterKind>>,
}

impl Marks {
    /// The event of a tracepoint's raw data. `None` if its format is not known, or if it is not about the
    /// sampled process.
    pub(crate) fn event(
        &mut self,
        tracepoints: &Tracepoints,
        tracepoint: u64,
        raw: &[u8],
        (pid, tid): (Pid, Tid),
    ) -> Option<EventKind> {
        let format = tracepoints.get(tracepoint)?;
        if (format.system.as_str(), format.name.as_str()) == ("kmem", "rss_stat") {
            return self.memory(tracepoints, format, raw, pid);
        }
        let (schema, name) = self.kinds.entry(tracepoint).or_insert_with(|| kind(format));
        let values = shown_fields(format).map(|field| field_value(tracepoints.value(field, raw))).collect();
        Some(EventKind::Marker(Box::new(Marker {
            pid,
            track: Track::Thread(tid),
            name: Arc::clone(name),
            timing: MarkerTiming::Instant,
            schema: Some(Arc::clone(schema)),
            values,
            category: None,
        })))
    }

    /// The amount of one kind of memory of a process (`TRACE_EVENT(rss_stat)` in Linux's
    /// `include/trace/events/kmem.h`).
    fn memory(
        &mut self,
        tracepoints: &Tracepoints,
        format: &TracepointFormat,
        raw: &[u8],
        pid: Pid,
    ) -> Option<EventKind> {
        /// The kinds of memory (`enum` in `include/linux/mm_types_task.h`).
        const MEMORY: [&str; 4] = ["file pages", "anonymous pages", "swap entries", "shared memory pages"];
        let number = |name: &str| match tracepoints.value(format.field(name)?, raw)? {
            file::FieldValue::Integer(number) => Some(number),
            file::FieldValue::Text(_) => None,
        };
        // The memory that changes may be another process's.
        if number("curr") != Some(1) {
            return None;
        }
        let member = usize::try_from(number("member")?).ok()?;
        let what = MEMORY.get(member)?;
        let kind = self.counters.entry(member).or_insert_with(|| {
            Arc::new(CounterKind {
                name: format!("Resident {what}"),
                unit: "bytes".to_owned(),
                category: "Memory".to_owned(),
                description: format!("Memory of the process that is resident: {what}"),
                graph: CounterGraph::Accumulated,
                color: GraphColor::Orange,
                order: 0,
                accompanies: false,
            })
        });
        let value = number("size")? as f64;
        Some(EventKind::Counter(Counter { pid, kind: Arc::clone(kind), value }))
    }
}

fn kind(format: &TracepointFormat) -> (Arc<MarkerSchema>, Arc<str>) {
    let name = format!("{}:{}", format.system, format.name);
    let field = |field: &file::TracepointField| MarkerField {
        key: field.name.clone(),
        label: None,
        format: marker_format(field),
    };
    let schema = MarkerSchema {
        name: name.clone(),
        display: vec![MarkerDisplay::Chart, MarkerDisplay::Table, MarkerDisplay::TimelineOverview],
        fields: shown_fields(format).map(field).collect(),
        ..MarkerSchema::default()
    };
    (Arc::new(schema), name.into())
}
