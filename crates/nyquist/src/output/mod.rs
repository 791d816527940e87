//! Output files: they are opened before the recording starts, and written completely or not at all when it
//! ends.

pub(crate) mod files;
mod refused;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use files::PendingFile;
pub(crate) use refused::OutputError;

use crate::identity::Rights;
use files::{FolderEntry, OutputTarget};
use nyquist_system::{Access, restrict};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Seek as _, Write};
use std::path::{Path, PathBuf};

/// An opened output for a profile.
#[derive(Debug)]
pub(crate) enum Output {
    /// A new file beside its final place, to which it is renamed at the end.
    File(PendingFile),
    /// A device, a FIFO or an inherited descriptor. It is written to and not replaced, and its
    /// owner is never changed.
    Stream(Stream),
}

/// An output that is written to directly.
#[derive(Debug)]
pub(crate) struct Stream {
    file: File,
    /// Its name for messages.
    path: PathBuf,
    is_stdout: bool,
}

/// A place that was found and, if it is a stream, opened. Nothing has been created there yet, so this program
/// can be ended while it waits for the reader of a FIFO.
#[derive(Debug)]
pub(crate) enum Destination {
    /// A file to be created, and the rights for it.
    File(FolderEntry, PathBuf, Rights),
    /// A stream.
    Stream(Stream),
}

impl Destination {
    /// Finds `path`; `-` is standard output. Links are followed, unless they belong to another user, so that
    /// a link stays a link. It uses the least sufficient rights.
    pub(crate) fn find(path: &Path) -> Result<Self, OutputError> {
        let (found, rights) = Rights::to_open(|| files::find(path, false))?;
        Ok(Self::of(found, path, rights))
    }

    /// As [`Destination::find`], for a format whose beginning is written last.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn find_seekable(path: &Path) -> Result<Self, OutputError> {
        let (found, rights) = Rights::to_open(|| files::find(path, true))?;
        match Self::of(found, path, rights) {
            Self::Stream(stream) if (&stream.file).stream_position().is_err() => Err(OutputError::Stream),
            found => Ok(found),
        }
    }

    /// The rights are those with which it was found. Writing to a stream needs none.
    fn of(found: OutputTarget, path: &Path, rights: Rights) -> Self {
        match found {
            OutputTarget::File(place) => Self::File(place, path.to_owned(), rights),
            OutputTarget::Stream { file, is_stdout } => {
                Self::Stream(Stream { file, path: path.to_owned(), is_stdout })
            }
        }
    }

    /// Refuses binary output to a terminal. If the output is the standard output, nothing else is printed
    /// there.
    pub(crate) fn kept_for_a_profile(self) -> Result<Self, OutputError> {
        if let Self::Stream(stream) = &self {
            if stream.file.is_terminal() {
                return Err(OutputError::Terminal);
            }
            if stream.is_stdout {
                files::redirect_stdout_to_stderr()?;
            }
        }
        Ok(self)
    }

    /// Creates the file, under a temporary name.
    pub(crate) fn open(self) -> Result<Output, OutputError> {
        match self {
            Self::File(place, shown, rights) => PendingFile::create(place, shown, rights).map(Output::File),
            Self::Stream(stream) => Ok(Output::Stream(stream)),
        }
    }
}

/// Makes a folder for files that everybody may read, and those above it that are missing.
pub(crate) fn create_folders(folder: &Path) -> Result<(), OutputError> {
    Rights::to_open(|| files::create_folders(folder)).map(drop)
}

/// Writes a whole file that everybody may read. An existing one is replaced and not kept.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    match Output::open(path)? {
        Output::File(pending) => {
            let mut file = pending.file()?;
            file.write_all(bytes)?;
            restrict(&file, Access::ReadByAll)?;
            Ok(pending.replace()?)
        }
        Output::Stream(mut stream) => Ok(stream.file.write_all(bytes)?),
    }
}

impl PendingFile {
    /// Writes and publishes it. Returns it for reading.
    fn save(self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<File> {
        let mut writer = BufWriter::with_capacity(1 << 16, self.file()?);
        write(&mut writer)?;
        writer.flush()?;
        self.appear()?;
        Ok(writer.into_inner()?)
    }
}

impl Output {
    /// Finds `path` and opens it.
    pub(crate) fn open(path: &Path) -> Result<Self, OutputError> {
        Destination::find(path)?.open()
    }

    /// Creates a file of this name in a new folder below `parent` that only the user may enter.
    pub(crate) fn open_in_private_folder(parent: &Path, name: &Path) -> Result<Self, OutputError> {
        PendingFile::create_in_private_folder(parent, name.as_os_str()).map(Self::File)
    }

    /// Whether it is a terminal, which takes only text.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self, Self::Stream(stream) if stream.file.is_terminal())
    }

    /// Its name for messages.
    pub(crate) fn name(&self) -> &Path {
        match self {
            Self::File(pending) => pending.display_path(),
            Self::Stream(stream) => &stream.path,
        }
    }

    /// The file for incremental writing, until it is published.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn file(&self) -> io::Result<File> {
        match self {
            Self::File(pending) => pending.file(),
            Self::Stream(stream) => stream.file.try_clone(),
        }
    }

    /// Publishes the written file.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn appear(self) -> io::Result<()> {
        match self {
            Self::File(pending) => pending.appear(),
            Self::Stream(_) => Ok(()),
        }
    }

    /// Writes and publishes it. Returns a file for reading. On an error no part of it remains in
    /// the file system.
    pub(crate) fn save(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Option<File>> {
        match self {
            Self::File(pending) => pending.save(|writer| write(writer)).map(Some),
            Self::Stream(stream) => {
                let mut writer = BufWriter::new(stream.file);
                write(&mut writer)?;
                writer.flush().map(|()| None)
            }
        }
    }
}
