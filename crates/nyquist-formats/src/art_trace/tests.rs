//! Tests with traces that are made by the description of their layouts.

use super::read_value;
use crate::error::Note;
use crate::test_profile::stacks_of;
use crate::{Format, detect};

const METHODS: [(u32, &str); 3] = [
    (0x10, "0x10\tapp.Main\tmain\t([Ljava/lang/String;)V\tMain.java"),
    (0x14, "0x14\tapp.Main\twork\t()V\tMain.java"),
    (0x18, "0x18\tjava.lang.String\tconcat\t()V\tString.java"),
];

/// Thread, method with its action, CPU and wall time in µs. The thread waits from 300 to 900 µs.
const CALLS: [(u16, u32, u32, u32); 9] = [
    (7, 0x18 | 1, 50, 50),
    (7, 0x10, 100, 100),
    (7, 0x14, 200, 200),
    (7, 0x18, 250, 250),
    // An exception ends both of them.
    (7, 0x14 | 2, 300, 900),
    (8, 0x10, 10, 200),
    (8, 0x10 | 1, 20, 300),
    (7, 0x10 | 1, 400, 1000),
    (8, 0x14, 30, 400),
];

fn sections(clock: &str) -> String {
    let methods: String = METHODS.iter().map(|(_, line)| format!("{line}\n")).collect();
    format!(
        "*version\n3\nclock={clock}\nvm=art\npid=7\n*threads\n7\tmain\n8\tpool 1\n*methods\n{methods}*end\n"
    )
}

fn header(version: u16, record: u16) -> Vec<u8> {
    let mut out =
        [&b"SLOW"[..], &version.to_le_bytes(), &32_u16.to_le_bytes(), &[1; 8], &record.to_le_bytes()]
            .concat();
    out.resize(32, 0);
    out
}

fn records(has_cpu: bool, has_wall: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for (thread, method, cpu, wall) in CALLS {
        out.extend(thread.to_le_bytes());
        out.extend(method.to_le_bytes());
        out.extend(
            [(has_cpu, cpu), (has_wall, wall)]
                .iter()
                .filter(|(has, _)| *has)
                .flat_map(|(_, time)| time.to_le_bytes()),
        );
    }
    out
}

/// A trace with both clocks.
pub(crate) fn dual() -> Vec<u8> {
    [sections("dual").into_bytes(), header(3, 14), records(true, true)].concat()
}

/// A streamed trace, which names methods and threads where they first occur.
fn streamed() -> Vec<u8> {
    let mut out = header(0xf3, 14);
    for (_, line) in METHODS {
        let line = format!("{line}\n");
        out.extend([&[0, 0, 1][..], &(line.len() as u16).to_le_bytes(), line.as_bytes()].concat());
    }
    for (tid, name) in [(7_u16, "main"), (8, "pool 1")] {
        out.extend(
            [&[0, 0, 2][..], &tid.to_le_bytes(), &(name.len() as u16).to_le_bytes(), name.as_bytes()]
                .concat(),
        );
    }
    out.extend(records(true, true));
    let text = "*version\n3\nclock=dual\npid=7\n*threads\n*methods\n*end\n";
    out.extend([&[0, 0, 3][..], &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat());
    out
}

#[test]
fn methods_have_the_time_of_either_clock() {
    let wall = [
        "app.Main.main 300",
        "app.Main.main;app.Main.work 50",
        "app.Main.main;app.Main.work;java.lang.String.concat 650",
    ];
    let cpu = [
        "app.Main.main 21",
        "app.Main.main;app.Main.work 5",
        "app.Main.main;app.Main.work;java.lang.String.concat 5",
    ];
    for bytes in [dual(), streamed()] {
        assert_eq!(detect(&bytes, "x"), Some(Format::ArtTrace));
        let read = read_value(&bytes, None).unwrap();
        let profile = &read.profile;
        let in_us = |lines: Vec<String>| -> Vec<String> {
            let scale = profile.meta().interval / 1000;
            let scaled = |line: String| {
                let (stack, weight) = line.rsplit_once(' ').unwrap();
                format!("{stack} {}", weight.parse::<u64>().unwrap() * scale)
            };
            lines.into_iter().map(scaled).collect()
        };
        assert_eq!(in_us(stacks_of(profile)), wall);
        assert!(!profile.meta().measure.is_cpu_time());
        let left_out = Note::LeftOut { count: 1, what: "ends of methods that began before the trace".into() };
        assert_eq!(read.notes, [left_out]);
        let names: Vec<_> = profile.threads().iter().map(|thread| &*thread.name).collect();
        assert_eq!((names, &*profile.processes()[0].pid), (vec!["main", "pool 1"], "7"));
        let of_cpu = read_value(&bytes, Some("CPU time")).unwrap().profile;
        assert_eq!(
            (stacks_of(&of_cpu), of_cpu.meta().measure.is_cpu_time()),
            (cpu.map(str::to_owned).to_vec(), true)
        );
    }
}

#[test]
fn one_clock_is_what_the_trace_says() {
    let of =
        |clock: &str, (cpu, wall)| [sections(clock).into_bytes(), header(2, 0), records(cpu, wall)].concat();
    let measure = |bytes: &[u8]| read_value(bytes, None).unwrap().profile.meta().measure.is_cpu_time();
    assert!(measure(&of("thread-cpu", (true, false))) && !measure(&of("wall", (false, true))));
}

#[test]
fn a_trace_that_is_cut_off_says_so() {
    for bytes in [dual(), streamed()] {
        let cut = Note::Cut { place: "its last record".into() };
        let read = read_value(&bytes[..bytes.len() - 3], None).unwrap();
        assert!(read.notes.contains(&cut));
        assert!((0..bytes.len()).all(|end| read_value(&bytes[..end], None).is_ok() || end < bytes.len()));
    }
    assert!(read_value(&header(9, 14), None).unwrap_err().to_string().contains("version 9"));
    assert!(read_value(b"*version\n3\n*end\n", None).is_err());
}
