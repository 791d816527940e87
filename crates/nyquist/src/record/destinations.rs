//! The files that a recording writes: found before it begins, and opened before it samples.

use crate::args::{NOT_UNDERSTOOD, RecordArgs};
use crate::failure::Failure;
use crate::form::{self, Form};
use crate::output::{Destination, Output};
use std::path::{Path, PathBuf};

/// The places of the profile and its flame graph.
pub(super) struct Destinations {
    output: Destination,
    form: Form,
    picture: Option<Destination>,
}

/// The same, opened.
pub(super) struct Outputs {
    pub(super) output: Output,
    pub(super) form: Form,
    pub(super) picture: Option<Output>,
}

impl Destinations {
    /// Finds both, and checks that their names fit their formats.
    pub(super) fn find(args: &RecordArgs) -> Result<Self, Failure> {
        let form = Form::of(&args.output)?;
        check_names(args)?;
        args.flamegraph.as_deref().map_or(Ok(()), form::check_picture)?;
        let picture = args
            .flamegraph
            .as_deref()
            .map(|path| Destination::find(path).map_err(|refused| refused.failure(path, "--flamegraph")));
        let output = Destination::find(&args.output).and_then(Destination::kept_for_a_profile);
        let output = output.map_err(|refused| refused.failure(&args.output, "-o"))?;
        Ok(Self { output, form, picture: picture.transpose()? })
    }

    pub(super) fn open(self, args: &RecordArgs) -> Result<Outputs, Failure> {
        let output = self.output.open().map_err(|refused| refused.failure(&args.output, "-o"))?;
        let path = args.flamegraph.as_deref().unwrap_or(Path::new(""));
        let picture = self.picture.map(Destination::open).transpose();
        let picture = picture.map_err(|refused| refused.failure(path, "--flamegraph"))?;
        Ok(Outputs { output, form: self.form, picture })
    }
}

/// Fails if two files of different content would have one name.
fn check_names(args: &RecordArgs) -> Result<(), Failure> {
    let named = [
        ("-o", Some(&args.output)),
        ("--flamegraph", args.flamegraph.as_ref()),
        ("--perf-data", args.perf_data.as_ref()),
    ];
    let named: Vec<_> =
        named.into_iter().filter_map(|(option, path)| Some((option, path?, place_of(path?)?))).collect();
    for (at, (option, path, place)) in named.iter().enumerate() {
        if let Some((other, ..)) = named.iter().take(at).find(|(.., before)| before == place) {
            let text = format!("{other} and {option} both name {}", path.display());
            return Err(Failure::new(text).hint("give each file a name of its own").status(NOT_UNDERSTOOD));
        }
    }
    Ok(())
}

/// The folder and the name of a file, independent of the form of its path. `None` for files that several may
/// write to, such as `/dev/null`.
fn place_of(path: &Path) -> Option<PathBuf> {
    if path.metadata().is_ok_and(|file| !file.is_file()) {
        return None;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}
