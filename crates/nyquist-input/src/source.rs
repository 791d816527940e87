//! The source of a file's bytes: a file, a folder of `perf record --threads`, or a pipe.

use nyquist_formats::{Format, PREFIX_BYTES, Packing, detect};
use nyquist_perf::file::{FileError, FileReader};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::Path;

/// What can be read at any offset.
pub(crate) trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// The source of a file's bytes.
pub(crate) enum Source {
    /// A file that can be read at any offset, such as a redirected one.
    File(File),
    /// A folder of `perf record --threads`. Its files are opened if the first of them is a recording.
    Folder { start: Vec<u8>, recording: Box<Result<FileReader, FileError>> },
    /// A folder of tables.
    #[cfg(feature = "parquet")]
    Tables(Vec<std::path::PathBuf>),
    /// A pipe: its first bytes, and the rest.
    Pipe { start: Vec<u8>, rest: Box<dyn Read + Send> },
}

impl Source {
    /// Opens what a path names; `-` is the standard input.
    pub(crate) fn find(path: &Path) -> io::Result<Self> {
        const STDIN: &str = "/dev/stdin";
        if path != Path::new("-") {
            return if path.is_dir() { Self::any_folder(path) } else { Self::file(File::open(path)?) };
        }
        if Path::new(STDIN).is_file() {
            return Self::file(File::open(STDIN)?);
        }
        Ok(Self::Pipe { start: prefix(io::stdin().lock())?, rest: Box::new(io::stdin()) })
    }

    /// A file that is not regular is read like a pipe.
    fn file(file: File) -> io::Result<Self> {
        if file.metadata()?.is_file() {
            return Ok(Self::File(file));
        }
        Ok(Self::Pipe { start: prefix(&file)?, rest: Box::new(file) })
    }

    /// A folder that is no recording may have tables in it.
    fn any_folder(path: &Path) -> io::Result<Self> {
        let recording = Self::folder(path);
        #[cfg(feature = "parquet")]
        if recording.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::IsADirectory) {
            return crate::tables::find(path).map(Self::Tables);
        }
        recording
    }

    fn folder(path: &Path) -> io::Result<Self> {
        let data = File::open(path.join("data")).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => error,
            _ => io::ErrorKind::IsADirectory.into(),
        })?;
        let start = prefix(&data)?;
        match FileReader::open(path) {
            Err(FileError::Read { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                Err(source)
            }
            recording => Ok(Self::Folder { start, recording: Box::new(recording) }),
        }
    }

    /// The format, determined by the first bytes. If they are ambiguous, the file's name decides.
    pub(crate) fn format(&self, path: &Path) -> io::Result<Option<Format>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match self {
            // The file in it shows whether it is a recording.
            Self::Folder { start, .. } => Ok(detect(start, "")),
            #[cfg(feature = "parquet")]
            Self::Tables(_) => Ok(Some(Format::Parquet)),
            Self::File(_) | Self::Pipe { .. } => Ok(detect(&self.start()?, &name)),
        }
    }

    /// The compression, if any.
    pub(crate) fn packing(&self) -> io::Result<Option<Packing>> {
        match self {
            Self::Folder { .. } => Ok(None),
            #[cfg(feature = "parquet")]
            Self::Tables(_) => Ok(None),
            Self::File(_) | Self::Pipe { .. } => Ok(Packing::of(&self.start()?)),
        }
    }

    /// The first bytes of the file.
    pub(crate) fn start(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::File(file) => start_of(file),
            Self::Pipe { start, .. } | Self::Folder { start, .. } => Ok(start.clone()),
            #[cfg(feature = "parquet")]
            Self::Tables(_) => Ok(Vec::new()),
        }
    }

    /// The same file for another reading of a recording. `None` if it cannot be read twice.
    pub(crate) fn again(&self) -> Option<Self> {
        self.again_file().map(Self::File)
    }

    /// The open file, if it can be read at any offset.
    pub(crate) fn again_file(&self) -> Option<File> {
        let Self::File(file) = self else { return None };
        file.try_clone().ok()
    }

    /// The contents as a recording of perf.
    pub(crate) fn recording(self) -> Result<FileReader, FileError> {
        match self {
            Self::File(file) => FileReader::open_file(file),
            Self::Folder { recording, .. } => *recording,
            #[cfg(feature = "parquet")]
            Self::Tables(_) => FileReader::open_stream(io::empty()),
            Self::Pipe { start, rest } => FileReader::open_stream(Cursor::new(start).chain(rest)),
        }
    }

    /// The contents, for readers that go back and forth. A pipe is read to its end.
    pub(crate) fn seekable(self) -> io::Result<Box<dyn ReadSeek>> {
        if let Self::File(file) = self {
            return Ok(Box::new(file));
        }
        let mut bytes = Vec::new();
        self.bytes()?.read_to_end(&mut bytes)?;
        Ok(Box::new(Cursor::new(bytes)))
    }

    /// The contents from the beginning.
    pub(crate) fn bytes(self) -> io::Result<Box<dyn Read>> {
        match self {
            Self::File(file) => Ok(Box::new(file)),
            Self::Folder { .. } => Err(io::ErrorKind::IsADirectory.into()),
            #[cfg(feature = "parquet")]
            Self::Tables(_) => Err(io::ErrorKind::IsADirectory.into()),
            Self::Pipe { start, rest } => Ok(Box::new(Cursor::new(start).chain(rest))),
        }
    }
}

/// The first bytes of a file. Later reads start at the beginning again.
fn start_of(mut file: &File) -> io::Result<Vec<u8>> {
    let start = prefix(file)?;
    file.rewind()?;
    Ok(start)
}

fn prefix(input: impl Read) -> io::Result<Vec<u8>> {
    let mut prefix = Vec::new();
    input.take(PREFIX_BYTES as u64).read_to_end(&mut prefix)?;
    Ok(prefix)
}
