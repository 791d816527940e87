//! Records a workload, and compares the profile with the workload's own truth.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::by::By;
use super::context::Context;
use super::invocation::{Finished, Invocation};
use super::profile::Profile;

/// A recording before it is made: `nyquist record --save-only -o FILE OPTIONS -- COMMAND`.
pub(crate) struct Recording<'a> {
    context: &'a Context<'a>,
    options: Vec<String>,
    command: Vec<String>,
    adapt: Vec<Adapt<'a>>,
}

type Adapt<'a> = Box<dyn Fn(Invocation<'a>) -> Invocation<'a> + 'a>;

impl Context<'_> {
    /// A recording of a workload. The first word is the workload's name.
    pub(crate) fn record(&self, args: &[&str]) -> Recording<'_> {
        Recording::of_workload(self, args)
    }

    /// A recording of any command.
    pub(crate) fn record_command(&self, args: &[&str]) -> Recording<'_> {
        Recording::of_command(self, args)
    }
}

impl<'a> Recording<'a> {
    /// A recording of a workload. The first word is its name.
    pub(crate) fn of_workload(context: &'a Context<'a>, args: &[&str]) -> Self {
        let program = context.workload(args[0]).display().to_string();
        let mut recording = Self::of_command(context, &[&program]);
        recording.command.extend(args[1..].iter().map(|&word| word.to_owned()));
        recording
    }

    /// A recording of any command.
    pub(crate) fn of_command(context: &'a Context<'a>, args: &[&str]) -> Self {
        let command = args.iter().map(|&word| word.to_owned()).collect();
        Self { context, options: Vec::new(), command, adapt: Vec::new() }
    }

    /// Adds options of `nyquist record`.
    pub(crate) fn options(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|&word| word.to_owned()));
        self
    }

    /// Changes how nyquist is run, for example the user or the environment.
    pub(crate) fn with(mut self, adapt: impl Fn(Invocation<'a>) -> Invocation<'a> + 'a) -> Self {
        self.adapt.push(Box::new(adapt));
        self
    }

    /// Uses this way to sample.
    pub(crate) fn by(self, by: By) -> Self {
        let context = self.context;
        self.with(move |call| by.adapt(context, call))
    }

    /// Runs as a user without privileges.
    pub(crate) fn by_plain_user(self) -> Self {
        self.with(Invocation::by_plain_user)
    }

    /// The call that records, and the paths of the profile and the truth.
    pub(crate) fn prepare(&self) -> Prepared<'a> {
        let profile = self.context.fresh("profile.json.gz");
        let truth = self.context.fresh("truth.jsonl");
        make_truth(&truth).expect("the folder of the tests can be written to");
        let mut call = self.context.nyquist(&["record", "--save-only", "-o"]).path(&profile);
        for option in &self.options {
            call = call.args(&[option]);
        }
        call = call.args(&["--"]).env("WORKLOAD_TRUTH", truth.display().to_string());
        for word in &self.command {
            call = call.args(&[word]);
        }
        let call = self.adapt.iter().fold(call, |call, adapt| adapt(call));
        Prepared { call, profile, truth }
    }

    /// Records, and accepts any status of the command.
    pub(crate) fn run(&self) -> Result<Recorded> {
        let Prepared { call, profile, truth } = self.prepare();
        Recorded::read(call.run()?, &profile, &truth)
    }

    /// Records, and fails unless the command succeeds.
    pub(crate) fn run_well(&self) -> Result<Recorded> {
        let recorded = self.run()?;
        recorded.finished.clone().succeeded()?;
        Ok(recorded)
    }
}

/// Creates the file to which workloads of any user write their truth. Creating it takes some percent of a
/// short program's time if many files have just been deleted. That time must not be in the program's profile.
fn make_truth(path: &Path) -> io::Result<()> {
    fs::write(path, "")?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))
}

/// A call that records, and its files.
pub(crate) struct Prepared<'a> {
    /// The call.
    pub call: Invocation<'a>,
    /// The path of the profile.
    pub profile: PathBuf,
    /// The path of the workload's truth.
    pub truth: PathBuf,
}

/// A finished recording.
pub(crate) struct Recorded {
    /// How nyquist ended.
    pub finished: Finished,
    /// The saved profile.
    pub profile: Profile,
    /// The path of the profile.
    pub path: PathBuf,
    /// The truth of each process, in the order in which the processes ended.
    pub truths: Vec<Truth>,
}

impl Recorded {
    pub(crate) fn read(finished: Finished, profile: &Path, truth: &Path) -> Result<Self> {
        let (path, truths) = (profile.to_owned(), Truth::read(truth)?);
        Ok(Self { profile: Profile::read(profile)?, finished, path, truths })
    }

    /// The truth of the only process.
    pub(crate) fn truth(&self) -> Result<&Truth> {
        self.truths.first().context("the workload left no truth")
    }

    /// The truth of one of several programs.
    pub(crate) fn truth_of(&self, program: &str) -> Result<&Truth> {
        let found = self.truths.iter().find(|truth| truth.program == program);
        found.with_context(|| format!("{program} left no truth"))
    }

    /// The true share of a function in the CPU time of the only process.
    pub(crate) fn true_share(&self, part: &str) -> Result<f64> {
        let truth = self.truth()?;
        Ok(truth.part(part)? / truth.cpu)
    }
}

/// The truth of a process, in seconds of CPU time.
pub(crate) struct Truth {
    /// The name of the program, or of the process in a tree.
    pub program: String,
    /// The process id.
    pub pid: u64,
    /// All CPU time.
    pub cpu: f64,
    /// The CPU time in the kernel, by the kernel's accounting.
    pub system: f64,
    /// How often it left a CPU to wait, and how often because another thread was to run, if it counts this.
    pub switches: Option<[u64; 2]>,
    parts: Vec<(String, f64)>,
}

impl Truth {
    /// Reads the lines of a file. If there is no file, no truth was written.
    pub(crate) fn read(path: &Path) -> Result<Vec<Self>> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| Self::parse(line).with_context(|| format!("truth: {line}"))).collect()
    }

    fn parse(line: &str) -> Result<Self> {
        let json: Value = serde_json::from_str(line)?;
        let seconds = |value: &Value| value.as_f64().map(|ns| ns / 1e9).context("no number of nanoseconds");
        let parts = json["parts"].as_object().context("no parts")?;
        Ok(Self {
            program: json["program"].as_str().context("no program")?.to_owned(),
            pid: json["pid"].as_u64().context("no pid")?,
            cpu: seconds(&json["cpu_ns"])?,
            system: seconds(&json["system_ns"])?,
            switches: json["blocked"].as_u64().zip(json["preempted"].as_u64()).map(<[u64; 2]>::from),
            parts: parts.iter().map(|(name, ns)| Ok((name.clone(), seconds(ns)?))).collect::<Result<_>>()?,
        })
    }

    /// The CPU time of a part of the program.
    pub(crate) fn part(&self, name: &str) -> Result<f64> {
        let found = self.parts.iter().find(|(part, _)| part == name);
        Ok(found.with_context(|| format!("no truth about {name}"))?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::Truth;

    #[test]
    fn a_line_of_truth_is_read_in_seconds() {
        let line = r#"{"program":"p","pid":7,"cpu_ns":2000000000,"user_ns":1,"system_ns":500000000,"parts":{"a":1500000000}}"#;
        let truth = Truth::parse(line).unwrap();
        assert_eq!((truth.program.as_str(), truth.pid), ("p", 7));
        assert!((truth.cpu - 2.0).abs() < 1e-9 && (truth.system - 0.5).abs() < 1e-9);
        assert!((truth.part("a").unwrap() - 1.5).abs() < 1e-9);
        assert!(truth.part("b").is_err());
    }
}
