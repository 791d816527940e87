//! Opens files safely: only regular ones, and those in other roots as a process of that root sees them.

use super::symbol_files::AttemptOutcome;
use nyquist_object::FileSource;
use nyquist_resources::Budget;
use nyquist_system::{HeldFile, OpenRoot, open_regular};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A path in other roots, and the path itself.
pub(crate) fn seen_from<'a>(roots: &'a [OpenRoot], path: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    let below = path.strip_prefix("/").ok();
    let inside = below.into_iter().flat_map(|below| roots.iter().map(move |root| root.path().join(below)));
    inside.chain([path.to_owned()])
}

/// Opens a regular file, one in another root as a process of that root sees it.
pub(crate) fn open_seen(roots: &[OpenRoot], path: &Path) -> io::Result<HeldFile> {
    match roots.iter().find_map(|root| Some((root, path.strip_prefix(root.path()).ok()?))) {
        Some((root, inside)) => root.open_file(inside),
        None => Ok(open_regular(path)?.into()),
    }
}

/// Opens a regular file, whose memory is charged to this budget.
pub(crate) fn open_source(path: &Path, budget: Option<&Budget>) -> Result<Arc<FileSource>, AttemptOutcome> {
    open_regular(path).map(|file| source_of(file, budget)).map_err(unreadable)
}

/// The first bytes of a regular file, which tell its format.
pub(super) fn first_bytes<const N: usize>(path: &Path) -> Option<[u8; N]> {
    let mut start = [0; N];
    open_regular(path).and_then(|mut file| file.read_exact(&mut start)).ok()?;
    Some(start)
}

/// A name with something appended.
pub(super) fn with_suffix(name: &OsStr, suffix: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(suffix);
    name
}

pub(super) fn source_of(file: impl Into<HeldFile>, budget: Option<&Budget>) -> Arc<FileSource> {
    Arc::new(FileSource::within(file, budget.cloned()))
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to `map_err`")]
pub(super) fn unreadable(error: io::Error) -> AttemptOutcome {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => AttemptOutcome::Missing,
        _ => AttemptOutcome::Unreadable(error.to_string()),
    }
}
