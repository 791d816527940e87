//! Makes markers from events of traces.

use nyquist_profile::{
    CategoryId, Marker, MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema, MarkerSchemaId, MarkerTiming,
    MarkerValue, ThreadIndex,
};
use std::rc::Rc;

use super::slices::{Args, Slice, durations};
use crate::import::Importer;

/// A marker of a trace.
pub(crate) struct TraceMarker<'a> {
    pub thread: ThreadIndex,
    pub name: Rc<str>,
    pub category: Rc<str>,
    pub timing: MarkerTiming,
    pub args: Args<'a>,
}

/// Adds markers of one schema.
#[derive(Default)]
pub(crate) struct TraceMarkers {
    schema: Option<MarkerSchemaId>,
}

impl TraceMarkers {
    /// Adds durations as markers, and returns the number of begins without an end and ends without a begin.
    pub(crate) fn add_durations(
        &mut self,
        importer: &mut Importer,
        thread: ThreadIndex,
        slices: Vec<Slice<'_>>,
    ) -> u64 {
        let (durations, left_out) = durations(slices);
        for (Slice { time, name, category, args, .. }, end) in durations {
            let timing = MarkerTiming::Interval(time, end.max(time));
            self.add(importer, &TraceMarker { thread, name, category, timing, args });
        }
        left_out
    }

    pub(crate) fn add(&mut self, importer: &mut Importer, marker: &TraceMarker<'_>) {
        let builder = importer.builder();
        let schema = *self.schema.get_or_insert_with(|| builder.add_marker_schema(trace_events()));
        let name = builder.intern_string(&marker.name);
        let category = MarkerValue::String(builder.intern_string(&marker.category));
        let args = marker.args.text();
        let args =
            args.map_or(MarkerValue::Missing, |args| MarkerValue::String(builder.intern_string(&args)));
        builder.add_marker(
            marker.thread,
            Marker {
                name,
                timing: marker.timing,
                category: CategoryId::from_index(0),
                schema: Some(schema),
                values: vec![category, args],
                stack: None,
            },
        );
    }
}

fn trace_events() -> MarkerSchema {
    let field = |key: &str, label: &str| MarkerField {
        key: key.into(),
        label: Some(label.into()),
        format: MarkerFormat::String,
    };
    MarkerSchema {
        name: "TraceEvent".into(),
        display: vec![MarkerDisplay::Chart, MarkerDisplay::Table],
        fields: vec![field("category", "Category"), field("args", "Arguments")],
        table_label: Some("{marker.data.args}".into()),
        ..MarkerSchema::default()
    }
}
