//! The command lines of attached processes at the time of attaching. Hints are checked against them. They
//! are not saved.

use nyquist_convert::Targets;
use nyquist_convert::event::Pid;
use nyquist_profile::Profile;

/// The maximum number of processes.
const MAX_PROCESSES: usize = 256;

/// The command lines, one per line, with their words separated by spaces. A process that has ended has none.
pub(super) fn command_lines(pids: &[u32], targets: &Targets) -> String {
    pids.iter().take(MAX_PROCESSES).map(|pid| command_line(*pid, targets) + "\n").collect()
}

/// The same for those processes of a profile that still run. Processes selected by name were not known
/// before.
pub(super) fn command_lines_of_running(profile: &Profile, targets: &Targets) -> String {
    let pids = profile.processes().iter().filter_map(|process| process.pid.parse().ok());
    command_lines(&pids.collect::<Vec<_>>(), targets)
}

fn command_line(pid: u32, targets: &Targets) -> String {
    let argv = targets.command_line(Pid(pid));
    String::from_utf8_lossy(&argv).replace('\0', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    const MAX_COMMAND_LINE_LEN: u64 = 64 << 10;

    #[test]
    fn command_lines_are_read_up_to_a_limit() {
        let mut cat = Command::new("cat");
        cat.arg("-")
            .arg("x".repeat(MAX_COMMAND_LINE_LEN as usize))
            .stdin(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = cat.spawn().unwrap();
        // The process may start before the kernel has set its command line.
        let lines = || command_lines(&[child.id(), u32::MAX], &Targets::default());
        let read = std::iter::repeat_with(lines).take(100_000).find(|read| read.len() > 2).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(read.len() as u64, MAX_COMMAND_LINE_LEN + 2);
        assert!(read.starts_with("cat - x") && read.ends_with("x\n\n"));
    }
}
