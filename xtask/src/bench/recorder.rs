//! The compared recorders: their command lines, and how their recordings are read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::samples::{self, Samples};

/// A recorder, in one of its modes.
#[derive(Clone)]
pub(crate) struct Recorder {
    /// Its name in the tables.
    pub(crate) name: &'static str,
    /// How it gets stacks, and whether it looks up names, because only equal tasks are compared.
    pub(crate) mode: &'static str,
    /// The program; `None` if this machine has none.
    pub(crate) program: Option<PathBuf>,
    /// Its arguments before the rate, the output and the command.
    arguments: &'static [&'static str],
    /// The option that takes the rate.
    rate_option: &'static str,
    /// The ending of its recordings' names.
    pub(crate) extension: &'static str,
    /// Whether it has an option that looks up symbols after the recording.
    pub(crate) presymbolicates: bool,
    /// The value of perf_event_paranoid that it needs.
    pub(crate) paranoid: Option<i32>,
    /// Counts the samples of a recording.
    pub(crate) samples: fn(&Path) -> Result<Samples>,
    /// The command that names the functions of a recording, if that is a separate step.
    pub(crate) naming: Option<fn(&Path) -> Vec<OsString>>,
}

impl Recorder {
    /// The command line that records a command.
    pub(crate) fn args(&self, rate: u32, output: &Path, command: &[OsString]) -> Vec<OsString> {
        let mut args = self.words_to(rate, output);
        args.push("--".into());
        args.extend_from_slice(command);
        args
    }

    /// The command line that attaches to a process.
    pub(crate) fn attaching(&self, rate: u32, output: &Path, pid: u32) -> Vec<OsString> {
        let mut args = self.words_to(rate, output);
        args.extend(["-p".into(), pid.to_string().into()]);
        args
    }

    /// nyquist with ptrace, printing for how long it held threads.
    pub(crate) fn saying_holds(&self) -> Self {
        Self { arguments: &["record", "-v", "--save-only", "--backend", "ptrace"], ..self.clone() }
    }

    /// nyquist as on its first run on a machine, without anything that earlier recordings have kept.
    pub(crate) fn for_the_first_time(&self) -> Self {
        let arguments = &["record", "--quiet", "--save-only", "--no-cache"];
        Self { name: "nyquist, first time", arguments, ..self.clone() }
    }

    fn words_to(&self, rate: u32, output: &Path) -> Vec<OsString> {
        let program = self.program.clone().unwrap_or_default().into_os_string();
        let mut args = vec![program];
        args.extend(self.arguments.iter().map(OsString::from));
        args.extend([self.rate_option.into(), rate.to_string().into()]);
        args.extend(["-o".into(), output.into()]);
        args
    }
}

/// How many bytes of each stack samply copies.
const SAMPLYS_COPIES: &str = "32768";

/// All recorders, in the order of the tables. A recorder that this machine lacks has no program.
pub(crate) fn all(nyquist: &Path) -> Vec<Recorder> {
    let [nyquist, as_samply, by_ptrace, by_frame_pointers] = nyquist_recorders(nyquist);
    let [perf, perf_dwarf] = perf_recorders(&nyquist);
    let [samply, samply_symbols] = samply_recorders(&nyquist);
    vec![nyquist, as_samply, samply_symbols, samply, perf_dwarf, by_frame_pointers, perf, by_ptrace]
}

/// nyquist with its defaults, with samply's stack copies, with ptrace, and with frame pointers.
fn nyquist_recorders(program: &Path) -> [Recorder; 4] {
    let nyquist = Recorder {
        name: "nyquist",
        mode: "copies, names",
        program: Some(program.to_owned()),
        arguments: &["record", "--quiet", "--save-only"],
        rate_option: "--rate",
        extension: ".json.gz",
        presymbolicates: false,
        paranoid: None,
        samples: samples::in_profile,
        naming: None,
    };
    let as_samply = Recorder {
        name: "nyquist, 32 kB",
        arguments: &[
            "record",
            "--quiet",
            "--save-only",
            "--call-graph",
            "dwarf",
            "--stack-size",
            SAMPLYS_COPIES,
        ],
        ..nyquist.clone()
    };
    let by_ptrace = Recorder {
        name: "nyquist, ptrace",
        mode: "ptrace, names",
        arguments: &["record", "--quiet", "--save-only", "--backend", "ptrace"],
        ..nyquist.clone()
    };
    let by_frame_pointers = Recorder {
        name: "nyquist fp",
        mode: "frame pointers, names",
        arguments: &["record", "--quiet", "--save-only", "--call-graph", "fp"],
        ..nyquist.clone()
    };
    [nyquist, as_samply, by_ptrace, by_frame_pointers]
}

/// perf with frame pointers, and with stack copies.
fn perf_recorders(nyquist: &Recorder) -> [Recorder; 2] {
    let perf = Recorder {
        name: "perf -g",
        mode: "frame pointers",
        program: in_path("perf"),
        arguments: &["record", "-q", "-g"],
        rate_option: "-F",
        extension: ".data",
        samples: samples::in_perf_data,
        naming: Some(perf_script),
        ..nyquist.clone()
    };
    let perf_dwarf = Recorder {
        name: "perf dwarf",
        mode: "copies",
        arguments: &["record", "-q", "--call-graph", "dwarf"],
        ..perf.clone()
    };
    [perf, perf_dwarf]
}

/// samply without names, and with names.
fn samply_recorders(nyquist: &Recorder) -> [Recorder; 2] {
    let samply = Recorder {
        name: "samply",
        mode: "copies",
        program: samply(),
        arguments: &["record", "--save-only", "--no-open"],
        // It refuses to start if the setting is higher, for any user.
        paranoid: Some(1),
        ..nyquist.clone()
    };
    let samply_symbols = Recorder {
        name: "samply + symbols",
        mode: "copies, names",
        arguments: presymbolicating(&samply),
        presymbolicates: true,
        ..samply.clone()
    };
    [samply, samply_symbols]
}

/// `perf script` unwinds copied stacks and names all frames. It may take minutes over
/// large debug information.
fn perf_script(recording: &Path) -> Vec<OsString> {
    let args = ["timeout", "60", "perf", "script", "-i"];
    args.iter().map(OsString::from).chain([recording.into()]).collect()
}

/// The path of samply, if `PEERS_DIR` has it.
pub(super) fn samply() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("PEERS_DIR")?);
    ["samply", "bin/samply"].map(|path| folder.join(path)).into_iter().find(|path| path.is_file())
}

/// samply's option for looking up symbols itself. Older versions call it unstable.
fn presymbolicating(samply: &Recorder) -> &'static [&'static str] {
    let help = samply.program.as_ref().and_then(|samply| printed(samply, &["record", "--help"]));
    if help.is_some_and(|help| help.contains("--unstable-presymbolicate")) {
        &["record", "--save-only", "--no-open", "--unstable-presymbolicate"]
    } else {
        &["record", "--save-only", "--no-open", "--presymbolicate"]
    }
}

/// The version that a recorder prints.
pub(crate) fn version(recorder: &Recorder) -> Option<String> {
    printed(recorder.program.as_ref()?, &["--version"]).map(|text| text.trim().to_owned())
}

/// The output of a program.
pub(super) fn printed(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(super) fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The command line, without the recording's path, that prints its samples with names.
pub(crate) fn script(recorder: &Recorder, nyquist: &Path) -> Vec<OsString> {
    if recorder.extension == ".data" {
        let args = ["timeout", "60", "perf", "script", "-F", "comm,tid,time,event,ip,sym,dso", "-i"];
        args.map(OsString::from).into()
    } else {
        vec![nyquist.into(), "script".into()]
    }
}
