//! Reads from `/proc` what a running process has: its threads, their names, its mappings (proc_pid_maps(5)).

use std::collections::{HashMap, HashSet};
use std::{fs, io};

use nyquist_convert::ProcessFile;
use nyquist_convert::event::{EventKind, MappedFile, Mapping, Pid, Tid};
use nyquist_object::{Avma, FileOffset};

use super::target_access;
use nyquist_system::read_kernel_text;

/// The index of the fault counts in a process's `stat`, from its state on: first the minor faults, and two
/// fields later the major ones (proc_pid_stat(5), `minflt` and `majflt`).
const FAULTS_AT: usize = 7;

/// The longest thread name that the kernel stores (`TASK_COMM_LEN` less the final zero).
const MAX_COMM: usize = 15;

/// The advice for a process that does not exist.
pub(crate) const FIND_PROCESSES: &str =
    "`ps -e` lists the processes that run, and `nyquist record --name NAME` attaches to those of a name";

/// The threads of a process.
pub(crate) fn threads(pid: Pid) -> io::Result<Vec<u32>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{}/task", pid.0))? {
        threads.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(threads)
}

/// The CPU time of each thread of a process, in nanoseconds: the first number of `schedstat`. Empty if the
/// kernel does not keep it.
pub(crate) fn cpu_times(pid: Pid) -> Vec<(u32, u64)> {
    let time = |tid: u32| {
        let stat = read_kernel_text(format!("/proc/{}/task/{tid}/schedstat", pid.0)).ok()?;
        Some((tid, stat.split_ascii_whitespace().next()?.parse().ok()?))
    };
    threads(pid).unwrap_or_default().into_iter().filter_map(time).collect()
}

/// The processes and all their descendants, each once, with parents before children. Reads every process of
/// the system.
pub(crate) fn families(pids: &[Pid]) -> Vec<u32> {
    families_without(pids, None)
}

/// The same without this process and its descendants.
pub(crate) fn other_families(pids: &[Pid]) -> Vec<u32> {
    families_without(pids, Some(std::process::id()))
}

fn families_without(pids: &[Pid], left_out: Option<u32>) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for other in all_processes() {
        if let Some(parent) = parent(other) {
            children.entry(parent).or_default().push(other);
        }
    }
    let mut family: Vec<u32> = Vec::new();
    let mut known: HashSet<u32> = left_out.into_iter().collect();
    family.extend(pids.iter().map(|pid| pid.0).filter(|pid| known.insert(*pid)));
    let mut at = 0;
    while let Some(member) = family.get(at) {
        let children = children.remove(member).unwrap_or_default();
        family.extend(children.into_iter().filter(|child| known.insert(*child)));
        at += 1;
    }
    family
}

/// A number in a thread's `status`.
pub(crate) fn status_number(tid: u32, name: &str) -> Option<u32> {
    status_value(tid, name)?.trim().parse().ok()
}

fn status_value(tid: u32, name: &str) -> Option<String> {
    let status = read_kernel_text(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::to_owned)
}

/// Whether a process is in another namespace of processes than `/proc`, so that its threads know each other by
/// other ids.
pub(crate) fn is_in_inner_namespace(pid: u32) -> bool {
    status_value(pid, "NSpid").is_some_and(|ids| ids.split_ascii_whitespace().count() > 1)
}

/// The id of a thread in its own namespace of processes.
pub(crate) fn innermost_id(tid: u32) -> Option<u32> {
    status_value(tid, "NSpid")?.split_ascii_whitespace().last()?.parse().ok()
}

/// The user whose rights a process has (credentials(7), effective user id).
pub(crate) fn effective_user(pid: u32) -> Option<u32> {
    // The real id comes first.
    status_value(pid, "Uid")?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether a process has a user's rights, or had them and can regain them. Checks its real, effective, saved
/// and file system ids. Returns true for a process that has ended, because its ids are unknown.
pub(crate) fn may_be_users(pid: u32, user: u32) -> bool {
    status_value(pid, "Uid").is_none_or(|ids| ids.split_ascii_whitespace().any(|id| id.parse() == Ok(user)))
}

/// The process of the thread with this number; `None` if the number is that of a process, or is not in use.
pub fn process_of_thread(number: Pid) -> Option<Pid> {
    status_number(number.0, "Tgid").map(Pid).filter(|pid| *pid != number)
}

/// The process that a running thread belongs to; `None` if there is no such thread.
pub fn process_with_thread(tid: Tid) -> Option<Pid> {
    status_number(tid.0, "Tgid").filter(|_| !thread_has_ended(tid.0)).map(Pid)
}

/// The process that traces a thread. The kernel names the tracing thread.
pub(crate) fn tracer(tid: u32) -> Option<u32> {
    let tracer = status_number(tid, "TracerPid").filter(|tracer| *tracer != 0)?;
    Some(status_number(tracer, "Tgid").unwrap_or(tracer))
}

/// The pids of all processes.
pub(crate) fn all_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The processes with a requested name, except this one. The name is that of the main thread, or that of the
/// program's file if the kernel has truncated it.
pub fn named(is_requested: impl Fn(&str) -> bool) -> Vec<Pid> {
    let others = all_processes().filter(|pid| *pid != std::process::id());
    others.filter(|pid| process_names(*pid).iter().any(|name| is_requested(name))).map(Pid).collect()
}

fn process_names(pid: u32) -> Vec<String> {
    let comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let comm = String::from_utf8_lossy(&comm).trim_end_matches('\n').to_owned();
    let is_truncated = comm.len() >= MAX_COMM;
    let program = is_truncated.then(|| target_access::process_file(pid, None, ProcessFile::Program).ok());
    let file = program.flatten().map(|path| String::from_utf8_lossy(&path).into_owned());
    let file = file.map(|path| path.rsplit('/').next().unwrap_or_default().to_owned());
    let whole = file.filter(|file| file.starts_with(&comm));
    if comm.is_empty() { Vec::new() } else { [Some(comm), whole].into_iter().flatten().collect() }
}

fn parent(pid: u32) -> Option<u32> {
    status_number(pid, "PPid")
}

/// How many page faults the threads of a process have had.
pub(crate) fn page_faults(pid: u32) -> Option<u64> {
    let (minor, major) = faults(&target_access::process_file(pid, None, ProcessFile::Stat).ok()?)?;
    Some(minor.saturating_add(major))
}

/// The minor and major faults in a `stat`.
pub(crate) fn faults(stat: &[u8]) -> Option<(u64, u64)> {
    let mut fields = after_name(stat)?.split(|byte| *byte == b' ').skip(FAULTS_AT);
    let mut next = || std::str::from_utf8(fields.next()?).ok()?.parse::<u64>().ok();
    let (minor, _, major) = (next()?, next()?, next()?);
    Some((minor, major))
}

/// The part of a process's `stat` after its name; it begins with the state. The name is in parentheses and
/// may contain any byte, so the last closing parenthesis counts.
pub(crate) fn after_name(stat: &[u8]) -> Option<&[u8]> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2..)
}

/// The state of a thread, as the letter in its `status` (`T` for stopped, `Z` for a zombie); `None` if there is no such
/// thread. Its `stat` has the letter, too, but who reads that waits while a program that calls exec waits for its
/// files.
pub fn state(tid: u32) -> Option<char> {
    status_value(tid, "State")?.trim_start().chars().next()
}

/// Whether a process has ended: it is gone, or a zombie that was not reaped.
pub fn has_ended(pid: u32) -> bool {
    // A main thread that has ended before the others is a zombie too.
    let others = || threads(Pid(pid)).is_ok_and(|threads| threads.len() > 1);
    state(pid).is_none_or(|state| matches!(state, 'Z' | 'X') && !others())
}

/// Whether a thread has ended, regardless of its process. From then on it cannot be traced.
pub(crate) fn thread_has_ended(tid: u32) -> bool {
    state(tid).is_none_or(|state| matches!(state, 'Z' | 'X'))
}

/// The thread that gives access to a process's memory: the main thread, unless it has ended before others.
pub(crate) fn live_thread(pid: Pid) -> u32 {
    if !thread_has_ended(pid.0) {
        return pid.0;
    }
    let others = threads(pid).unwrap_or_default();
    others.into_iter().find(|tid| !thread_has_ended(*tid)).unwrap_or(pid.0)
}

/// Whether a process runs a 32-bit program: the class in its ELF header (`EI_CLASS`).
pub(crate) fn has_32_bits(pid: u32) -> bool {
    const CLASS_AT: usize = 4;
    const CLASS_32: u8 = 1;
    target_access::targets().program_start(Pid(pid)).get(CLASS_AT) == Some(&CLASS_32)
}

/// The name of a thread, as an event.
pub(crate) fn name(pid: Pid, tid: Tid) -> Option<EventKind> {
    let name = fs::read(format!("/proc/{}/task/{}/comm", pid.0, tid.0)).ok()?;
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    Some(EventKind::Name { pid, tid, name: String::from_utf8_lossy(name).into_owned(), exec: false })
}

/// Parses a line of `maps`; `None` for memory that is not executable.
pub(crate) fn mapping(pid: Pid, line: &[u8]) -> Option<Mapping> {
    let line = String::from_utf8_lossy(line);
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let executable = fields.next()?.as_bytes().get(2) == Some(&b'x');
    let offset = hex(fields.next()?)?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode = fields.next()?.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim_start_matches(' ');
    let (start, end) = (hex(start)?, hex(end)?);
    executable.then_some(())?;
    Some(Mapping {
        pid: Some(pid),
        start: Avma(start),
        len: end.checked_sub(start)?,
        offset: FileOffset(offset),
        // The perf records of anonymous memory use this name.
        path: if path.is_empty() { "//anon".to_owned() } else { path.to_owned() },
        identity: identity(hex(major)? as u32, hex(minor)? as u32, inode),
    })
}

/// Anonymous memory, and anything without a place in a file system, has no inode.
fn identity(major: u32, minor: u32, inode: u64) -> MappedFile {
    match inode {
        0 => MappedFile::Unknown,
        inode => MappedFile::Inode { major, minor, inode, generation: 0 },
    }
}

fn hex(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(u64, u64, u64, &str)>) {
        let found = mapping(Pid(7), line.as_bytes());
        let found = found.as_ref().map(|m| (m.start.0, m.len, m.offset.0, m.path.as_str()));
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn executable_lines_of_maps_are_mappings() {
        check(
            "55a0c3a01000-55a0c3a05000 r-xp 00002000 fe:00 1234                       /bin/with space",
            Some((0x55a0_c3a0_1000, 0x4000, 0x2000, "/bin/with space")),
        );
        check(
            "7ffd0-7ffd2 r-xp 00000000 00:00 0                          [vdso]",
            Some((0x7_ffd0, 2, 0, "[vdso]")),
        );
        check("10000-20000 rwxp 00000000 00:00 0 ", Some((0x1_0000, 0x1_0000, 0, "//anon")));
        check(
            "1000-2000 r-xp 00000000 fe:00 9 /tmp/x (deleted)",
            Some((0x1000, 0x1000, 0, "/tmp/x (deleted)")),
        );
    }

    #[test]
    fn other_lines_are_not() {
        check("55a0c3a01000-55a0c3a05000 r--p 00002000 fe:00 1234 /bin/x", None);
        check("", None);
        check("2000-1000 r-xp 00000000 fe:00 9 /x", None);
        check("x-y r-xp 0 0:0 0", None);
    }

    #[test]
    fn a_thread_that_is_there_has_not_ended() {
        assert!(!thread_has_ended(std::process::id()));
        assert!(thread_has_ended(u32::MAX >> 1));
    }

    #[test]
    fn the_identity_is_device_and_inode() {
        let line = b"1000-2000 r-xp 00000000 fe:1a 99 /x";
        let expected = MappedFile::Inode { major: 0xfe, minor: 0x1a, inode: 99, generation: 0 };
        assert_eq!(mapping(Pid(1), line).map(|mapping| mapping.identity), Some(expected));
    }

    #[test]
    fn first_use_of_a_page_is_a_fault() {
        // Pages of this process may have been used before; those of a new program were not.
        let mut program = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while page_faults(program.id()) == Some(0) && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let faults = page_faults(program.id());
        program.kill().unwrap();
        program.wait().unwrap();
        assert!(faults.is_some_and(|faults| faults > 0), "{faults:?}");
        assert_eq!(page_faults(u32::MAX >> 1), None);
    }

    #[test]
    fn this_process_is_in_its_own_family_only() {
        let own = Pid(std::process::id());
        assert_eq!(families(&[own]).first(), Some(&own.0));
        assert!(other_families(&[own]).is_empty());
        let parent = Pid(parent(own.0).unwrap());
        assert!(families(&[parent]).contains(&own.0));
        assert!(!other_families(&[parent]).contains(&own.0));
    }

    #[test]
    fn this_process_has_threads() {
        let pid = Pid(std::process::id());
        assert!(threads(pid).unwrap().contains(&pid.0));
        assert!(!has_ended(pid.0));
    }
}
