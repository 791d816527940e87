//! Opens files safely: only regular ones, and those in other roots as a process of that root sees them.

use super::symbol_files::AttemptOutcome;
use nyquist_object::FileSource;
use nyquist_system::{HeldFile, OpenRoot, open_regular};
use std::io;
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

/// Opens a regular file.
pub(crate) fn open_source(path: &Path) -> Result<Arc<FileSource>, AttemptOutcome> {
    open_regular(path).map(source_of).map_err(unreadable)
}

pub(super) fn source_of(file: impl Into<HeldFile>) -> Arc<FileSource> {
    Arc::new(FileSource::new(file))
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to `map_err`")]
pub(super) fn unreadable(error: io::Error) -> AttemptOutcome {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => AttemptOutcome::Missing,
        _ => AttemptOutcome::Unreadable(error.to_string()),
    }
}
