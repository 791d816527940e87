//! The programs that read recordings, and how each is called.

use std::ffi::OsString;
use std::path::Path;

use super::recordings::Recording;
use crate::bench::recorder::{in_path, printed, samply};

/// A program that reads a recording, in one of its modes.
pub(super) struct Reader {
    /// Its name in the tables.
    pub(super) name: &'static str,
    /// Whether its result contains function names.
    pub(super) names: bool,
    /// Whether it takes minutes for recordings with copies of stacks. Such a reader reads only the smallest
    /// of them, once.
    slow_with_copies: bool,
    /// The command line, with a placeholder for the recording's path.
    args: Vec<OsString>,
}

/// The placeholder for the recording's path.
const RECORDING: &str = "{recording}";

impl Reader {
    /// In how many of these rounds it reads a recording.
    pub(super) fn rounds(&self, recording: &Recording, rounds: u32) -> u32 {
        match (self.slow_with_copies && recording.has_copies, recording.is_tenfold) {
            (false, _) => rounds,
            (true, false) => 1,
            (true, true) => 0,
        }
    }

    /// The command line that reads a recording.
    pub(super) fn args(&self, recording: &Path) -> Vec<OsString> {
        let word = |word: &OsString| if word == RECORDING { recording.into() } else { word.clone() };
        self.args.iter().map(word).collect()
    }
}

/// All readers on this machine. nyquist comes first, both among those with names and among those without.
pub(super) fn all(nyquist: &Path, folder: &Path) -> Vec<Reader> {
    let output = |name: &str| folder.join(name).into_os_string();
    let call = |program: &Path, arguments: &[&str], output: Option<OsString>| -> Vec<OsString> {
        let args = arguments.iter().map(OsString::from);
        std::iter::once(program.into()).chain(args).chain(output).collect()
    };
    let to = output("nyquist.json.gz");
    let import = ["import", RECORDING, "-s", "-q", "--no-symbols", "-o"];
    let with_names = ["import", RECORDING, "-s", "-q", "-o"];
    let reader = |name, names, args| Reader { name, names, slow_with_copies: false, args };
    let mut readers = vec![
        reader("nyquist", false, call(nyquist, &import, Some(to.clone()))),
        reader("nyquist", true, call(nyquist, &with_names, Some(to))),
    ];
    if let Some(samply) = samply() {
        let import = ["import", RECORDING, "--save-only", "--no-open", "-o"];
        let option =
            if printed(&samply, &["import", "--help"]).is_some_and(|help| help.contains("--unstable-")) {
                "--unstable-presymbolicate"
            } else {
                "--presymbolicate"
            };
        let with_names = ["import", RECORDING, "--save-only", "--no-open", option, "-o"];
        let to = output("samply.json.gz");
        readers.push(reader("samply", false, call(&samply, &import, Some(to.clone()))));
        readers.push(reader("samply + symbols", true, call(&samply, &with_names, Some(to))));
    }
    if let Some(perf) = in_path("perf") {
        let modes = [
            ("perf script", &["script", "-i", RECORDING][..]),
            ("perf report --stdio", &["report", "--stdio", "-i", RECORDING]),
        ];
        readers.extend(modes.map(|(name, arguments)| Reader {
            name,
            names: true,
            slow_with_copies: true,
            args: call(&perf, arguments, None),
        }));
    }
    readers
}
