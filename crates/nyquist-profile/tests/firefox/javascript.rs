//! JavaScript is told apart from native code, so that the front end has its switch between them.

use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use nyquist_profile::{Frame, Func, FuncKind, Meta, Process, Profile, ProfileBuilder, Sample, Thread};
use serde_json::{Value, json};

/// A profile with a stack of functions of these kinds.
fn profile(functions: &[(&str, FuncKind)]) -> Profile {
    let mut builder = ProfileBuilder::new(Meta::default());
    let process = builder.add_process(Process::default());
    let thread = builder.add_thread(Thread::new(process, "1", "main"));
    let mut stack = None;
    for &(name, kind) in functions {
        let name = builder.intern_string(name);
        let func = builder.intern_func(Func { kind, ..Func::new(name, None) });
        let frame = builder.intern_frame(Frame::label(func));
        stack = Some(builder.intern_stack(stack, frame));
    }
    builder.add_sample(thread, Sample::new(1, stack, 1));
    builder.finish()
}

fn write(profile: &Profile, version: FormatVersion) -> Value {
    let mut written = Vec::new();
    firefox::write(profile, WriteOptions { version, gzip: false }, &mut written).unwrap();
    assert_eq!(firefox::check_bytes(&written).unwrap(), [], "{version}");
    serde_json::from_slice(&written).unwrap()
}

/// The functions' table, and whether the front end is told that it needs no switch.
fn written(functions: &[(&str, FuncKind)], version: FormatVersion) -> (Value, Value) {
    let document = write(&profile(functions), version);
    let tables = if version == FormatVersion::V49 { &document["threads"][0] } else { &document["shared"] };
    (tables["funcTable"].clone(), document["meta"]["usesOnlyOneStackType"].clone())
}

const MIXED: [(&str, FuncKind); 3] = [
    ("main", FuncKind::Native),
    ("fib", FuncKind::JavaScript),
    ("Element.click", FuncKind::RelevantForJavaScript),
];

#[test]
fn javascript_is_marked_and_has_a_switch() {
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let (funcs, one_type) = written(&MIXED, version);
        assert_eq!(funcs["isJS"], json!([false, true, false]), "{version}");
        assert_eq!(funcs["relevantForJS"], json!([false, false, true]), "{version}");
        assert_eq!(one_type, json!(false), "{version}");
        let (funcs, one_type) = written(&MIXED[..1], version);
        assert_eq!((&funcs["isJS"], &one_type), (&json!([false]), &json!(true)), "{version}");
    }
}

#[test]
fn whose_code_it_is_comes_back() {
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let document = write(&profile(&MIXED), version).to_string();
        let read = firefox::read(document.as_bytes()).unwrap();
        let kinds: Vec<_> = read.funcs().iter().map(|func| (read.string(func.name), func.kind)).collect();
        assert_eq!(kinds, MIXED, "{version}");
    }
}
