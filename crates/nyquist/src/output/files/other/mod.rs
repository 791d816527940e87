//! Output files: they are written under a temporary name in the same folder, and renamed at the end.

#[cfg(target_os = "macos")]
mod macos;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "macos")]
use macos as special_files;
#[cfg(windows)]
use windows as special_files;

#[cfg(test)]
pub(crate) use special_files::NULL_DEVICE;
pub(crate) use special_files::redirect_stdout_to_stderr;

use crate::identity::Rights;
use crate::output::OutputError;
use nyquist_system::with_unused_name;
use special_files::Special;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The number of names for an existing file that another one replaces.
const OLD_NAMES: u32 = 16;

/// What a path names.
#[derive(Debug)]
pub(crate) enum OutputTarget {
    /// A file, or none yet.
    File(FolderEntry),
    /// Something that is written to and not replaced.
    Stream {
        /// It, opened for writing.
        file: File,
        /// Whether it is the standard output.
        is_stdout: bool,
    },
}

/// A name in a folder that exists.
#[derive(Debug)]
pub(crate) struct FolderEntry {
    path: PathBuf,
}

/// Finds what a path names; `-` is the standard output. `to_seek` refuses pipes before they are opened.
pub(crate) fn find(path: &Path, to_seek: bool) -> Result<OutputTarget, OutputError> {
    if path == Path::new("-") {
        return Ok(OutputTarget::Stream { file: special_files::standard_output()?, is_stdout: true });
    }
    match special_files::kind(path) {
        Some(Special::Pipe) if to_seek => return Err(OutputError::Stream),
        Some(_) => {
            return Ok(OutputTarget::Stream {
                file: OpenOptions::new().write(true).open(path)?,
                is_stdout: false,
            });
        }
        None => {}
    }
    let names_folder =
        path.file_name().is_none() || path.to_string_lossy().ends_with(std::path::is_separator);
    if path.is_dir() {
        return Err(OutputError::IsFolder);
    }
    let path = std::path::absolute(path)?;
    let folder = path.parent().unwrap_or(&path);
    if !folder.is_dir() || names_folder {
        return Err(OutputError::NoFolder(folder.to_owned()));
    }
    // A link to a file stays, and its target is replaced. A link to nothing is itself replaced.
    let path = fs::canonicalize(&path).unwrap_or(path);
    Ok(OutputTarget::File(FolderEntry { path }))
}

/// Makes a folder that everybody may enter, and those above it that are missing.
pub(crate) fn create_folders(folder: &Path) -> Result<(), OutputError> {
    Ok(fs::create_dir_all(folder)?)
}

/// The folders for a profile that cannot be written where it should be.
pub(crate) fn other_folders() -> Vec<PathBuf> {
    vec![std::env::temp_dir()]
}

/// A file with a temporary name. It is removed unless it is published.
#[derive(Debug)]
pub(crate) struct PendingFile {
    /// Closed only when this is dropped.
    file: Option<File>,
    temporary: PathBuf,
    place: FolderEntry,
    /// The name for messages.
    shown: PathBuf,
    /// The folder that was created only for this file.
    own_folder: Option<PathBuf>,
    has_appeared: bool,
}

impl PendingFile {
    /// Creates the temporary file.
    pub(crate) fn create(place: FolderEntry, shown: PathBuf, _rights: Rights) -> Result<Self, OutputError> {
        let (file, temporary) = make_temporary(&place.path)?;
        Ok(Self { file: Some(file), temporary, place, shown, own_folder: None, has_appeared: false })
    }

    /// Creates the temporary file in a new folder below `parent`, whose name cannot be predicted.
    pub(crate) fn create_in_private_folder(parent: &Path, name: &OsStr) -> Result<Self, OutputError> {
        let folder = with_unused_name(|number| {
            let folder = parent.join(format!("nyquist-{number:016x}"));
            special_files::new_folder(&folder)?;
            Ok(folder)
        })?;
        let path = folder.join(name);
        let mut pending = Self::create(FolderEntry { path: path.clone() }, path, Rights::Users)?;
        pending.own_folder = Some(folder);
        Ok(pending)
    }

    /// Its name for messages.
    pub(crate) fn display_path(&self) -> &Path {
        &self.shown
    }

    /// The absolute path, without links.
    pub(crate) fn path(&self) -> &Path {
        &self.place.path
    }

    /// Writes files into a folder of that name beside it, which is created if it is missing. Existing
    /// files are replaced.
    pub(crate) fn write_sibling_files<'f>(
        &self,
        folder: &OsStr,
        files: impl Iterator<Item = (&'f str, &'f [u8])>,
    ) -> Result<(), OutputError> {
        let folder = self.place.path.with_file_name(folder);
        if !folder.is_dir() {
            fs::create_dir(&folder)?;
        }
        for (name, bytes) in files {
            let is_name = Path::new(name).file_name() == Some(OsStr::new(name));
            if !is_name || name.contains(':') {
                return Err(io::Error::from(io::ErrorKind::InvalidInput).into());
            }
            let path = folder.join(name);
            let pending = Self::create(FolderEntry { path: path.clone() }, path, Rights::Users)?;
            pending.file()?.write_all(bytes)?;
            pending.replace()?;
        }
        Ok(())
    }

    /// The file for writing.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.as_ref().map_or_else(|| Err(io::ErrorKind::NotFound.into()), File::try_clone)
    }

    /// Gives it its final name. An existing file of that name is not kept.
    pub(crate) fn replace(mut self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.place.path)?;
        self.has_appeared = true;
        Ok(())
    }

    /// Gives it its final name. An existing file of that name is renamed.
    pub(crate) fn appear(mut self) -> io::Result<()> {
        let old = keep_old(&self.place.path)?;
        if let Err(error) = fs::rename(&self.temporary, &self.place.path) {
            if let Some(old) = old {
                fs::rename(old, &self.place.path)?;
            }
            return Err(error);
        }
        self.has_appeared = true;
        Ok(())
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        // A file that is open stays in its folder, even if it is removed.
        self.file = None;
        if !self.has_appeared {
            let _ = fs::remove_file(&self.temporary);
            if let Some(folder) = &self.own_folder {
                let _ = fs::remove_dir(folder);
            }
        }
    }
}

/// A new file beside a place. It may be renamed and removed while it is open, as the standard library opens it.
fn make_temporary(place: &Path) -> io::Result<(File, PathBuf)> {
    let name = place.file_name().unwrap_or_default();
    with_unused_name(|number| {
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}.{number}.tmp", std::process::id()));
        let temporary = place.with_file_name(temporary);
        Ok((special_files::new_file(&temporary)?, temporary))
    })
}

/// Renames an existing file, and returns the new name: `NAME.old`, or an unused one if that is not possible.
fn keep_old(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => {}
    }
    let old = with_suffix(path, ".old");
    let Err(error) = fs::rename(path, &old) else { return Ok(Some(old)) };
    let others = (2..=OLD_NAMES).map(|number| with_suffix(path, &format!(".old.{number}")));
    let mut retained = others.filter(|old| !old.exists() && fs::rename(path, old).is_ok());
    retained.next().map(Some).ok_or(error)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
