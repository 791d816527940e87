//! Cargo's part: it builds, and reports the command that it would run.

use super::calls::{CARGO_FAILED, program, this_program};
use super::choose::{self, Candidate};
use super::configuration::{Configuration, RunnerOverride, runner_text};
use super::frame_pointers;
use super::launch::{self, Launch};
use crate::args::cargo::CommonArgs;
use crate::failure::Failure;
use crate::identity;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A call of cargo.
pub(super) struct Build {
    command: Command,
    profile: String,
    target: Option<String>,
    target_folder: Option<PathBuf>,
}

/// How cargo ended.
pub(super) enum Outcome {
    /// All was built.
    Built(Built),
    /// Cargo has printed the error. This is its exit status.
    Failed(u8),
}

/// The result of cargo's build.
#[derive(Debug, Default)]
pub(super) struct Built {
    /// The commands that it would have run.
    pub(super) launches: Vec<Launch>,
    programs: Vec<Program>,
}

/// A program that cargo built, from its message `compiler-artifact`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Program {
    executable: PathBuf,
    /// Its target.
    pub(super) target: Target,
    /// Its build settings.
    pub(super) profile: Profile,
}

/// A target of a package.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Target {
    /// Its name.
    pub(super) name: String,
    kind: Vec<String>,
}

/// The settings of a program's build.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Profile {
    /// `0` means no optimisation.
    pub(super) opt_level: String,
}

impl Build {
    /// Makes the call: a subcommand of cargo that runs a program, and the selection.
    pub(super) fn new(
        subcommand: &str,
        common: &CommonArgs,
        selection: &[OsString],
    ) -> Result<Self, Failure> {
        let default = if subcommand == "bench" { "bench" } else { "release" };
        let default = if common.build.release { "release" } else { default };
        let profile = common.build.profile.clone().unwrap_or_else(|| default.to_owned());
        let mut command = identity::command(program());
        command.arg(subcommand);
        if !(subcommand == "bench" && profile == "bench") {
            command.args(["--profile", &profile]);
        }
        command.args(selection).args(common.cargo.all());
        if common.record.quiet() {
            command.arg("--quiet");
        }
        // All inlined functions with their full names, and lines. Variables and types are not needed.
        command.args(["--config", &format!("profile.{profile}.debug=\"limited\"")]);
        command.args(["--config", &format!("profile.{profile}.strip=false")]);
        let configuration = Configuration::read(&common.cargo)?;
        let runner = runner()?;
        let runner = [runner.as_str(), "cargo", "launch"];
        let has_options = !common.cargo.configuration().is_empty();
        // The entry of a target has priority over those of `cfg`, which could also be several.
        for target in configuration.targets(&host()?, &common.cargo) {
            match RunnerOverride::new(&target, &runner, has_options) {
                RunnerOverride::Variable(name) => command.env(name, runner_text(&target, &runner)?),
                RunnerOverride::Option => {
                    command.args(["--config", &configuration.runner(&target, &runner)?])
                }
            };
        }
        command.arg("--message-format=json-render-diagnostics");
        if common.frame_pointers {
            frame_pointers::add(&mut command, &configuration);
        }
        Ok(Self {
            command,
            profile,
            target: configuration.target_folder(&common.cargo),
            target_folder: common.cargo.target_folder(),
        })
    }

    /// The call as text, for messages.
    pub(super) fn command(&self) -> &Command {
        &self.command
    }

    /// The profile's name.
    pub(super) fn profile(&self) -> &str {
        &self.profile
    }

    /// The target folder, if the command line names it.
    pub(super) fn target_folder(&self) -> Option<&Path> {
        self.target_folder.as_deref()
    }

    /// The folder of the profile's programs below the target folder.
    pub(super) fn folder(&self) -> PathBuf {
        let name = match self.profile.as_str() {
            "dev" | "test" => "debug",
            "bench" => "release",
            name => name,
        };
        Path::new(self.target.as_deref().unwrap_or_default()).join(name)
    }

    /// Variables without those that only this call of cargo has set.
    pub(super) fn without_own<'a>(
        &'a self,
        variables: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = (&'a String, &'a String)> {
        variables.iter().filter(|(name, _)| self.command.get_envs().all(|(own, _)| own != name.as_str()))
    }

    /// Builds. Cargo's output goes to the user unchanged.
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let mut command = identity::command(self.command.get_program());
        command.args(self.command.get_args());
        command.envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let cannot_run = |error: std::io::Error| Failure::because("cargo cannot be run", &error);
        let mut cargo = command.stdout(Stdio::piped()).spawn().map_err(cannot_run)?;
        let mut built = Built::default();
        for line in cargo.stdout.take().map(BufReader::new).into_iter().flat_map(|stdout| stdout.split(b'\n'))
        {
            built.take(&line.map_err(cannot_run)?);
        }
        let status = cargo.wait().map_err(cannot_run)?;
        if status.success() {
            return Ok(Outcome::Built(built));
        }
        Ok(Outcome::Failed(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(CARGO_FAILED)))
    }
}

impl Built {
    /// Processes a line of cargo's output. Most of its messages are not needed.
    fn take(&mut self, line: &[u8]) {
        if let Ok(launch::Message { launch, reason }) = serde_json::from_slice(line)
            && reason == launch::REASON
        {
            self.launches.push(launch);
        } else if let Ok(program) = serde_json::from_slice(line) {
            self.programs.push(program);
        }
    }

    /// Cargo's message about the program to run.
    pub(super) fn program(&self, launch: &Launch) -> Option<&Program> {
        let same =
            |program: &&Program| match (program.executable.canonicalize(), launch.program().canonicalize()) {
                (Ok(built), Ok(run)) => built == run,
                _ => false,
            };
        self.programs.iter().find(same)
    }

    /// The user's name for the program to run.
    pub(super) fn target_name(&self, launch: &Launch) -> String {
        let target = self.program(launch).map(|program| &program.target);
        match target {
            Some(target) if target.kind.iter().any(|kind| kind.ends_with("lib")) => {
                format!("{} (the library)", target.name)
            }
            Some(target) => target.name.clone(),
            None => launch.program().file_name().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }

    /// The only program that cargo runs.
    pub(super) fn only(&self) -> Result<&Launch, Failure> {
        self.launches.first().ok_or_else(not_run)
    }

    /// The only program, or the one that the user chooses.
    pub(super) fn choose(&self, what: &str) -> Result<&Launch, Failure> {
        if self.launches.is_empty() {
            return Err(not_run());
        }
        let candidate = |launch| {
            let name = self.target_name(launch);
            Candidate { argv: format!("cargo nyquist {what} --{what} {name}"), label: name, value: launch }
        };
        choose::one(self.launches.iter().map(candidate).collect(), what, "there is nothing to run")
    }
}

fn not_run() -> Failure {
    Failure::new("cargo did not run the program through nyquist")
        .hint("remove the `runner` of this target from cargo's configuration, or override it with --config")
        .status(CARGO_FAILED)
}

/// This program's file, for cargo's configuration.
fn runner() -> Result<String, Failure> {
    let program = this_program()?;
    let path = program.to_str().ok_or_else(|| {
        Failure::new(format!("cargo cannot call {}, whose name is not UTF-8", program.display()))
    })?;
    Ok(path.to_owned())
}

/// The target that cargo builds for by default.
fn host() -> Result<String, Failure> {
    let output = identity::command(program()).arg("-vV").stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| Failure::because("cargo cannot be run", &error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure::new("`cargo -vV` does not say which target is the host"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_and_programs_are_in_cargos_messages() {
        let mut built = Built::default();
        built.take(br#"{"reason":"compiler-artifact","target":{"name":"a","kind":["lib"]},"profile":{"opt_level":"3"},"executable":null}"#);
        built.take(br#"{"reason":"compiler-artifact","target":{"name":"b","kind":["bin"]},"profile":{"opt_level":"0"},"executable":"/t/b"}"#);
        let launch = r#"{"reason":"nyquist-launch","launch":{"argv":[{"Unix":[47,98]}],"folder":"/f","variables":{"A":"1"}}}"#;
        // Arguments are of bytes there, and of 16-bit units here.
        let launch = if cfg!(windows) { launch.replace("Unix", "Windows") } else { launch.to_owned() };
        built.take(launch.as_bytes());
        built.take(b"what the program prints");
        assert_eq!(built.programs.len(), 1);
        assert_eq!(built.programs[0].profile.opt_level, "0");
        assert_eq!(built.only().unwrap().program(), Path::new("/b"));
    }
}
