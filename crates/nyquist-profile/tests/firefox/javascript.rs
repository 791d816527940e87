//! JavaScript is marked as such, so that the front end has its switch between JavaScript and native code.

use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use nyquist_profile::{
    CategoryColor, Frame, Func, FuncKind, Meta, Process, Profile, ProfileBuilder, Sample, Thread,
};
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

/// The functions' table, and whether the file states that the front end needs no switch.
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

/// A profile of two functions, each of which runs in the given categories.
fn tiers(functions: [(&str, &[&str]); 2]) -> Profile {
    let mut builder = ProfileBuilder::new(Meta::default());
    let process = builder.add_process(Process::default());
    let thread = builder.add_thread(Thread::new(process, "1", "main"));
    for (name, categories) in functions {
        let name = builder.intern_string(name);
        let func = builder.intern_func(Func { kind: FuncKind::JavaScript, ..Func::new(name, None) });
        for category in categories {
            let category = builder.add_category(category, CategoryColor::Green);
            let frame = builder.intern_frame(Frame { category: Some(category.into()), ..Frame::label(func) });
            let stack = builder.intern_stack(None, frame);
            builder.add_sample(thread, Sample::new(1, Some(stack), 1));
        }
    }
    builder.finish()
}

/// The front end draws a function whose rows have several categories in a neutral colour.
#[test]
fn each_tier_of_a_function_is_a_row_of_its_own() {
    let profile = tiers([("hot", &["Interpreted", "Optimized"]), ("cold", &["Interpreted"])]);
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let document = write(&profile, version);
        let tables =
            if version == FormatVersion::V49 { &document["threads"][0] } else { &document["shared"] };
        let functions: Vec<_> = tables["frameTable"]["func"].as_array().unwrap().iter().collect();
        assert_eq!(tables["funcTable"]["length"], 3, "{version}");
        assert!(functions[0] != functions[1], "{version}");
        let names = &tables["funcTable"]["name"];
        let name = |function: &Value| &names[function.as_u64().unwrap() as usize];
        assert_eq!(name(functions[0]), name(functions[1]), "{version}");
        let read = firefox::read(document.to_string().as_bytes()).unwrap();
        assert_eq!((read.funcs(), read.frames()), (profile.funcs(), profile.frames()), "{version}");
    }
}
