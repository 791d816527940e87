//! The kinds of markers that need no events of their own: intervals on CPUs, and functions made just in time.

use crate::event::MarkerCategory;
use nyquist_profile::{CategoryColor, MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema, well_known};
use std::sync::{Arc, LazyLock};

/// A stay on a CPU, on the thread's row.
pub(crate) static ON_CPU: LazyLock<Arc<MarkerSchema>> = LazyLock::new(|| {
    Arc::new(schema(
        "OnCpu",
        &[("cpu", "CPU", MarkerFormat::String), ("outwhy", "Switch-out reason", MarkerFormat::String)],
        ["{marker.data.cpu}", "{marker.name} - {marker.data.cpu}, switch-out reason: {marker.data.outwhy}"],
        "A thread ran on a CPU until it left it.",
    ))
});

/// A stay on a CPU, on the CPU's row.
pub(crate) static CONTEXT_SWITCH: LazyLock<Arc<MarkerSchema>> = LazyLock::new(|| {
    Arc::new(schema(
        "ContextSwitch",
        &[("thread", "Thread", MarkerFormat::String), ("outwhy", "Switch-out reason", MarkerFormat::String)],
        ["{marker.data.thread}", "{marker.name} - {marker.data.thread}"],
        "A CPU ran a thread until it switched to another one.",
    ))
});

/// A time off the CPU.
pub(crate) static WAIT: LazyLock<Arc<MarkerSchema>> = LazyLock::new(|| {
    let fields = [
        ("reason", "Waited for", MarkerFormat::String),
        ("object", "Which one", MarkerFormat::String),
        ("holder", "Held by", MarkerFormat::String),
        ("waker", "Woken by", MarkerFormat::String),
        (well_known::WAIT_UNSEEN, "Stands for earlier waits of", MarkerFormat::Duration),
    ];
    let labels = ["{marker.name} {marker.data.object}", "{marker.data.object}"];
    Arc::new(schema(well_known::WAIT_SCHEMA, &fields, labels, "A thread was off the CPU, with its stack."))
});

/// The category of waits and of their ends.
pub(crate) static WAITING: LazyLock<MarkerCategory> =
    LazyLock::new(|| MarkerCategory { name: well_known::WAITING.into(), color: CategoryColor::Grey });

/// The name of a marker for a time off the CPU, given its reason.
pub(crate) fn wait_marker_name(reason: &str) -> String {
    format!("Wait: {reason}")
}

/// The end of another thread's wait.
pub(crate) static WAKE: LazyLock<Arc<MarkerSchema>> = LazyLock::new(|| {
    let fields =
        [("thread", "Thread", MarkerFormat::String), ("waited", "It had waited", MarkerFormat::Duration)];
    let labels = ["{marker.name}", "{marker.data.thread}"];
    Arc::new(schema("Wake", &fields, labels, "A thread ended the wait of another one, with its own stack."))
});

/// Code that was made just in time.
pub(crate) static JIT_FUNCTION: LazyLock<Arc<MarkerSchema>> = LazyLock::new(|| {
    let label = "{marker.data.n}";
    let description = "Emitted when a JIT function is added to the process.";
    let fields = [("n", "Function", MarkerFormat::String)];
    Arc::new(schema("JitFunctionAdd", &fields, [label, label], description))
});

/// A kind of marker. `fields` are the keys, labels and formats of its fields. `labels` are the label of the
/// chart and the tooltip, and the label of the table.
pub(super) fn schema(
    name: &str,
    fields: &[(&str, &str, MarkerFormat)],
    labels: [&str; 2],
    description: &str,
) -> MarkerSchema {
    let [label, table_label] = labels.map(|label| Some(label.to_owned()));
    let field = |(key, label, format): &(&str, &str, MarkerFormat)| MarkerField {
        key: (*key).to_owned(),
        label: Some((*label).to_owned()),
        format: *format,
    };
    MarkerSchema {
        name: name.to_owned(),
        display: vec![MarkerDisplay::Chart, MarkerDisplay::Table],
        fields: fields.iter().map(field).collect(),
        tooltip_label: label.clone(),
        table_label,
        chart_label: label,
        description: Some(description.to_owned()),
        is_stack_based: false,
    }
}
