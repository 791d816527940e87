//! The key of cached answers: the files that they were made from, and the code that made them.

use super::folder::{self, ANSWERS};
use crate::section_contents::SharedSource;
use crate::{OpenFile, SymbolFiles};
use nyquist_object::{BuildId, ByteSource, Elf, FileSource};
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The version of the code that makes the answers. Another version may give other answers.
pub(crate) const MAKER: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("NYQUIST_SYMBOLS_SOURCES"));

/// The identity of the answers of one module. It consists of its binary and of all files that its names and
/// lines come from. Installing debug info changes it, as does any change of one of the files.
#[derive(Clone, Debug)]
pub(crate) struct CacheKey {
    /// The identity as text, with a line for each file.
    pub(crate) text: String,
    /// The module's path, for display.
    pub(crate) path: PathBuf,
    /// The open files, with their state when they were opened.
    files: Vec<(Arc<FileSource>, FileVersion)>,
}

/// The state of a file, which changes when it is modified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileVersion {
    size: u64,
    seconds: i64,
    nanoseconds: u32,
}

impl CacheKey {
    /// The key of the files that were found. `None` if the state of a file cannot be read.
    pub(crate) fn of(found: &SymbolFiles) -> Option<Self> {
        let files = [&found.binary, &found.debug_file, &found.supplementary, &found.package];
        let text = format!("nyquist-symbols {MAKER}\n");
        let mut key = Self { text, path: found.module.clone(), files: Vec::new() };
        for (name, file) in ["binary", "debug", "supplementary", "package"].into_iter().zip(files) {
            if let Some(file) = file {
                key.add(name, file)?;
            }
        }
        if let Some(slice) = found.slice {
            writeln!(key.text, "slice {}", slice.breakpad()).ok()?;
        }
        (!key.files.is_empty()).then_some(key)
    }

    fn add(&mut self, name: &str, file: &OpenFile) -> Option<()> {
        let version = FileVersion::of(&file.source).ok()?;
        let build_id = Elf::open(&*file.source).ok().and_then(|elf| elf.build_id());
        writeln!(self.text, "{name} {}", identity(&file.source, build_id, version)?).ok()?;
        self.files.push((file.source.clone(), version));
        Some(())
    }

    /// The identity of one of the files. `None` for any other file.
    pub(super) fn identity_of(&self, elf: &Elf<SharedSource>) -> Option<String> {
        let file = elf.source().as_file()?;
        let (source, version) =
            self.files.iter().find(|(source, _)| std::ptr::eq(&raw const **source, file))?;
        identity(source, elf.build_id(), *version)
    }

    /// Whether no file was modified since. Data that is read during a modification may be of neither state.
    pub(crate) fn still_holds(&self) -> bool {
        self.files.iter().all(|(source, version)| FileVersion::of(source).is_ok_and(|now| now == *version))
    }

    /// A hash of the key. It distinguishes the module's blocks from those of other modules.
    pub(crate) fn seed(&self) -> u64 {
        folder::seed_of(&self.text)
    }

    /// The name of the file with the answers.
    pub(crate) fn file_name(&self) -> String {
        folder::file_name(&self.text, ANSWERS)
    }
}

/// A file's identity as text, with its state when it was opened. If it has a build id, its inode does not
/// matter, because the same file has other inodes in container images.
pub(super) fn identity(
    source: &FileSource,
    build_id: Option<BuildId>,
    version: FileVersion,
) -> Option<String> {
    let identity = match build_id {
        Some(id) => id.to_string(),
        None => {
            let id = source.facts().ok()?.id;
            format!("file {} {}", id.device, id.number)
        }
    };
    let FileVersion { size, seconds, nanoseconds } = version;
    Some(format!("{identity} {size} {seconds}.{nanoseconds}"))
}

impl FileVersion {
    pub(super) fn of(source: &FileSource) -> io::Result<Self> {
        let (seconds, nanoseconds) = source.facts()?.modified;
        Ok(Self { size: source.len(), seconds, nanoseconds })
    }
}
