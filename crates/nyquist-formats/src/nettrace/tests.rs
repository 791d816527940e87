//! Tests with a trace that is made by the description of the format.

use super::read_value;
use crate::error::Note;
use crate::test_profile::stacks_of;
use crate::{Format, detect};
use nyquist_test_support::nettrace::{self as made, trace};

/// What a thread does between two samples is what `dotnet-trace convert` states for it.
#[test]
fn samples_stand_for_the_time_until_the_next() {
    let bytes = trace();
    assert_eq!(detect(&bytes, "x"), Some(Format::NetTrace));
    let read = read_value(&bytes, None).unwrap();
    assert_eq!(read.notes, []);
    let (main, work) = ("My.App.Main(int32)", "My.App.Work(int32)");
    let expected = ["0x9999 2".into(), format!("{main};{work} 3"), format!("{main};[unmanaged code] 2")];
    assert_eq!(stacks_of(&read.profile), expected);
    let profile = &read.profile;
    assert_eq!(profile.meta().interval, 1_000_000);
    assert_eq!(profile.meta().start_time, 1_709_168_523_004_000);
    assert!(!profile.meta().measure.is_cpu_time());
    assert_eq!((&*profile.processes()[0].name, &*profile.processes()[0].pid), ("app", "4321"));
    assert_eq!(profile.libs()[0].name, "My.App.dll");
}

#[test]
fn allocations_are_another_value() {
    let read = read_value(&trace(), Some("allocated")).unwrap();
    assert_eq!(stacks_of(&read.profile), ["My.App.Main(int32) 1"]);
    assert_eq!(read.profile.meta().interval, 100_000);
    let error = read_value(&trace(), Some("x")).unwrap_err().to_string();
    assert_eq!(error, "its samples have no value `x`, but wall time, allocated");
}

#[test]
fn a_trace_that_is_cut_off_says_so() {
    let bytes = trace();
    let cut = Note::Cut { place: "its end".into() };
    for end in 0..bytes.len() {
        if let Ok(read) = read_value(&bytes[..end], None) {
            assert_eq!(read.notes, std::slice::from_ref(&cut), "{end}");
        }
    }
}

#[test]
fn other_versions_are_refused_by_name() {
    let error = read_value(b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0", None).unwrap_err().to_string();
    assert!(
        error.starts_with("it is a trace of .NET (.nettrace) of version 6, and 4 and 5 are read"),
        "{error}"
    );
    assert!(read_value(b"Nettrace", None).is_err());
}

/// A name is processed once. If it were for each of its addresses, this would take hours.
#[test]
fn a_long_name_at_many_addresses_costs_once() {
    const COUNT: u32 = 100_000;
    let name = "x".repeat(1 << 19);
    let mut out = made::begin();
    let described = [
        made::described(1, "Microsoft-DotNETCore-SampleProfiler", 0),
        made::described(2, "Microsoft-Windows-DotNETRuntimeRundown", 144),
    ];
    made::object(&mut out, "MetadataBlock", &made::events(&described));
    let addresses: Vec<u64> = (0..u64::from(COUNT)).map(|at| 0x10_0000 + at).collect();
    let stacks: Vec<&[u64]> = addresses.chunks(1000).collect();
    made::object(&mut out, "StackBlock", &made::stack_block(1, &stacks));
    let samples: Vec<_> = (0..stacks.len()).map(|at| made::sample(7, at as u32 + 1, at as u64, 2)).collect();
    made::object(&mut out, "EventBlock", &made::events(&samples));
    made::object(&mut out, "EventBlock", &made::events(&[made::method(0x10_0000, COUNT, "a", &name)]));
    out.push(1);
    let profile = read_value(&out, None).unwrap().profile;
    assert_eq!((profile.funcs().len(), profile.stacks().len()), (1, 1000));
}
