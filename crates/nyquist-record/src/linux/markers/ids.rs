//! Numbers of processes and threads in a pid namespace of their own: which ones they are in ours.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use nyquist_convert::event::Pid;

/// The process that calls itself `pid` in a pid namespace. `None` where it is gone, or was never there.
pub(super) fn process(pid: u32, namespace: u64) -> Option<Pid> {
    if namespace == 0 || namespace_of("self") == Some(namespace) {
        return Some(Pid(pid));
    }
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut ours = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ours.find(|ours| {
        namespace_of(&ours.to_string()) == Some(namespace)
            && innermost(&format!("/proc/{ours}/status")) == Some(pid)
    })
    .map(Pid)
}

/// The thread of `pid` that calls itself `tid`; that number itself where it is gone.
pub(super) fn thread(pid: Pid, tid: u32) -> u32 {
    if namespace_of("self") == namespace_of(&pid.0.to_string()) {
        return tid;
    }
    let Ok(entries) = fs::read_dir(format!("/proc/{}/task", pid.0)) else { return tid };
    let mut ours = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ours.find(|ours| innermost(&format!("/proc/{}/task/{ours}/status", pid.0)) == Some(tid)).unwrap_or(tid)
}

fn namespace_of(process: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{process}/ns/pid")).ok().map(|metadata| metadata.ino())
}

/// The last of the numbers of `NSpid:`, which is the process's own (proc_pid_status(5)).
fn innermost(status: &str) -> Option<u32> {
    let status = fs::read_to_string(status).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_ascii_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_our_own_namespace_are_what_they_are() {
        let own = namespace_of("self").unwrap_or_default();
        assert_eq!(process(4711, own), Some(Pid(4711)));
        assert_eq!(process(4711, 0), Some(Pid(4711)));
        assert_eq!(process(4711, own ^ 1), None);
        assert_eq!(thread(Pid(std::process::id()), 17), 17);
        assert_eq!(innermost("/proc/self/status"), Some(std::process::id()));
    }
}
