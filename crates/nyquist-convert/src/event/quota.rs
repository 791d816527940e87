//! Markers for intervals in which a control group had used up its CPU time.

use super::ids::Pid;
use super::marker::{FieldValue, Marker, MarkerTiming, Track};
use super::timestamp::Timestamp;
use nyquist_profile::{MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema, well_known};
use std::sync::{Arc, LazyLock};

/// The marker of such an interval, which ends at the event's time. `held_up_ns` is how long the group was held up in
/// it: the sum of its CPUs. The marker is on a track of the process.
pub fn quota_marker(pid: Pid, start: Timestamp, group: &Arc<str>, held_up_ns: u64) -> Marker {
    Marker {
        pid,
        track: Track::Named("CPU quota".into()),
        name: "CPU quota used up".into(),
        timing: MarkerTiming::Interval { start },
        schema: Some(Arc::clone(&SCHEMA)),
        values: vec![FieldValue::String(Arc::clone(group)), FieldValue::Number(held_up_ns as f64 / 1e6)],
        category: None,
    }
}

static SCHEMA: LazyLock<Arc<MarkerSchema>> = LazyLock::new(|| {
    let field = |key: &str, label: &str, format| MarkerField {
        key: key.to_owned(),
        label: Some(label.to_owned()),
        format,
    };
    Arc::new(MarkerSchema {
        name: well_known::QUOTA_SCHEMA.to_owned(),
        display: vec![MarkerDisplay::Chart, MarkerDisplay::Table, MarkerDisplay::TimelineOverview],
        fields: vec![
            field("group", "Control group", MarkerFormat::String),
            field("throttled", "Held up, all CPUs together", MarkerFormat::Duration),
        ],
        table_label: Some("{marker.data.group}".to_owned()),
        description: Some(
            "The control group had used up its CPU time, so that the kernel held it up.".to_owned(),
        ),
        ..MarkerSchema::default()
    })
});
