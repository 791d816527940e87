//! Tests of the reasons of waits in a whole profile: stacks and markers.

use super::name_waits;
use nyquist_profile::{
    CategoryId, Marker, MarkerField, MarkerFormat, MarkerSchema, MarkerTiming, MarkerValue, Meta, Process,
    Profile, ProfileBuilder, Thread, well_known,
};

/// A profile with one wait at each stack: its functions, outermost first, end in the reason. Each has a marker with a
/// holder.
fn profile_of_waits(stacks: &[&[&str]]) -> ProfileBuilder {
    let mut builder = ProfileBuilder::new(Meta::default());
    let process = builder.add_process(Process::default());
    let thread = builder.add_thread(Thread::new(process, "1", "main"));
    let field = |key: &str| MarkerField { key: key.to_owned(), label: None, format: MarkerFormat::String };
    let fields = ["reason", "object", "holder", "waker"].map(field).to_vec();
    let name = well_known::WAIT_SCHEMA.to_owned();
    let schema = builder.add_marker_schema(MarkerSchema { name, fields, ..MarkerSchema::default() });
    for stack in stacks {
        let stack = stack.iter().fold(None, |prefix, name| Some(builder.intern_label(prefix, name, None)));
        let text =
            |builder: &mut ProfileBuilder, text: &str| MarkerValue::String(builder.intern_string(text));
        let values = ["futex", "0x10", "holds (2)"].map(|value| text(&mut builder, value));
        let values = values.into_iter().chain([MarkerValue::Missing]).collect();
        let name = builder.intern_string("Wait: futex");
        let (timing, category) = (MarkerTiming::Interval(0, 9), CategoryId::from_index(0));
        builder.add_marker(thread, Marker { name, timing, category, schema: Some(schema), values, stack });
    }
    builder
}

/// Each marker's stack, outermost function first, its name, and its values.
fn marker_lines(profile: &Profile) -> Vec<String> {
    let line = |marker: &Marker| {
        let stack = marker.stack.into_iter().flat_map(|stack| profile.stack_frames(stack));
        let mut names: Vec<_> = stack.map(|frame| profile.func_name(frame.func)).collect();
        names.reverse();
        let values = marker.values.iter().map(|value| match value {
            MarkerValue::String(id) => profile.string(*id),
            _ => "-",
        });
        let values: Vec<_> = values.collect();
        format!("{} | {} | {}", names.join(";"), profile.string(marker.name), values.join(" "))
    };
    profile.threads()[0].markers.iter().map(line).collect()
}

#[test]
fn stacks_and_markers_get_the_reason() {
    const FUTEX: &str = "[waiting: futex]";
    let mut builder = profile_of_waits(&[
        &["main", "pthread_mutex_lock", FUTEX],
        &["main", "std::sys::sync::mutex::futex::Mutex::lock_contended", FUTEX],
        &["tokio::runtime::scheduler::multi_thread::park::Inner::park_condvar", FUTEX],
        &["main", "work", FUTEX],
        &["main", "work", "[waiting: pipe]"],
    ]);
    name_waits(&mut builder);
    let expected = [
        "main;pthread_mutex_lock;[waiting: lock] | Wait: lock | lock 0x10 holds (2) -",
        "main;std::sys::sync::mutex::futex::Mutex::lock_contended;[waiting: lock] | Wait: lock | lock 0x10 - -",
        "tokio::runtime::scheduler::multi_thread::park::Inner::park_condvar;[idle: Tokio] | Wait: idle: Tokio | idle: Tokio - - -",
        "main;work;[waiting: futex] | Wait: futex | futex 0x10 - -",
    ];
    assert_eq!(marker_lines(builder.profile())[..4], expected);
    let categories: Vec<_> = builder.profile().categories().iter().map(|category| &*category.name).collect();
    assert_eq!(categories, ["Other", "Waiting", "Idle workers"]);
    // Names may be looked up again.
    name_waits(&mut builder);
    assert_eq!(marker_lines(&builder.finish())[..4], expected);
}
