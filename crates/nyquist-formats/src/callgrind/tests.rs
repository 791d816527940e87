//! Tests of callgrind's format.

use nyquist_profile::{Measure, Profile, Unit};

use super::{read, read_value, write};
use crate::error::Note;
use crate::test_profile::{profile, stacks_of};

/// A program of three functions, with all notations of the format for names and positions.
const FILE: &str = "# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 7
cmd:  ./app 100
part: 1

desc: Trigger: Program termination

positions: instr line
events: Ir Time_(10ns) Memory_(bytes)
summary: 1000 20 0

ob=(1) /bin/app
fl=(1) app.c
fn=(1) main
0x1000 16 10 1
+4 +1 5
cob=(2) /lib/libc.so.6
cfi=(2) work.c
cfn=(2) work
calls=3 0x2000 30
+0 * 600 12
cfn=(3) (anonymous namespace)::helper
calls=1 0 40
* +2 385
jcnd=3/7 +4 +1
* *
fn=(3)
0x1100 40 300 7 -64
fi=(3) inlined.h
+4 5 85
fe=(1)
+4 41 0

ob=(2)
fl=(2)
fn=(2)
0x2000 30 600

totals: 1000 20 0
";

fn line_of(profile: &Profile, function: &str) -> Vec<(String, Option<u32>)> {
    let frames = profile.frames().iter().filter(|frame| profile.func_name(frame.func) == function);
    let mut lines: Vec<_> = frames
        .map(|frame| {
            let source = profile.frame_source(frame).map(|source| profile.source(source).filename);
            (source.map_or_else(String::new, |name| profile.string(name).to_owned()), frame.line)
        })
        .collect();
    lines.sort();
    lines.dedup();
    lines
}

#[test]
fn names_and_positions_may_be_relative() {
    let imported = read(FILE.as_bytes()).unwrap();
    assert_eq!(imported.notes, []);
    let profile = imported.profile;
    let measure = Measure { name: "Ir".into(), unit: Unit::Count };
    assert_eq!((&profile.meta().measure, profile.meta().interval), (&measure, 5));
    let stacks = ["main 3", "main;(anonymous namespace)::helper 77", "main;work 120"];
    assert_eq!(stacks_of(&profile), stacks);
    let file = |name: &str, line| (name.to_owned(), Some(line));
    let helper = [file("app.c", 40), file("inlined.h", 5)];
    assert_eq!(line_of(&profile, "(anonymous namespace)::helper"), helper);
    let main: Vec<_> = line_of(&profile, "main");
    assert_eq!(main, [file("app.c", 16), file("app.c", 17), file("app.c", 19)]);
    let libs: Vec<_> = profile.libs().iter().map(|lib| &*lib.path).collect();
    assert_eq!(libs, ["/bin/app", "/lib/libc.so.6"]);
    assert_eq!((&*profile.processes()[0].name, &*profile.threads()[0].tid), ("app", "7"));
}

#[test]
fn an_event_is_chosen_by_its_name() {
    let profile = read_value(FILE.as_bytes(), Some("Time")).unwrap().profile;
    let measure = Measure { name: "Time".into(), unit: Unit::Time };
    assert_eq!((&profile.meta().measure, profile.meta().interval), (&measure, 10));
    let memory = read_value(FILE.as_bytes(), Some("Memory"));
    assert_eq!(memory.unwrap().notes[0].to_string(), "left out: 1 negative costs");
    let error = read_value(FILE.as_bytes(), Some("Dr")).unwrap_err().to_string();
    assert_eq!(error, "its samples have no value `Dr`, but Ir, Time, Memory");
}

#[test]
fn threads_are_distinguished() {
    let part = |thread: u32, cost: u32| {
        format!("part: 1\nthread: {thread}\nevents: Ir\nfl=a.c\nfn=main\n1 {cost}\n\n")
    };
    let text = format!("version: 1\npid: 9\ncmd: ./x\n{}{}{}", part(1, 10), part(2, 30), part(1, 10));
    let profile = read(text.as_bytes()).unwrap().profile;
    let threads: Vec<_> =
        profile.threads().iter().map(|it| (&*it.tid, &*it.name, it.samples.len())).collect();
    assert_eq!(threads, [("9", "x", 1), ("9.2", "x 2", 1)]);
    assert_eq!(stacks_of(&profile), ["main 5"]);
}

#[test]
fn what_has_no_costs_is_refused() {
    for text in ["", "version: 1\n", "events: Ir\nfn=main\n", "fn=main\n1 2\n", "events:\nfn=a\n1 2\n"] {
        assert!(read(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    let mut out = Vec::new();
    write(&profile(), &crate::as_named, &mut out).unwrap();
    let imported = read(&out).unwrap();
    assert_eq!(imported.notes, []);
    let read = imported.profile;
    assert!(read.meta().measure.is_cpu_time());
    let expected = ["app (pid 77);main 2", "app (pid 77);main;inlined; x;write 4", "app (pid 77);worker 1"];
    assert_eq!(stacks_of(&read), expected);
    assert_eq!(line_of(&read, "main"), [("/src/main.c".to_owned(), Some(17))]);
    let waits = read_value(&out, Some("off_CPU")).unwrap().profile;
    assert_eq!(stacks_of(&waits), ["app (pid 77);main;inlined; x;write 1"]);
    assert_eq!((waits.meta().interval, waits.meta().measure.name.as_str()), (3_000_000, "off_CPU"));
}

#[test]
fn a_function_that_recurs_counts_once() {
    use nyquist_profile::{Meta, Process, ProfileBuilder, Sample, Thread};
    let mut builder = ProfileBuilder::new(Meta { interval: 1, ..Meta::default() });
    let process = builder.add_process(Process { pid: "1".into(), name: "p".into(), ..Process::default() });
    let thread = builder.add_thread(Thread::new(process, "1", "p"));
    let mut stack = None;
    for name in ["main", "f", "f", "g", "f", "h"] {
        stack = Some(builder.intern_label(stack, name, None));
    }
    builder.add_sample(thread, Sample { weight: 7, ..Sample::new(0, stack, 0) });
    let mut out = Vec::new();
    write(&builder.finish(), &crate::as_named, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let calls: Vec<_> = text.lines().filter(|line| line.starts_with("cfn=")).collect();
    // The outermost call of each function, by its caller.
    assert_eq!(calls, ["cfn=(1) main", "cfn=(2) f", "cfn=(3) g", "cfn=(4) h"]);
}

/// callgrind_annotate says `Profiled target:  ./my app 100`, and the object is the program.
#[test]
fn a_program_s_name_may_have_spaces() {
    let name = |text: &str| read(text.as_bytes()).unwrap().profile.processes()[0].name.clone();
    assert_eq!(name(FILE), "app");
    let spaced = FILE.replace("./app 100", "./my app 100").replace("/bin/app", "/bin/my app");
    assert_eq!(name(&spaced), "my app");
    assert_eq!(name(&FILE.replace("./app 100", "./other app")), "other");
}

#[test]
fn a_file_that_is_cut_off_says_so() {
    let notes = |text: &str| read(text.as_bytes()).unwrap().notes;
    let cut = [Note::Cut { place: "its end".into() }];
    let (sums, last) = (FILE.find("\ntotals").unwrap(), FILE.rfind("600").unwrap());
    assert_eq!(notes(FILE), []);
    assert_eq!(notes(&FILE[..sums]), cut);
    assert_eq!(notes(&FILE[..last + 3]), cut);
    // Only callgrind itself is known to end with sums.
    let other = FILE.replace("callgrind-3", "other-3");
    let (sums, last) = (other.find("\ntotals").unwrap(), other.rfind("600").unwrap());
    assert_eq!((notes(&other[..sums]), notes(&other[..last + 3])), (vec![], cut.to_vec()));
}

/// speedscope refuses a file that defines a number twice.
#[test]
fn each_name_is_written_once() {
    let mut out = Vec::new();
    write(&profile(), &crate::as_named, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let kinds = [["ob", "cob"].as_slice(), &["fn", "cfn"], &["fl", "cfi", "fi", "fe"]];
    for kinds in kinds {
        let names =
            text.lines().filter_map(|line| line.split_once("=(")).filter(|(key, _)| kinds.contains(key));
        let defined = names.filter_map(|(_, rest)| rest.split_once(") ")).map(|(number, _)| number);
        let mut defined: Vec<_> = defined.collect();
        let count = defined.len();
        defined.sort_unstable();
        defined.dedup();
        assert!(count > 0 && defined.len() == count, "{kinds:?}: {text}");
    }
}
