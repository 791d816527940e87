//! A running process: the files that it has mapped as code, its namespaces, and whether it may be attached
//! to.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use nyquist_convert::ProcessFile;
use nyquist_convert::event::{MappedFile, Mapping, Pid};

use super::backend::{self, Backend, BackendChoice};
use super::machine::AccessDenied;
use super::options::{Options, RecordingTarget};
use super::{proc, ptrace, target_access};
use nyquist_system::{HeldFile, OpenRoot, read_kernel_text};

/// What is visible of a process from outside. Nothing of it is waited for: delegates look at what it can withhold.
#[derive(Clone, Debug)]
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
    /// The path of its program.
    pub program: Option<PathBuf>,
    /// Whether it has its own mount namespace or root folder.
    pub has_own_root: bool,
    /// Its root folder, if that differs from this process's.
    pub root: Option<OpenRoot>,
    /// Its files mapped as code, by path; `None` if this may not be read.
    pub modules: Option<Vec<MappedCodeFile>>,
    /// Whether `perf_event_open` can open events for it.
    pub perf: Result<(), AccessDenied>,
    /// Whether it may be traced.
    pub ptrace: Result<(), AccessDenied>,
}

/// A file that a process has mapped as code.
#[derive(Clone, Debug)]
pub struct MappedCodeFile {
    /// The path, as the process sees it.
    pub path: PathBuf,
    /// The mapped file itself; `None` if it is not found, may not be read, or is withheld.
    pub file: Option<HeldFile>,
}

/// The most files of a process that are opened: each takes a descriptor.
const MAX_MODULES: usize = 512;

impl ProcessFacts {
    /// Reads a process's state; `None` if no process has that pid. Does not stop it or change anything in it.
    pub fn read(pid: Pid) -> Option<Self> {
        let threads = proc::threads(pid).ok()?;
        let name = read_kernel_text(format!("/proc/{}/comm", pid.0)).ok()?.trim_end().to_owned();
        let status = read_kernel_text(format!("/proc/{}/status", pid.0)).unwrap_or_default();
        let targets = target_access::targets();
        // Before its files are looked at: what they withhold says nothing about attaching to it.
        let attached = RecordingTarget::Attach(vec![pid]);
        let perf = Backend::open(BackendChoice::Perf, attached, &Options::default(), None);
        let ptrace = ptrace::may_trace(pid);
        Some(Self {
            pid,
            name,
            threads: threads.len(),
            tracer: proc::tracer(pid.0),
            inner_pid: inner_pid(&status).filter(|inner| *inner != pid.0),
            program: program(pid),
            has_own_root: targets.has_own_root(pid),
            root: targets.root(pid),
            modules: modules(pid),
            perf: perf.map(drop).map_err(AccessDenied::from),
            ptrace: ptrace.map_err(|error| backend::OpenError::from(error).into()),
        })
    }
}

/// The innermost pid of a process, which has one for each pid namespace (proc_pid_status(5), `NSpid`).
fn inner_pid(status: &str) -> Option<u32> {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().next_back()?.parse().ok()
}

fn program(pid: Pid) -> Option<PathBuf> {
    let path = target_access::process_file(pid.0, None, ProcessFile::Program).ok()?;
    Some(PathBuf::from(OsString::from_vec(path)))
}

/// Opens each file once, by its first mapping.
fn modules(pid: Pid) -> Option<Vec<MappedCodeFile>> {
    target_access::process_file(pid.0, None, ProcessFile::FirstMappings).ok()?;
    let mut first: BTreeMap<String, Mapping> = BTreeMap::new();
    for line in target_access::mappings(pid.0).split(|byte| *byte == b'\n') {
        let Some(mapping) = proc::mapping(pid, line) else { continue };
        if matches!(mapping.identity, MappedFile::Inode { .. }) && first.len() < MAX_MODULES {
            first.entry(mapping.path.clone()).or_insert(mapping);
        }
    }
    let targets = target_access::targets();
    let module = |(path, mapping): (String, Mapping)| MappedCodeFile {
        path: PathBuf::from(path),
        file: targets.open_mapping(&mapping, pid),
    };
    Some(first.into_iter().map(module).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_system::FileFacts;
    use std::fs::File;

    #[test]
    fn this_process_has_its_program_mapped() {
        let process = ProcessFacts::read(Pid(std::process::id())).unwrap();
        let program = std::env::current_exe().unwrap();
        let modules = process.modules.unwrap();
        let found = modules.iter().find(|module| module.path == program).unwrap();
        let facts = FileFacts::of(&File::open(&program).unwrap()).unwrap();
        assert_eq!(found.file.as_ref().unwrap().facts().unwrap().id, facts.id);
        assert_eq!(process.program, Some(program));
        assert_eq!((process.tracer, process.inner_pid, process.has_own_root), (None, None, false));
    }

    #[test]
    fn there_is_no_process_of_that_number() {
        assert!(ProcessFacts::read(Pid(u32::MAX)).is_none());
    }

    #[test]
    fn the_inner_number_is_the_last() {
        let check = |status, expected| assert_eq!(inner_pid(status), expected, "{status}");
        check("Pid:\t4711\nNSpid:\t4711\t1\n", Some(1));
        check("NSpid:\t4711\n", Some(4711));
        check("Pid:\t4711\n", None);
    }
}
