//! Names of events on a fake machine that is made of folders.

use std::fs;
use std::path::PathBuf;

use super::*;

/// A fake machine, whose folders are removed at the end.
struct FakeMachine {
    root: PathBuf,
    sources: EventSources,
}

impl FakeMachine {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("nyquist-events-{name}-{}", std::process::id()));
        for (file, content) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let sources = EventSources::in_folders(root.join("devices"), Some(root.join("tracing")));
        Self { root, sources }
    }

    fn usual(name: &str) -> Self {
        Self::new(
            name,
            &[
                ("devices/cpu/type", "4\n"),
                ("devices/cpu/format/event", "config:0-7,32-35\n"),
                ("devices/cpu/format/umask", "config:8-15\n"),
                ("devices/cpu/format/inv", "config:23\n"),
                ("devices/cpu/format/offcore_rsp", "config1:0-63\n"),
                ("devices/cpu/events/mem-loads", "event=0xcd,umask=0x1,offcore_rsp=3\n"),
                ("devices/cpu/events/needs-more", "event=0xcd,ldlat=?\n"),
                ("devices/power/type", "21\n"),
                ("devices/power/cpumask", "0\n"),
                ("devices/power/format/event", "config:0-7\n"),
                ("devices/power/events/energy-pkg", "event=0x02\n"),
                ("devices/power/events/energy-pkg.scale", "2.5e-1\n"),
                ("devices/power/events/energy-pkg.unit", "Joules\n"),
                ("devices/imc_0/type", "30\n"),
                ("devices/imc_0/format/event", "config:0-7\n"),
                ("devices/imc_1/type", "31\n"),
                ("devices/imc_1/format/event", "config:0-7\n"),
                ("devices/uprobe/type", "8\n"),
                ("tracing/events/sched/sched_switch/id", "314\n"),
                ("tracing/events/sched/sched_wakeup/id", "315\n"),
                ("tracing/events/sched/enable", "0\n"),
            ],
        )
    }

    fn parse(&self, text: &str) -> Vec<RequestedEvent> {
        parse(text, &self.sources).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    fn one(&self, text: &str) -> RequestedEvent {
        let mut events = self.parse(text);
        assert_eq!(events.len(), 1, "{text}");
        events.remove(0)
    }

    /// The error of a text, with the part of the text that it refers to.
    fn refused(&self, text: &str) -> (String, EventNameError) {
        let error = parse(text, &self.sources).unwrap_err();
        (text[error.at.clone()].to_owned(), error)
    }
}

impl Drop for FakeMachine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn selected(event: &RequestedEvent) -> Vec<(u32, [u64; 3])> {
    event.selectors.iter().map(|selector| (selector.kind, selector.config)).collect()
}

#[test]
fn generic_and_raw_events_are_understood() {
    let machine = FakeMachine::usual("generic");
    let events = machine.parse("cycles:u, page-faults,r1a8:kpp,LLC-loads");
    let numbers: Vec<_> =
        events.iter().map(|event| (selected(event)[0].0, selected(event)[0].1[0])).collect();
    assert_eq!(numbers, [(0, 0), (1, 2), (4, 0x1a8), (3, 2)]);
    let names: Vec<_> = events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["cycles:u", "page-faults", "r1a8:kpp", "LLC-loads"]);
    assert!(events[0].modifiers.exclude_kernel && !events[0].modifiers.exclude_user);
    assert_eq!((events[2].modifiers.exclude_user, events[2].modifiers.precise), (true, 2));
}

#[test]
fn terms_set_the_fields_of_a_unit() {
    let machine = FakeMachine::usual("terms");
    let check =
        |text, expected: &[(u32, [u64; 3])]| assert_eq!(selected(&machine.one(text)), expected, "{text}");
    check("cpu/event=0x13c,umask=1/", &[(4, [0x1_0000_013c, 0, 0])]);
    check("cpu/event=60,inv/u", &[(4, [0x80_003c, 0, 0])]);
    check("cpu/mem-loads/", &[(4, [0x1cd, 3, 0])]);
    check("mem-loads", &[(4, [0x1cd, 3, 0])]);
    check("cpu/config=0x3c,config1=7/", &[(4, [0x3c, 7, 0])]);
    check("imc/event=4/", &[(30, [4, 0, 0]), (31, [4, 0, 0])]);
}

#[test]
fn what_a_unit_counts_has_its_scale() {
    let machine = FakeMachine::usual("scale");
    let event = machine.one("power/energy-pkg/");
    assert_eq!((event.scale, event.unit.as_deref()), (0.25, Some("Joules")));
    assert_eq!(event.selectors[0].cpus, Some(vec![0]));
    assert_eq!(event.name, "power/energy-pkg/");
}

#[test]
fn periods_frequencies_and_names_are_terms() {
    let machine = FakeMachine::usual("period");
    let event = machine.one("cycles/period=1000,name=mine/u");
    assert_eq!((event.interval, &*event.name), (Some(SampleInterval::Period(1000)), "mine"));
    assert!(event.modifiers.exclude_kernel);
    assert_eq!(machine.one("cpu/event=1,freq=99/").interval, Some(SampleInterval::Frequency(99)));
    let events = machine.parse("cpu/event=1,umask=2/,cs");
    assert_eq!(events.len(), 2);
}

#[test]
fn tracepoints_are_found_by_name_and_pattern() {
    let machine = FakeMachine::usual("tracepoints");
    let event = machine.one("sched:sched_switch:u");
    assert_eq!((selected(&event), &*event.name), (vec![(2, [314, 0, 0])], "sched:sched_switch:u"));
    let names: Vec<_> = machine.parse("sched:*").into_iter().map(|event| event.name).collect();
    assert_eq!(names, ["sched:sched_switch", "sched:sched_wakeup"]);
}

#[test]
fn functions_of_files_are_probes() {
    let machine = FakeMachine::usual("probes");
    if ProbedFile::named("libc").is_none() {
        return;
    }
    let event = machine.one("libc:malloc%return");
    let probe = event.selectors[0].probe.as_ref().unwrap();
    assert_eq!(selected(&event), [(8, [1, 0, probe.offset])]);
    let path = probe.file.path().display();
    let by_path = machine.one(&format!("{path}:malloc"));
    assert_eq!(by_path.selectors[0].config, [0, 0, probe.offset]);
    let (wrong, error) = machine.refused("cs,libc:mallok");
    assert_eq!(wrong, "mallok");
    assert!(error.similar.iter().any(|name| name == "malloc"), "{error:?}");
    assert_eq!(machine.refused("/proc/nonexistent/file:main").0, "/proc/nonexistent/file");
    assert_eq!(machine.refused("libc:no:such").0, "no:such");
}

#[test]
fn a_wrong_name_is_pointed_at() {
    let machine = FakeMachine::usual("wrong");
    let check = |text: &str, wrong: &str, reason: &str, similar: &[&str]| {
        let (found, error) = machine.refused(text);
        assert_eq!(found, wrong, "{text}: {error:?}");
        assert!(error.reason.contains(reason), "{text}: {error:?}");
        assert!(similar.iter().all(|name| error.similar.iter().any(|it| it == name)), "{text}: {error:?}");
    };
    check("cs,cyclse", "cyclse", "no such event", &["cycles"]);
    check("cs,page-fautls:u", "page-fautls", "no such event", &["page-faults"]);
    check("cycles:ux", "x", "no such modifier", &[]);
    check("cycles:", "", "missing", &[]);
}

#[test]
fn wrong_terms_and_tracepoints_are_pointed_at() {
    let machine = FakeMachine::usual("wrong-terms");
    let check = |text: &str, wrong: &str, reason: &str, similar: &[&str]| {
        let (found, error) = machine.refused(text);
        assert_eq!(found, wrong, "{text}: {error:?}");
        assert!(error.reason.contains(reason), "{text}: {error:?}");
        assert!(similar.iter().all(|name| error.similar.iter().any(|it| it == name)), "{text}: {error:?}");
    };
    check("cpu/event=1,umaks=1/", "umaks=1", "no such event or field", &["umask"]);
    check("cpu/event=0x10000/", "event=0x10000", "too large", &[]);
    check("cpu/event=x/", "event=x", "needs a number", &[]);
    check("cpu/needs-more/", "needs-more", "leaves open", &[]);
    check("cpu/event=1", "", "closing `/`", &[]);
    check("cpv/event=1/", "cpv", "no such counting unit", &["cpu"]);
    check("cycles/event=1/", "event=1", "no such term", &[]);
    check("cycles/period=0/", "period=0", "from 1 on", &[]);
    check("sched:sched_swich", "sched_swich", "no such tracepoint", &["sched_switch"]);
    check("shed:sched_switch", "shed", "no such group", &["sched"]);
    check("cs,,cs", "", "missing", &[]);
    check("cs,", "", "missing", &[]);
    check("{cs,cycles}", "{", "groups", &[]);
    check("energy-pkg", "energy-pkg", "no such event", &[]);
    assert!(machine.refused("energy-pkg").1.advice.unwrap().contains("power/energy-pkg/"));
}

#[test]
fn each_kind_of_core_counts_by_itself() {
    let machine = FakeMachine::new(
        "hybrid",
        &[
            ("devices/cpu_core/type", "4\n"),
            ("devices/cpu_core/cpus", "0-1\n"),
            ("devices/cpu_atom/type", "10\n"),
            ("devices/cpu_atom/cpus", "2\n"),
        ],
    );
    let events = machine.parse("cycles,cs");
    let names: Vec<_> = events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["cpu_atom/cycles/", "cpu_core/cycles/", "cs"]);
    assert_eq!(events[0].selectors[0].config[0], 10 << 32);
    assert_eq!(events[1].selectors[0].cpus, Some(vec![0, 1]));
}

#[test]
fn a_machine_that_shows_nothing_is_said_to() {
    let sources = EventSources::in_folders("/proc/nonexistent".into(), None);
    assert!(parse("cycles,cs:u", &sources).is_ok());
    let error = parse("sched:sched_switch", &sources).unwrap_err();
    assert!(error.reason.contains("no tracefs"), "{error:?}");
    assert!(error.advice.as_ref().is_some_and(|advice| advice.contains("mount -t tracefs")), "{error:?}");
    let (reason, advice) = sources.lack_of_tracepoints().unwrap();
    assert!(reason.contains("not mounted") && advice.contains("mount -t tracefs"), "{reason} {advice}");
    assert!(listed(&sources, None).iter().any(|event| event.name == "page-faults"));
}

/// Whether it is mounted or not.
#[test]
fn root_reads_tracepoints_without_a_mount() {
    let mounts = || std::fs::read_to_string("/proc/self/mounts").unwrap();
    let before = mounts();
    let lack = EventSources::of_machine().lack_of_tracepoints();
    assert_eq!(mounts(), before);
    let machine = crate::linux::machine::Machine::query();
    let may_mount = machine.has(crate::linux::machine::Capability::SysAdmin);
    assert!(lack.is_none() || !may_mount, "{lack:?}");
}

#[test]
fn listed_names_are_understood() {
    let machine = FakeMachine::usual("listed");
    let list = listed(&machine.sources, None);
    for event in list.iter().filter(|event| event.name != "cpu/needs-more/") {
        machine.one(&event.name);
    }
    let tracepoints: Vec<_> = list.iter().filter(|it| it.group == EventGroup::Tracepoint).collect();
    assert_eq!(tracepoints.len(), 2);
}
