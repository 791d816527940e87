//! Which profiles are compared with which: those of the command line, or those of the same name in two folders.

use crate::args::DiffArgs;
use crate::failure::Failure;
use crate::printer::Printer;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The profiles of a comparison.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// The name of the files, if two folders are compared.
    pub(super) name: Option<String>,
    pub(super) before: Vec<PathBuf>,
    pub(super) after: Vec<PathBuf>,
}

/// The comparisons that the command line requests.
pub(super) fn of(args: &DiffArgs, printer: Printer) -> Result<Vec<Pair>, Failure> {
    let Some((before, after)) = args.sides() else {
        return Err(Failure::new("a profile before and one after are needed")
            .hint("nyquist diff BEFORE AFTER; of several runs: nyquist diff BEFORE... --after AFTER..."));
    };
    match (before, after) {
        ([before], [after]) if before.is_dir() && after.is_dir() => of_folders(before, after, printer),
        _ => Ok(vec![Pair { name: None, before: before.to_vec(), after: after.to_vec() }]),
    }
}

/// The files that both folders have, by name.
fn of_folders(before: &Path, after: &Path, printer: Printer) -> Result<Vec<Pair>, Failure> {
    let (names_before, names_after) = (file_names(before)?, file_names(after)?);
    for name in names_before.symmetric_difference(&names_after) {
        let folder = if names_before.contains(name) { before } else { after };
        printer.warn(format_args!("{} has no counterpart", folder.join(name).display()));
    }
    let pairs: Vec<_> =
        names_before.intersection(&names_after).map(|name| pair(name, before, after)).collect();
    if pairs.is_empty() {
        let message = format!("{} and {} have no file of the same name", before.display(), after.display());
        return Err(Failure::new(message));
    }
    Ok(pairs)
}

fn pair(name: &OsString, before: &Path, after: &Path) -> Pair {
    Pair {
        name: Some(name.to_string_lossy().into_owned()),
        before: vec![before.join(name)],
        after: vec![after.join(name)],
    }
}

/// The names of the files in a folder; hidden ones and folders are left out.
fn file_names(folder: &Path) -> Result<BTreeSet<OsString>, Failure> {
    let cannot_read = |error| Failure::io(format_args!("cannot read {}", folder.display()), &error);
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(cannot_read)? {
        let entry = entry.map_err(cannot_read)?;
        let name = entry.file_name();
        if !name.as_encoded_bytes().starts_with(b".") && entry.path().is_file() {
            names.insert(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Verbosity;

    #[test]
    fn files_of_one_name_are_compared() {
        let folder = std::env::temp_dir().join(format!("nyquist-pairs-{}", std::process::id()));
        let (before, after) = (folder.join("before"), folder.join("after"));
        for (folder, names) in [(&before, ["a", "b", ".c"]), (&after, ["b", "d", ".c"])] {
            fs::create_dir_all(folder).unwrap();
            for name in names {
                fs::write(folder.join(name), "").unwrap();
            }
        }
        let pairs = of_folders(&before, &after, Printer::new(Verbosity::default())).unwrap();
        assert_eq!(pairs, [pair(&"b".into(), &before, &after)]);
        fs::remove_file(after.join("b")).unwrap();
        let failure = of_folders(&before, &after, Printer::new(Verbosity::default())).unwrap_err();
        assert!(failure.message.ends_with("have no file of the same name"), "{}", failure.message);
        fs::remove_dir_all(folder).unwrap();
    }
}
