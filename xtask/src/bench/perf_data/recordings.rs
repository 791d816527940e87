//! The recordings that are read: `perf record` makes them of the Rust compiler, and they are kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::many_functions::write_functions;
use crate::steps::succeeds;

/// A recording.
pub(super) struct Recording {
    /// Its name in the tables.
    pub(super) name: String,
    /// The file.
    pub(super) path: PathBuf,
    /// Whether its samples have copies of stacks.
    pub(super) has_copies: bool,
    /// Whether it is another recording, repeated ten times.
    pub(super) is_tenfold: bool,
}

impl Recording {
    /// The file's size.
    pub(super) fn megabytes(&self) -> Result<f64> {
        Ok(std::fs::metadata(&self.path)?.len() as f64 / 1e6)
    }
}

/// Where recordings are kept, and the programs that are recorded.
pub(super) struct Making<'a> {
    /// The folder.
    pub(super) folder: &'a Path,
    /// The program that repeats a recording several times in one file.
    pub(super) repeat: &'a Path,
    /// How often the compiler runs.
    pub(super) runs: u32,
}

impl Making<'_> {
    /// A recording with copies of stacks.
    pub(super) fn dwarf(&self, rate: u32) -> Result<Recording> {
        let recording = self.recording("dwarf", true);
        self.record(&recording.path, &["--call-graph", "dwarf"], rate)?;
        Ok(recording)
    }

    /// A recording whose stacks the kernel has walked by frame pointers. The compiler has none, so many of
    /// its stacks end somewhere in memory. Such recordings are common, and hard to read.
    pub(super) fn frame_pointers(&self, rate: u32) -> Result<Recording> {
        let recording = self.recording("frame pointers", false);
        self.record(&recording.path, &["-g"], rate)?;
        Ok(recording)
    }

    /// The recording, repeated ten times.
    pub(super) fn tenfold(&self, recording: &Recording) -> Result<Recording> {
        let name = format!("{}, 10 times", recording.name);
        let tenfold = Recording { is_tenfold: true, ..self.recording(&name, recording.has_copies) };
        if !tenfold.path.is_file() {
            let temporary = tenfold.path.with_extension("unfinished");
            let mut command = Command::new(self.repeat);
            command.arg(&recording.path).arg("10").arg(&temporary);
            ensure!(succeeds(command)?, "the recording cannot be repeated");
            std::fs::rename(temporary, &tenfold.path)?;
        }
        Ok(tenfold)
    }

    fn recording(&self, name: &str, has_copies: bool) -> Recording {
        let file = format!("{}.data", name.replace(", ", "-").replace(' ', "-"));
        Recording { name: name.to_owned(), path: self.folder.join(file), has_copies, is_tenfold: false }
    }

    /// Records the compiler, unless the recording exists.
    fn record(&self, path: &Path, mode: &[&str], rate: u32) -> Result<()> {
        /// How many functions one run compiles.
        const FUNCTIONS: u32 = 24;
        if path.is_file() {
            return Ok(());
        }
        let source = self.folder.join("generated.rs");
        write_functions(&source, FUNCTIONS)?;
        let temporary = path.with_extension("unfinished");
        let script =
            "for run in $(seq $1); do rustc --crate-type=lib -O -Cdebuginfo=2 -o $3 $2 || exit; done";
        let mut command = Command::new("perf");
        command.args(["record", "-q"]).args(mode).args(["-F", &rate.to_string(), "-o"]).arg(&temporary);
        let args: [OsString; 6] =
            ["--".into(), "sh".into(), "-c".into(), script.into(), "sh".into(), self.runs.to_string().into()];
        command.args(args).arg(&source).arg(self.folder.join("generated.rlib"));
        ensure!(succeeds(command)?, "perf cannot record the compiler");
        std::fs::rename(temporary, path).context("the recording cannot be kept")
    }
}
