//! The cost of a command: time, CPU time, and memory that is not mapped from a file.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The interval at which memory is read.
const POLL: Duration = Duration::from_millis(3);

/// The cost of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// How long it took, in seconds.
    pub(crate) wall: f64,
    /// The CPU time of it and its children, in seconds.
    pub(crate) cpu: f64,
    /// The largest amount of memory at any time that was not mapped from a file, in megabytes.
    pub(crate) anonymous_mb: f64,
}

/// The folder for figures, and the program that measures.
pub(crate) struct Measuring<'a> {
    /// The folder.
    pub(crate) folder: &'a Path,
    /// The workload `measured`.
    pub(crate) measured: &'a Path,
    /// How long a command may take.
    pub(crate) limit: Duration,
}

impl Measuring<'_> {
    /// Runs a command and returns its cost. Its output is dropped.
    pub(crate) fn cost(&self, args: &[OsString]) -> Result<Cost> {
        let figures = self.folder.join("figures.json");
        let errors = self.folder.join("errors.log");
        let mut command = Command::new(self.measured);
        command.arg(&figures).args(args).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child =
            command.stderr(fs::File::create(&errors)?).spawn().context("`measured` cannot start")?;
        let (status, anonymous_kb) = wait(&mut child, self.limit)?;
        if !status.success() {
            let printed = fs::read_to_string(errors)?;
            bail!("{status}: {}", printed.lines().last().unwrap_or_default());
        }
        let figures: Value = serde_json::from_str(&fs::read_to_string(figures)?)?;
        let seconds = |key: &str| figures[key].as_f64().unwrap_or_default() / 1e9;
        let wall = seconds("ended_ns") - seconds("began_ns");
        Ok(Cost { wall, cpu: seconds("cpu_ns"), anonymous_mb: anonymous_kb as f64 / 1e3 })
    }
}

/// Waits for `measured`, and meanwhile reads the memory of the command that it runs.
fn wait(child: &mut Child, limit: Duration) -> Result<(ExitStatus, u64)> {
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let mut most = 0;
    let began = std::time::Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, most));
        }
        let command = fs::read_to_string(&children).unwrap_or_default();
        let command = command.trim();
        most = most.max(anonymous_kb(command).unwrap_or_default());
        if began.elapsed() > limit {
            if let Ok(pid) = command.parse() {
                crate::sys::signal_process(pid, libc::SIGKILL)?;
            }
            child.wait()?;
            bail!("not done after {} s", limit.as_secs());
        }
        thread::sleep(POLL);
    }
}

/// The memory of a process that is not mapped from a file (proc_pid_status(5), `RssAnon`).
fn anonymous_kb(pid: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
