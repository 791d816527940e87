//! One run of a program, recorded or not, and its cost.
//!
//! The workload `measured` runs in two places: around the recorder, and between the recorder and its command.
//! So the CPU time and the end of the command are known exactly, and the rest is the recorder's.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::recorder::Recorder;
use super::samples::Samples;
use crate::live::harness::paranoid::Paranoid;

/// The cost of a run. All times are in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    /// The CPU time of the command and its descendants.
    pub(crate) command_cpu: f64,
    /// How long the command ran.
    pub(crate) command_wall: f64,
    /// The recorder's CPU time until the command's end.
    pub(crate) cpu_during: f64,
    /// The recorder's CPU time after it.
    pub(crate) cpu_after: f64,
    /// From the command's end to the recorder's.
    pub(crate) saving: f64,
    /// The samples.
    pub(crate) samples: Samples,
    /// The cost of naming the functions, if that is a separate step.
    pub(crate) naming: Option<Step>,
}

/// The cost of a step after the recording, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// How long it took.
    pub(crate) wall: f64,
    /// The CPU time it used.
    pub(crate) cpu: f64,
}

/// The measurements that one instance of `measured` has written.
struct Figures(Value);

impl Figures {
    fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self(serde_json::from_str(&text)?))
    }

    fn seconds(&self, key: &str) -> f64 {
        self.0[key].as_f64().unwrap_or_default() / 1e9
    }

    fn wall(&self) -> f64 {
        self.seconds("ended_ns") - self.seconds("began_ns")
    }
}

/// The folder for figures and recordings, and the program that measures.
pub(crate) struct Bench<'a> {
    /// The folder for the files of a run.
    pub(crate) folder: &'a Path,
    /// The workload `measured`.
    pub(crate) measured: &'a Path,
}

impl Bench<'_> {
    /// Runs a command without a recorder.
    pub(crate) fn unrecorded(&self, command: &[OsString]) -> Result<Run> {
        let figures = self.measure("command", command)?;
        Ok(Run { command_cpu: figures.seconds("cpu_ns"), command_wall: figures.wall(), ..Run::default() })
    }

    /// Runs a command under a recorder.
    pub(crate) fn recorded(&self, recorder: &Recorder, rate: u32, command: &[OsString]) -> Result<Run> {
        let output = self.folder.join(format!("recording{}", recorder.extension));
        let command = [&self.measuring("command"), command].concat();
        let args = recorder.args(rate, &output, &command);
        let held = recorder.paranoid.map(Paranoid::hold).transpose()?;
        let around = self.measure("recorder", &args)?;
        drop(held);
        let inside = Figures::read(&self.folder.join("command.json"))?;
        let naming = recorder.naming.map(|args| self.name(&args(&output))).transpose()?;
        let samples = (recorder.samples)(&output)?;
        Ok(Run { samples, naming, ..cost(&around, &inside)? })
    }

    /// The file with the messages of the last program: the recorder, or the program that names its recording.
    pub(crate) fn printed(&self) -> PathBuf {
        self.folder.join("errors.log")
    }

    fn name(&self, args: &[OsString]) -> Result<Step> {
        let figures = self.measure("naming", args)?;
        Ok(Step { wall: figures.wall(), cpu: figures.seconds("cpu_ns") })
    }

    /// The arguments before a command that run it under `measured`.
    fn measuring(&self, name: &str) -> Vec<OsString> {
        vec![self.measured.into(), self.folder.join(format!("{name}.json")).into()]
    }

    fn measure(&self, name: &str, args: &[OsString]) -> Result<Figures> {
        let args = [&self.measuring(name), args].concat();
        let log = fs::File::create(self.printed())?;
        let mut command = Command::new(&args[0]);
        command.args(&args[1..]).current_dir(self.folder);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).status()?;
        if !status.success() {
            let printed = fs::read_to_string(self.printed())?;
            let program = Path::new(&args[2]).file_name().unwrap_or_default().to_string_lossy();
            bail!("{program} ended with {status}: {}", printed.lines().last().unwrap_or_default());
        }
        Figures::read(&self.folder.join(format!("{name}.json")))
    }
}

/// Separates the recorder's cost from the command's.
fn cost(around: &Figures, inside: &Figures) -> Result<Run> {
    let own = around.seconds("own_cpu_ns");
    let command_cpu = inside.seconds("cpu_ns");
    // The CPU time of the recorder's descendants, if the recorder has waited for them. These are the command
    // and `measured` itself.
    let descendants = around.seconds("cpu_ns") - own;
    ensure!(
        (descendants - command_cpu).abs() < 0.02 + 0.02 * command_cpu,
        "the recorder's own {own:.3} s and the command's {command_cpu:.3} s are not all of {:.3} s",
        around.seconds("cpu_ns")
    );
    ensure!(inside.0["parent"] == around.0["child"], "the command is not the recorder's child");
    let cpu_during = inside.seconds("parent_cpu_ns");
    Ok(Run {
        command_cpu,
        command_wall: inside.wall(),
        cpu_during,
        cpu_after: own - cpu_during,
        saving: around.seconds("ended_ns") - inside.seconds("ended_ns"),
        ..Run::default()
    })
}
