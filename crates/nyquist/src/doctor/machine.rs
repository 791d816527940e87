//! Findings about a machine for recording: a pure function of the facts.

use super::finding::{Finding, Section};
use nyquist_record::linux::machine::{AccessDenied, Capability, Machine, PerfAccess};
use nyquist_record::linux::perf::{Coverage, Trigger};

/// The default sampling rate.
const USUAL_RATE_HZ: i64 = 1000;
/// The number of events per thread and CPU: samples, the clock beside cycles, its total, its mappings.
const EVENTS_A_THREAD: u64 = 4;
/// A process with more threads than this is rare.
const MANY_THREADS: u64 = 500;

/// All findings about the machine, the most important first.
pub(crate) fn section(machine: &Machine) -> Section {
    let findings = [
        Some(recording(machine)),
        Some(perf(machine)),
        Some(ptrace(machine)),
        Some(privileges(machine)),
        Some(paranoid(machine)),
        seccomp(machine),
        machine.perf.as_ref().ok().map(trigger),
        machine.perf.as_ref().ok().map(short_processes),
        kernel_symbols(machine),
        tracepoints(machine),
        locked_memory(machine),
        descriptors(machine),
        rate(machine),
        ptrace_scope(machine),
    ];
    let kernel = machine.kernel.as_deref().unwrap_or("of an unknown release");
    let cpus = crate::number::counted(machine.cpus as u64, "CPU");
    let name = format!("This machine (Linux {kernel}, {cpus})");
    Section { kind: "machine", name, findings: findings.into_iter().flatten().collect() }
}

/// Whether anything can be recorded.
pub(crate) fn can_record(machine: &Machine) -> bool {
    machine.perf.is_ok() || machine.ptrace.is_ok()
}

fn recording(machine: &Machine) -> Finding {
    const TOPIC: &str = "recording";
    match (&machine.perf, &machine.ptrace) {
        (Ok(PerfAccess { kernel: true, .. }), _) => {
            Finding::ok(TOPIC, "`nyquist record` samples programs by perf_event_open, user and kernel code")
        }
        (Ok(PerfAccess { kernel: false, .. }), _) => Finding::better(
            TOPIC,
            "`nyquist record` samples programs by perf_event_open, user code only: time in the kernel is one share",
        )
        .hint("sudo nyquist setup"),
        (Err(perf), Ok(())) => Finding::better(
            TOPIC,
            "`nyquist record` traces programs, as perf_event_open is refused: user code only, by the wall clock",
        )
        .hints(perf.advice.iter().cloned()),
        (Err(perf), Err(ptrace)) => {
            Finding::problem(TOPIC, "nothing can be recorded: both backends are refused")
                .hints(perf.advice_with(ptrace))
        }
    }
}

fn perf(machine: &Machine) -> Finding {
    const TOPIC: &str = "backend.perf";
    match &machine.perf {
        Ok(perf) => Finding::ok(
            TOPIC,
            format!(
                "perf: works, with {} kB of each stack and {} kB of buffer a CPU",
                perf.stack_bytes / 1024,
                perf.ring_bytes / 1024
            ),
        ),
        Err(denied) => refused(TOPIC, "perf", denied).hints(allow_perf(machine)),
    }
}

/// The fix, if the setting is the reason for the refusal.
fn allow_perf(machine: &Machine) -> Option<String> {
    let is_setting = machine.settings.perf_event_paranoid.is_some_and(|level| level > 2);
    is_setting.then(|| "sudo nyquist setup".to_owned())
}

fn ptrace(machine: &Machine) -> Finding {
    const TOPIC: &str = "backend.ptrace";
    match &machine.ptrace {
        Ok(()) => Finding::ok(TOPIC, "ptrace: works for programs that are launched"),
        Err(denied) => refused(TOPIC, "ptrace", denied),
    }
}

fn refused(topic: &'static str, backend: &str, denied: &AccessDenied) -> Finding {
    Finding::problem(topic, format!("{backend}: {}", denied.reason)).hints(denied.advice.iter().cloned())
}

fn privileges(machine: &Machine) -> Finding {
    const TOPIC: &str = "privileges";
    let names: Vec<_> = machine.capabilities.iter().map(|capability| capability.name()).collect();
    let names = names.join(", ");
    match (machine.is_root, machine.is_privileged()) {
        (true, true) => Finding::ok(TOPIC, "you are root: every process can be recorded"),
        (true, false) => Finding::better(TOPIC, "you are root without its privileges, as in a container or a user namespace")
            .hint("start the container with --cap-add=PERFMON --cap-add=SYS_PTRACE"),
        (false, true) if machine.has(Capability::SysPtrace) => {
            Finding::ok(TOPIC, format!("you have {names}: every process can be recorded"))
        }
        (false, _) if !names.is_empty() => Finding::ok(TOPIC, format!("you have {names}")),
        (false, _) => Finding::better(
            TOPIC,
            if machine.settings.perf_event_paranoid.is_some_and(|level| level <= 0) {
                "you are neither root nor have CAP_PERFMON: processes of other users (-a) that run already have no names and no callers"
            } else {
                "you are neither root nor have CAP_PERFMON: only your own processes can be recorded"
            },
        )
        .hint(
            "sudo nyquist record ... (the command still runs as you), or sudo nyquist setup --capabilities",
        ),
    }
}

fn paranoid(machine: &Machine) -> Finding {
    const TOPIC: &str = "perf_event_paranoid";
    let Some(level) = machine.settings.perf_event_paranoid else {
        return Finding::problem(TOPIC, "this kernel was built without perf events")
            .hint("start a kernel that was built with CONFIG_PERF_EVENTS=y");
    };
    let allows = match level {
        ..=-1 => "everything, to everybody",
        0 => "the whole system to everybody, without raw tracepoints",
        1 => "user and kernel code of own processes",
        2 => "user code of own processes",
        // Only kernels of some distributions have stricter levels.
        _ if machine.perf.is_ok() => "user code of own processes, as 2 does",
        _ => "nothing without privileges",
    };
    let text = format!("kernel.perf_event_paranoid is {level}: it allows {allows}");
    match level {
        _ if machine.is_privileged() => {
            Finding::ok(TOPIC, format!("{text}; this limit does not apply to you"))
        }
        ..=1 => Finding::ok(TOPIC, text),
        _ if machine.perf.is_ok() => {
            Finding::better(TOPIC, text).hint("sudo sysctl kernel.perf_event_paranoid=1")
        }
        _ => Finding::problem(TOPIC, text).hint("sudo sysctl kernel.perf_event_paranoid=1"),
    }
}

/// The finding about a seccomp filter, if perf is refused. A filter that refuses nothing gets no finding.
fn seccomp(machine: &Machine) -> Option<Finding> {
    (machine.is_filtered && machine.perf.is_err()).then(|| {
        let text =
            "a seccomp filter is on this process, as in containers: it may be what refuses perf_event_open";
        Finding::better("seccomp", text)
            .hint("start the container with --cap-add=PERFMON, or --security-opt seccomp=unconfined")
    })
}

fn trigger(perf: &PerfAccess) -> Finding {
    const TOPIC: &str = "cycles";
    match perf.trigger {
        Trigger::Cycles => Finding::ok(TOPIC, "the CPU counts cycles, and samples are triggered by them"),
        Trigger::CpuClock => Finding::better(
            TOPIC,
            "no cycle counter is available (usual in virtual machines): the CPU clock triggers samples, up to 20 kHz",
        )
        .hint("on your own hypervisor, let the guest have the PMU (QEMU: -cpu host,pmu=on)"),
    }
}

/// Processes that end before the next sample.
fn short_processes(perf: &PerfAccess) -> Finding {
    const TOPIC: &str = "short_processes";
    match perf.coverage {
        Coverage::Group => {
            Finding::ok(TOPIC, "short processes are sampled too: the command gets a control group")
        }
        Coverage::Cpus => {
            let why = perf.no_group.as_deref().unwrap_or("none can be made");
            let text = format!(
                "the command gets no control group ({why}): whole CPUs are sampled, and what is others' is left out"
            );
            Finding::better(TOPIC, text).hint("mount a cgroup2 file system that may be written to (a container: --cgroupns=private, writable /sys/fs/cgroup)")
        }
        Coverage::Threads => {
            let text = "processes that live for less than a millisecond have no samples, their time is shown as [not sampled]";
            Finding::better(TOPIC, text)
                .hint("sudo nyquist record ..., or CAP_PERFMON (sudo nyquist setup --capabilities)")
        }
    }
}

/// Only relevant if kernel code is sampled.
fn kernel_symbols(machine: &Machine) -> Option<Finding> {
    const TOPIC: &str = "kernel_symbols";
    if machine.shows_kernel_addresses {
        return Some(Finding::ok(TOPIC, "kernel functions have names (/proc/kallsyms)"));
    }
    machine.perf.as_ref().ok().filter(|perf| perf.kernel)?;
    let settings = &machine.settings;
    // If kptr_restrict is 0, the other setting applies (`kallsyms_show_value` in `kernel/ksyms_common.c`).
    let (name, level, requested) = match (settings.kptr_restrict, settings.perf_event_paranoid) {
        (Some(0), Some(level)) if level > 1 => ("perf_event_paranoid", Some(level), 1),
        (level, _) => ("kptr_restrict", level.filter(|level| *level > 0), 0),
    };
    let why = level
        .map_or("/proc/kallsyms shows no addresses".to_owned(), |level| format!("kernel.{name} is {level}"));
    let finding = Finding::better(TOPIC, format!("kernel functions have no names: {why}"));
    Some(finding.hint(format!("sudo sysctl kernel.{name}={requested}, or record as root")))
}

/// Tracepoints also need the right to record the kernel, so that others miss nothing.
fn tracepoints(machine: &Machine) -> Option<Finding> {
    let (reason, advice) = machine.lack_of_tracepoints.as_ref().filter(|_| machine.is_privileged())?;
    let text = format!(
        "{reason}: no tracepoints (-e sched:...), and --off-cpu does not record where in the kernel threads wait, nor what ends their waits"
    );
    Some(Finding::better("tracepoints", text).hint(*advice))
}

fn locked_memory(machine: &Machine) -> Option<Finding> {
    const TOPIC: &str = "locked_memory";
    let is_unlimited = machine.has(Capability::IpcLock)
        || machine.settings.perf_event_paranoid.is_some_and(|level| level < 0)
        || machine.locked_memory == Some(u64::MAX);
    if is_unlimited {
        return Some(Finding::ok(TOPIC, "buffers are not limited"));
    }
    let setting = machine.settings.perf_event_mlock_kb?;
    let for_each = u64::try_from(setting).unwrap_or(0);
    let once_kb = machine.locked_memory.unwrap_or(0) / 1024;
    let given = for_each.saturating_add(once_kb / machine.cpus.max(1) as u64);
    let text = format!(
        "kernel.perf_event_mlock_kb is {setting} and `ulimit -l` {once_kb}: {given} kB of buffers a CPU"
    );
    if given >= machine.requested_ring_kb {
        return Some(Finding::ok(TOPIC, text));
    }
    let requested = machine.requested_ring_kb;
    let less = format!("{text}, where {requested} hold whole stacks at any load");
    Some(Finding::better(TOPIC, less).hint(format!("sudo sysctl kernel.perf_event_mlock_kb={requested}")))
}

fn descriptors(machine: &Machine) -> Option<Finding> {
    const TOPIC: &str = "open_files";
    let limit = machine.descriptors?;
    let threads = limit / (EVENTS_A_THREAD * machine.cpus.max(1) as u64);
    let text =
        format!("{limit} open files are allowed: a process with some {threads} threads can be attached to");
    Some(if limit == u64::MAX {
        Finding::ok(TOPIC, "open files are not limited")
    } else if threads >= MANY_THREADS {
        Finding::ok(TOPIC, text)
    } else {
        let needed = MANY_THREADS * EVENTS_A_THREAD * machine.cpus as u64;
        Finding::better(TOPIC, text).hint(format!("ulimit -Hn {needed} (as root), or record as root"))
    })
}

/// The kernel lowers this setting by itself if its interrupts took too long.
fn rate(machine: &Machine) -> Option<Finding> {
    let most = machine.settings.perf_event_max_sample_rate?;
    let text = format!("kernel.perf_event_max_sample_rate is {most}");
    Some(if most >= USUAL_RATE_HZ {
        Finding::ok("sample_rate", text)
    } else {
        Finding::better("sample_rate", format!("{text}, less than the usual {USUAL_RATE_HZ} a second"))
            .hint("sudo sysctl kernel.perf_event_max_sample_rate=100000")
    })
}

fn ptrace_scope(machine: &Machine) -> Option<Finding> {
    const TOPIC: &str = "ptrace_scope";
    let scope = machine.settings.ptrace_scope?;
    let text = format!("kernel.yama.ptrace_scope is {scope}");
    let is_above = machine.has(Capability::SysPtrace);
    Some(match scope {
        ..=0 => Finding::ok(TOPIC, format!("{text}: own processes can be attached to")),
        1 | 2 if is_above => Finding::ok(TOPIC, format!("{text}; this limit does not apply to you")),
        1 => Finding::better(TOPIC, format!("{text}: ptrace needs root to attach, but perf does not"))
            .hint("sudo sysctl kernel.yama.ptrace_scope=0"),
        2 => Finding::better(TOPIC, format!("{text}: ptrace needs root"))
            .hint("sudo sysctl kernel.yama.ptrace_scope=0"),
        _ => Finding::better(TOPIC, format!("{text}: ptrace is off until the machine is started again"))
            .hint("grep -r ptrace_scope /etc/sysctl.d /etc/sysctl.conf shows where it is set: set 1 there, and start the machine again"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::finding::tests::assert_mendable;
    use super::*;
    use nyquist_record::linux::machine::Settings;

    /// In these tests, kernel code needs the same rights as a group or whole CPUs.
    fn events(trigger: Trigger, coverage: Coverage) -> PerfAccess {
        let kernel = coverage != Coverage::Threads;
        PerfAccess { trigger, coverage, no_group: None, kernel, stack_bytes: 32 << 10, ring_bytes: 4 << 20 }
    }

    /// An unprivileged user of a machine with default settings.
    fn plain() -> Machine {
        Machine {
            kernel: Some("6.1.0".to_owned()),
            is_root: false,
            capabilities: Vec::new(),
            settings: Settings {
                perf_event_paranoid: Some(2),
                kptr_restrict: Some(0),
                perf_event_mlock_kb: Some(516),
                perf_event_max_sample_rate: Some(100_000),
                ptrace_scope: None,
            },
            cpus: 2,
            locked_memory: Some(8 << 20),
            descriptors: Some(1 << 20),
            is_filtered: false,
            shows_kernel_addresses: false,
            lack_of_tracepoints: Some(("tracefs is not mounted".to_owned(), "mount it")),
            requested_ring_kb: 33_324,
            perf: Ok(events(Trigger::Cycles, Coverage::Threads)),
            ptrace: Ok(()),
        }
    }

    fn root() -> Machine {
        let capabilities =
            vec![Capability::Perfmon, Capability::SysPtrace, Capability::SysAdmin, Capability::IpcLock];
        let perf = events(Trigger::Cycles, Coverage::Group);
        let lack_of_tracepoints = None;
        Machine {
            is_root: true,
            capabilities,
            shows_kernel_addresses: true,
            lack_of_tracepoints,
            perf: Ok(perf),
            ..plain()
        }
    }

    fn denied(reason: &str) -> AccessDenied {
        AccessDenied { reason: reason.to_owned(), advice: vec!["do this".to_owned()] }
    }

    fn check(machine: &Machine, topic: &str, level: Level, parts: &[&str]) {
        let section = section(machine);
        assert_mendable(&section.findings);
        let found = section.findings.iter().find(|finding| finding.topic == topic);
        let found = found.unwrap_or_else(|| panic!("nothing about {topic}: {section:?}"));
        assert_eq!(found.level, level, "{found:?}");
        let message = format!("{} | {}", found.text, found.hints.join(" | "));
        for part in parts {
            assert!(message.contains(part), "{part} is not in {message}");
        }
    }

    #[test]
    fn root_lacks_nothing() {
        let section = section(&root());
        assert!(section.findings.iter().all(|finding| finding.level == Level::Ok), "{section:?}");
        assert!(section.findings.iter().all(|finding| finding.hints.is_empty()), "{section:?}");
    }

    #[test]
    fn a_plain_user_hears_what_would_give_more() {
        let machine = plain();
        check(&machine, "recording", Level::Better, &["user code only", "sudo nyquist setup"]);
        check(&machine, "perf_event_paranoid", Level::Better, &["is 2", "perf_event_paranoid=1"]);
        check(&machine, "privileges", Level::Better, &["only your own", "setup --capabilities"]);
        check(&machine, "locked_memory", Level::Better, &["4612 kB", "perf_event_mlock_kb=33324"]);
        assert!(can_record(&machine));
    }

    #[test]
    fn each_level_of_paranoid_has_its_meaning() {
        let at = |level| {
            let machine = plain();
            Machine { settings: Settings { perf_event_paranoid: Some(level), ..machine.settings }, ..machine }
        };
        check(&at(-1), "perf_event_paranoid", Level::Ok, &["everything"]);
        check(&at(-1), "locked_memory", Level::Ok, &["not limited"]);
        check(&at(0), "perf_event_paranoid", Level::Ok, &["the whole system"]);
        check(&at(1), "perf_event_paranoid", Level::Ok, &["kernel code of own"]);
        check(&at(3), "perf_event_paranoid", Level::Better, &["is 3", "as 2 does"]);
        let refused = Machine { perf: Err(denied("no")), ..at(4) };
        let parts = ["is 4", "nothing without privileges", "perf_event_paranoid=1"];
        check(&refused, "perf_event_paranoid", Level::Problem, &parts);
        let settings = Settings { perf_event_paranoid: None, ..plain().settings };
        let without = Machine { settings, perf: Err(denied("no")), ..plain() };
        check(
            &without,
            "perf_event_paranoid",
            Level::Problem,
            &["without perf events", "CONFIG_PERF_EVENTS"],
        );
    }

    #[test]
    fn a_container_is_recorded_by_ptrace() {
        let machine = Machine { perf: Err(denied("a filter forbids it")), is_filtered: true, ..plain() };
        check(&machine, "recording", Level::Better, &["traces programs", "do this"]);
        check(&machine, "backend.perf", Level::Problem, &["a filter forbids it", "do this"]);
        check(&machine, "seccomp", Level::Better, &["--cap-add=PERFMON"]);
        assert!(can_record(&machine));
    }

    #[test]
    fn with_both_refused_nothing_can_be_recorded() {
        let machine = Machine { perf: Err(denied("no")), ptrace: Err(denied("no")), ..plain() };
        check(&machine, "recording", Level::Problem, &["nothing can be recorded", "do this"]);
        assert!(!can_record(&machine));
    }

    #[test]
    fn a_refusal_by_the_setting_is_mended_by_setup() {
        let machine = Machine { perf: Err(denied("no")), ..plain() };
        let at_3 = Settings { perf_event_paranoid: Some(3), ..machine.settings };
        check(&Machine { settings: at_3, ..machine }, "backend.perf", Level::Problem, &["nyquist setup"]);
    }

    #[test]
    fn a_virtual_machine_has_no_cycles() {
        let perf = events(Trigger::CpuClock, Coverage::Group);
        check(
            &Machine { perf: Ok(perf), ..root() },
            "cycles",
            Level::Better,
            &["virtual machines", "pmu=on"],
        );
    }

    #[test]
    fn short_processes_take_a_group() {
        let with = |perf| Machine { perf: Ok(perf), ..root() };
        let none =
            PerfAccess { no_group: Some("read-only".to_owned()), ..events(Trigger::Cycles, Coverage::Cpus) };
        check(&with(none), "short_processes", Level::Better, &["(read-only)", "cgroup2"]);
        check(&plain(), "short_processes", Level::Better, &["[not sampled]", "sudo nyquist record"]);
        check(&root(), "short_processes", Level::Ok, &["a control group"]);
    }

    #[test]
    fn hidden_addresses_count_with_kernel_samples() {
        let perf = events(Trigger::Cycles, Coverage::Group);
        let machine = Machine { perf: Ok(perf), ..plain() };
        let hidden = Settings { kptr_restrict: Some(1), ..machine.settings };
        let parts = ["kptr_restrict is 1", "kptr_restrict=0"];
        check(&Machine { settings: hidden, ..machine.clone() }, "kernel_symbols", Level::Better, &parts);
        let privileged =
            Settings { kptr_restrict: Some(0), perf_event_paranoid: Some(2), ..machine.settings };
        let parts = ["perf_event_paranoid is 2", "perf_event_paranoid=1"];
        check(&Machine { settings: privileged, ..machine }, "kernel_symbols", Level::Better, &parts);
        assert!(section(&plain()).findings.iter().all(|finding| finding.topic != "kernel_symbols"));
    }

    #[test]
    fn tracepoints_count_for_who_may_record_them() {
        assert!(tracepoints(&plain()).is_none() && tracepoints(&root()).is_none());
        let lack_of_tracepoints = plain().lack_of_tracepoints;
        let machine = Machine { lack_of_tracepoints, ..root() };
        check(&machine, "tracepoints", Level::Better, &["not mounted", "--off-cpu", "mount it"]);
    }

    #[test]
    fn limits_are_compared_with_what_is_needed() {
        let few = Machine { descriptors: Some(1024), ..plain() };
        check(&few, "open_files", Level::Better, &["some 128 threads", "ulimit -Hn 4000"]);
        check(&plain(), "open_files", Level::Ok, &[]);
        let machine = plain();
        let slow = Settings { perf_event_max_sample_rate: Some(400), ..machine.settings };
        check(&Machine { settings: slow, ..machine }, "sample_rate", Level::Better, &["is 400", "=100000"]);
    }

    #[test]
    fn yama_counts_for_ptrace() {
        let with = |scope, machine: Machine| {
            let settings = Settings { ptrace_scope: Some(scope), ..machine.settings };
            Machine { settings, ..machine }
        };
        check(&with(0, plain()), "ptrace_scope", Level::Ok, &[]);
        check(&with(1, plain()), "ptrace_scope", Level::Better, &["ptrace_scope=0"]);
        check(&with(1, root()), "ptrace_scope", Level::Ok, &["does not apply to you"]);
        check(&with(2, plain()), "ptrace_scope", Level::Better, &["needs root", "ptrace_scope=0"]);
        check(
            &with(3, root()),
            "ptrace_scope",
            Level::Better,
            &["until the machine is started again", "set 1"],
        );
    }
}
