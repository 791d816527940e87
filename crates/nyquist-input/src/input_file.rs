//! A file that is open: first as it is, then with unpacked contents.

use crate::error::InputError;
use crate::note::Note;
use crate::observer::ReadObserver;
use crate::source::Source;
use nyquist_download::PerfArchive;
use nyquist_formats::{Format, UnpackedFile};
use nyquist_symbols::KernelFiles;
use nyquist_system::anonymous_file;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file that is open; `-` is standard input. Only its first bytes were read.
pub struct InputFile {
    path: PathBuf,
    source: Source,
    format: Option<Format>,
    /// Whether it is packed in a way that the reader of its format does not know.
    is_hidden: bool,
    /// Facts for a recording that the kernel shows only to privileged processes.
    kernel: Option<KernelFiles>,
}

impl InputFile {
    /// Refuses a file whose name is that of an archive, before it is opened.
    ///
    /// # Errors
    /// [`InputError::Archive`].
    pub fn check_name(path: &Path) -> Result<(), InputError> {
        if PerfArchive::has_name_of_one(path) {
            return Err(InputError::Archive { path: path.to_owned() });
        }
        Ok(())
    }

    /// Opens a file, a folder of `perf record --threads`, or the standard input by the name `-`, with the rights of
    /// the calling thread.
    ///
    /// # Errors
    /// The system's, so that a caller can try again with other rights. [`InputError::Read`] takes it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let source = Source::find(path)?;
        let format = source.format(path)?;
        let is_hidden = source.packing()?.is_some_and(|packing| packing.hides(format));
        Ok(Self { path: path.to_owned(), source, format, is_hidden, kernel: None })
    }

    /// Also opens the kernel's files if this may be a recording. They name the kernel's functions, and show more to
    /// a privileged process.
    #[must_use]
    pub fn with_kernel_files(self) -> Self {
        let may_be_recording = self.format == Some(Format::PerfData) || self.is_hidden;
        Self { kernel: may_be_recording.then(KernelFiles::open).flatten(), ..self }
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file itself, if it is a regular one, for reading its bytes once more.
    pub fn regular_file(&self) -> Option<File> {
        self.source.again_file()
    }

    /// The same file with unpacked contents, if the reader of its format does not know its compression. The observer
    /// is notified if it is cut off.
    ///
    /// # Errors
    /// If it cannot be read, or nothing of it can be unpacked.
    pub fn unpack(self, observer: &dyn ReadObserver) -> Result<UnpackedInput, InputError> {
        let Self { path, source, format, kernel, .. } = self;
        let cannot_read = |source| InputError::Read { path: path.clone(), source };
        let packing = source.packing().map_err(cannot_read)?.filter(|packing| packing.hides(format));
        let Some(packing) = packing else {
            return Ok(UnpackedInput { path, source, format, kernel, packed: None });
        };
        let packed = Some(PackedFile(source.again_file()));
        let UnpackedFile { file, cut } = source
            .bytes()
            .and_then(|packed| packing.unpack(packed, anonymous_file()?))
            .map_err(|source| InputError::Unpack { path: path.clone(), source })?;
        if let Some(error) = cut {
            observer.note(Note::Cut { path: path.clone(), error });
        }
        let source = Source::File(file);
        // The name without the suffix shows the inner format: `x.folded.xz`.
        let format = source.format(&path.with_extension("")).map_err(cannot_read)?;
        Ok(UnpackedInput { path, source, format, kernel, packed })
    }
}

/// An open file whose contents a reader of its format can read.
pub struct UnpackedInput {
    pub(crate) path: PathBuf,
    pub(crate) source: Source,
    pub(crate) format: Option<Format>,
    pub(crate) kernel: Option<KernelFiles>,
    /// What the contents were unpacked from.
    pub(crate) packed: Option<PackedFile>,
}

/// A file with a compression that the reader of its format does not know; `None` if it came through a pipe. Its owner
/// and its time are those of the contents, and not those of the file that they were unpacked to.
pub(crate) struct PackedFile(pub(crate) Option<File>);

impl UnpackedInput {
    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its format, by its first bytes and its name. `None` if it is of no known format, or JSON of any.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// Whether it is a recording of perf.
    pub fn is_recording(&self) -> bool {
        self.format == Some(Format::PerfData)
    }

    /// Whether it is a trace of Windows.
    pub fn is_trace(&self) -> bool {
        self.format == Some(Format::Etl)
    }

    /// Whether its samples have labels to choose by.
    pub fn has_labels(&self) -> bool {
        self.format.is_some_and(Format::has_labels)
    }

    /// Whether a saved profile may have other values than the first one, which are chosen by name. Unknown JSON is
    /// read as a profile of the Firefox Profiler, which may have events.
    pub fn has_values(&self) -> bool {
        self.format.is_none_or(|format| format == Format::Firefox || format.has_values())
    }
}
