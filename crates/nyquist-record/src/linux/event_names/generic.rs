//! The events that have a name on every machine: the kernel's own counts, and the CPU events with a generic
//! number (perf_event_open(2); `include/uapi/linux/perf_event.h`).

use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_BRANCH_INSTRUCTIONS, PERF_COUNT_HW_BRANCH_MISSES, PERF_COUNT_HW_BUS_CYCLES,
    PERF_COUNT_HW_CACHE_MISSES, PERF_COUNT_HW_CACHE_REFERENCES, PERF_COUNT_HW_CPU_CYCLES,
    PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_REF_CPU_CYCLES, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
    PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, PERF_COUNT_SW_ALIGNMENT_FAULTS, PERF_COUNT_SW_BPF_OUTPUT,
    PERF_COUNT_SW_CGROUP_SWITCHES, PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_CLOCK,
    PERF_COUNT_SW_CPU_MIGRATIONS, PERF_COUNT_SW_DUMMY, PERF_COUNT_SW_EMULATION_FAULTS,
    PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_PAGE_FAULTS_MAJ, PERF_COUNT_SW_PAGE_FAULTS_MIN,
    PERF_COUNT_SW_TASK_CLOCK, PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE, PERF_TYPE_SOFTWARE,
};

/// An event that has a name on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenericEvent {
    /// The name, and perf's other names for it.
    pub names: &'static [&'static str],
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// A short description.
    pub about: &'static str,
}

const fn software(names: &'static [&'static str], config: u32, about: &'static str) -> GenericEvent {
    GenericEvent { names, kind: PERF_TYPE_SOFTWARE, config: config as u64, about }
}

const fn hardware(names: &'static [&'static str], config: u32, about: &'static str) -> GenericEvent {
    GenericEvent { names, kind: PERF_TYPE_HARDWARE, config: config as u64, about }
}

/// The events that the kernel counts itself.
pub const SOFTWARE: &[GenericEvent] = &[
    software(&["task-clock"], PERF_COUNT_SW_TASK_CLOCK, "CPU time of the tasks, in ns"),
    software(&["cpu-clock"], PERF_COUNT_SW_CPU_CLOCK, "CPU time by each CPU's clock, in ns"),
    software(&["page-faults", "faults"], PERF_COUNT_SW_PAGE_FAULTS, "page faults, with or without a disk"),
    software(&["minor-faults"], PERF_COUNT_SW_PAGE_FAULTS_MIN, "page faults that needed no disk"),
    software(&["major-faults"], PERF_COUNT_SW_PAGE_FAULTS_MAJ, "page faults that waited for a disk"),
    software(
        &["context-switches", "cs"],
        PERF_COUNT_SW_CONTEXT_SWITCHES,
        "times that a task gave up or lost its CPU",
    ),
    software(
        &["cpu-migrations", "migrations"],
        PERF_COUNT_SW_CPU_MIGRATIONS,
        "times that a task went on on another CPU",
    ),
    software(
        &["cgroup-switches"],
        PERF_COUNT_SW_CGROUP_SWITCHES,
        "switches to a task of another control group",
    ),
    software(
        &["alignment-faults"],
        PERF_COUNT_SW_ALIGNMENT_FAULTS,
        "unaligned accesses that the kernel mended",
    ),
    software(&["emulation-faults"], PERF_COUNT_SW_EMULATION_FAULTS, "instructions that the kernel emulated"),
    software(&["bpf-output"], PERF_COUNT_SW_BPF_OUTPUT, "what BPF programs write"),
    software(&["dummy"], PERF_COUNT_SW_DUMMY, "counts nothing"),
];

/// The events that most CPUs count.
pub const HARDWARE: &[GenericEvent] = &[
    hardware(&["cycles", "cpu-cycles"], PERF_COUNT_HW_CPU_CYCLES, "CPU cycles"),
    hardware(&["instructions"], PERF_COUNT_HW_INSTRUCTIONS, "instructions that were completed"),
    hardware(
        &["cache-references"],
        PERF_COUNT_HW_CACHE_REFERENCES,
        "accesses to a cache, mostly the last-level one",
    ),
    hardware(&["cache-misses"], PERF_COUNT_HW_CACHE_MISSES, "accesses that this cache did not have"),
    hardware(
        &["branches", "branch-instructions"],
        PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
        "branches that were completed",
    ),
    hardware(&["branch-misses"], PERF_COUNT_HW_BRANCH_MISSES, "branches that were predicted wrongly"),
    hardware(&["bus-cycles"], PERF_COUNT_HW_BUS_CYCLES, "cycles of the bus"),
    hardware(
        &["stalled-cycles-frontend", "idle-cycles-frontend"],
        PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
        "cycles without instructions to issue",
    ),
    hardware(
        &["stalled-cycles-backend", "idle-cycles-backend"],
        PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
        "cycles that waited for memory or units",
    ),
    hardware(&["ref-cycles"], PERF_COUNT_HW_REF_CPU_CYCLES, "cycles at the CPU's nominal frequency"),
];

/// The caches by their numbers (`enum perf_hw_cache_id`), with perf's other names, and whether each operation
/// of [`OPERATIONS`] exists there.
const CACHES: [(&[&str], [bool; 3]); 7] = [
    (&["L1-dcache", "l1-d", "l1d"], [true, true, true]),
    (&["L1-icache", "l1-i", "l1i"], [true, false, true]),
    (&["LLC", "L2"], [true, true, true]),
    (&["dTLB", "d-tlb"], [true, true, true]),
    (&["iTLB", "i-tlb"], [true, false, false]),
    (&["branch", "bpu", "btb"], [true, false, false]),
    (&["node"], [true, true, true]),
];

/// The operations on caches, by number (`enum perf_hw_cache_op_id`).
const OPERATIONS: [(&str, &str); 3] = [("load", "loads"), ("store", "stores"), ("prefetch", "prefetches")];

/// The names of cache events, with their `perf_event_attr.config`.
pub(super) fn cache_events() -> impl Iterator<Item = (String, u64)> {
    (0..).zip(CACHES).flat_map(|(cache, (names, exists))| {
        let operations = (0..).zip(OPERATIONS).zip(exists).filter(|(_, exists)| *exists);
        operations.flat_map(move |((operation, (one, many)), _)| {
            let config = move |result: u64| cache | operation << 8 | result << 16;
            names.iter().flat_map(move |name| {
                [(format!("{name}-{many}"), config(0)), (format!("{name}-{one}-misses"), config(1))]
            })
        })
    })
}

/// The cache events by their first names, with a description of each, for a list.
pub(super) fn listed_cache_events() -> impl Iterator<Item = (String, String, u64)> {
    let is_first = |name: &str| CACHES.iter().any(|(names, _)| name.starts_with(names[0]));
    cache_events().filter(move |(name, _)| is_first(name)).map(|(name, config)| {
        let (cache, rest) = CACHES
            .iter()
            .find_map(|(names, _)| Some((names[0], name.strip_prefix(names[0])?)))
            .unwrap_or_default();
        let rest = rest.trim_start_matches('-');
        let operation = OPERATIONS.iter().find(|(one, _)| rest.starts_with(one));
        let operation = operation.map_or("accesses", |(_, many)| many);
        let about = if rest.ends_with("misses") {
            format!("{operation} that {cache} did not have")
        } else {
            format!("{operation} of {cache}")
        };
        (name, about, config)
    })
}

/// The type and the number of an event that has a name on every machine. The names of cache events are
/// case-insensitive, as with perf.
pub(super) fn find(name: &str) -> Option<(u32, u64)> {
    let generic = SOFTWARE.iter().chain(HARDWARE).find(|event| event.names.contains(&name));
    let cache = || cache_events().find(|(known, _)| known.eq_ignore_ascii_case(name));
    generic
        .map(|event| (event.kind, event.config))
        .or_else(|| cache().map(|(_, config)| (PERF_TYPE_HW_CACHE, config)))
}

/// All names.
pub(super) fn names() -> impl Iterator<Item = String> {
    let generic =
        SOFTWARE.iter().chain(HARDWARE).flat_map(|event| event.names.iter().map(ToString::to_string));
    generic.chain(cache_events().map(|(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_perf() {
        // These numbers are from perf list -v and perf stat -vv.
        assert_eq!(find("cycles"), Some((0, 0)));
        assert_eq!(find("cpu-cycles"), Some((0, 0)));
        assert_eq!(find("branch-misses"), Some((0, 5)));
        assert_eq!(find("faults"), Some((1, 2)));
        assert_eq!(find("cs"), Some((1, 3)));
        assert_eq!(find("L1-dcache-load-misses"), Some((3, 0x10000)));
        assert_eq!(find("l1-dcache-loads"), Some((3, 0)));
        assert_eq!(find("LLC-stores"), Some((3, 0x102)));
        assert_eq!(find("iTLB-load-misses"), Some((3, 0x10004)));
        assert_eq!(find("iTLB-stores"), None);
        assert_eq!(find("cycle"), None);
    }

    #[test]
    fn each_listed_cache_event_is_found() {
        let listed: Vec<_> = listed_cache_events().collect();
        for (name, about, config) in &listed {
            assert_eq!(find(name), Some((PERF_TYPE_HW_CACHE, *config)), "{name}: {about}");
        }
        assert!(listed.iter().any(|(name, about, _)| name == "dTLB-load-misses"
            && about == "loads that dTLB did not have"));
    }
}
