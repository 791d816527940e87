//! A running process: the files that it has mapped as code, its namespaces, and whether it may be attached
//! to.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nyquist_convert::event::{MappedFile, Pid};

use super::backend::{self, Backend, BackendChoice};
use super::machine::AccessDenied;
use super::options::{Options, RecordingTarget};
use super::sys::beneath::{PathHandle, at_once};
use super::{proc, ptrace};
use nyquist_system::read_kernel_text;

/// What is visible of a process from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Its pid.
    pub pid: Pid,
    /// Its name.
    pub name: String,
    /// Its threads.
    pub threads: usize,
    /// The process that traces it.
    pub tracer: Option<u32>,
    /// Its pid in its own pid namespace, if that is not this process's namespace.
    pub inner_pid: Option<u32>,
    /// Whether it has its own mount namespace or root folder.
    pub has_own_root: bool,
    /// Its files mapped as code, by path; `None` if this may not be read.
    pub modules: Option<Vec<MappedCodeFile>>,
    /// Whether `perf_event_open` can open events for it.
    pub perf: Result<(), AccessDenied>,
    /// Whether it may be traced.
    pub ptrace: Result<(), AccessDenied>,
}

/// A file that a process has mapped as code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedCodeFile {
    /// The path, as the process sees it.
    pub path: PathBuf,
    /// The path at which the mapped file itself can be opened; `None` if that path has another file, or none.
    pub opens_at: Option<PathBuf>,
}

impl ProcessFacts {
    /// Reads a process's state; `None` if no process has that pid. Does not stop it or change anything in it.
    pub fn read(pid: Pid) -> Option<Self> {
        let threads = proc::threads(pid).ok()?;
        let name = read_kernel_text(format!("/proc/{}/comm", pid.0)).ok()?.trim_end().to_owned();
        let status = read_kernel_text(format!("/proc/{}/status", pid.0)).unwrap_or_default();
        Some(Self {
            pid,
            name,
            threads: threads.len(),
            tracer: proc::tracer(pid.0),
            inner_pid: inner_pid(&status).filter(|inner| *inner != pid.0),
            has_own_root: has_own_root(pid),
            modules: modules(pid),
            perf: Backend::open(
                BackendChoice::Perf,
                RecordingTarget::Attach(vec![pid]),
                &Options::default(),
                None,
            )
            .map(drop)
            .map_err(AccessDenied::from),
            ptrace: ptrace::may_trace(pid).map_err(|error| backend::OpenError::from(error).into()),
        })
    }
}

/// The innermost pid of a process, which has one for each pid namespace (proc_pid_status(5), `NSpid`).
fn inner_pid(status: &str) -> Option<u32> {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().next_back()?.parse().ok()
}

/// Whether a process has another root folder than this process. Returns false if this may not be read.
fn has_own_root(pid: Pid) -> bool {
    let folder = |process: &str, name: &str| {
        fs::metadata(format!("/proc/{process}/{name}")).ok().map(|it| (it.dev(), it.ino()))
    };
    let differs = |name| {
        let theirs = folder(&pid.0.to_string(), name);
        theirs.is_some() && theirs != folder("self", name)
    };
    differs("ns/mnt") || differs("root")
}

fn modules(pid: Pid) -> Option<Vec<MappedCodeFile>> {
    let maps = fs::read(format!("/proc/{}/maps", pid.0)).ok()?;
    let mut modules = BTreeMap::new();
    for line in maps.split(|byte| *byte == b'\n') {
        let Some(mapping) = proc::mapping(pid, line) else { continue };
        let MappedFile::Inode { inode, .. } = mapping.identity else { continue };
        let end = mapping.start.0.saturating_add(mapping.len);
        let map_file = format!("/proc/{}/map_files/{:x}-{end:x}", pid.0, mapping.start.0);
        modules.entry(mapping.path).or_insert((inode, map_file));
    }
    let module = |(path, (inode, map_file)): (String, (u64, String))| {
        let path = PathBuf::from(path);
        let opens_at = places(pid, &path, map_file).into_iter().find(|place| is_file(place, inode));
        MappedCodeFile { path, opens_at }
    };
    Some(modules.into_iter().map(module).collect())
}

/// The paths at which a mapped file may be opened: its path in the view of this process or of the other one,
/// its mapping (which requires privileges), and the other process's program.
fn places(pid: Pid, path: &Path, map_file: String) -> Vec<PathBuf> {
    let in_root = path
        .strip_prefix("/")
        .ok()
        .map(|path| Path::new("/proc").join(pid.0.to_string()).join("root").join(path));
    let program = PathBuf::from(format!("/proc/{}/exe", pid.0));
    [Some(path.to_owned()), in_root, Some(PathBuf::from(map_file)), Some(program)]
        .into_iter()
        .flatten()
        .collect()
}

/// Whether this is the file with that inode, and is readable. Does not compare devices, because some file
/// systems show another one in `maps`. Another file may be at the path by now, so only a file with that inode
/// is opened.
fn is_file(place: &Path, inode: u64) -> bool {
    PathHandle::shown_at(place).is_ok_and(|found| {
        let status = found.status;
        status.is_file() && status.inode == inode && found.open(&at_once(false)).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_its_program_mapped() {
        let process = ProcessFacts::read(Pid(std::process::id())).unwrap();
        let program = std::env::current_exe().unwrap();
        let modules = process.modules.unwrap();
        let found = modules.iter().find(|module| module.path == program).unwrap();
        assert_eq!(found.opens_at.as_ref(), Some(&program));
        assert_eq!((process.tracer, process.inner_pid, process.has_own_root), (None, None, false));
    }

    #[test]
    fn what_has_taken_a_files_place_is_not_opened() {
        let path = std::env::temp_dir().join(format!("nyquist-fifo-{}", std::process::id()));
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let inode = fs::metadata(&path).unwrap().ino();
        // Opening it would block forever.
        let found = is_file(&path, inode);
        fs::remove_file(path).unwrap();
        assert!(!found);
    }

    #[test]
    fn there_is_no_process_of_that_number() {
        assert_eq!(ProcessFacts::read(Pid(u32::MAX)), None);
    }

    #[test]
    fn the_inner_number_is_the_last() {
        let check = |status, expected| assert_eq!(inner_pid(status), expected, "{status}");
        check("Pid:\t4711\nNSpid:\t4711\t1\n", Some(1));
        check("NSpid:\t4711\n", Some(4711));
        check("Pid:\t4711\n", None);
    }
}
