//! Chrome's trace event format, as Perfetto and `chrome://tracing` take it.
//!
//! It is described in <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.

mod event;
mod read;
mod write;

pub use read::read;
pub use write::write;

/// The category of functions in which a thread waits.
const OFF_CPU: &str = "off-cpu";

#[cfg(test)]
mod tests {
    use super::{read, write};
    use crate::test_profile::{profile, stacks_of, waits_of};
    use serde_json::Value;

    fn written() -> Vec<u8> {
        let mut out = Vec::new();
        write(&profile(), &crate::as_named, &mut out).unwrap();
        out
    }

    #[test]
    fn what_is_written_is_read_again() {
        let imported = read(&written()).unwrap();
        assert_eq!(imported.notes, []);
        assert_eq!(stacks_of(&imported.profile), stacks_of(&profile()));
        assert_eq!(waits_of(&imported.profile), waits_of(&profile()));
        let names: Vec<_> =
            imported.profile.threads().iter().map(|thread| (&*thread.tid, &*thread.name)).collect();
        assert_eq!(names, [("77", "app"), ("79", "pool 1")]);
        assert_eq!(imported.profile.processes()[0].name, "app");
    }

    #[test]
    fn every_begin_has_an_end_and_times_do_not_go_backwards() {
        let document: Value = serde_json::from_slice(&written()).unwrap();
        let events = document["traceEvents"].as_array().unwrap();
        for tid in [77, 79] {
            let (mut open, mut time) = (Vec::new(), 0.0);
            for event in events.iter().filter(|event| event["tid"] == tid && event["ph"] != "M") {
                let at = event["ts"].as_f64().unwrap();
                assert!(at >= time, "{event}");
                time = at;
                match event["ph"].as_str() {
                    Some("B") => open.push(event["name"].clone()),
                    Some("E") => assert!(open.pop().is_some(), "{event}"),
                    _ => panic!("{event}"),
                }
            }
            assert!(open.is_empty());
        }
    }
}
