//! Puts the library that is preloaded into programs where their loader finds it: into a private folder of the user's.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nyquist_alloc::{LIBRARY, LIBRARY_WITH_OPERATORS};
use nyquist_system::{create_private_folder, private_options};
use thiserror::Error;

use crate::linux::sys::files::is_on_noexec;
use crate::linux::sys::users;

/// Why the library cannot be preloaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// This build has none.
    #[error("this build of nyquist has no library to preload")]
    Missing,
    /// The loader separates paths at spaces and colons.
    #[error("the loader cannot load a library from {0}, because of a space or colon in the path")]
    Path(PathBuf),
    /// No program may be run from the folder.
    #[error("{0} is on a file system from which no code may be run")]
    NoExec(PathBuf),
    /// The file in the folder cannot be made.
    #[error("the library to preload cannot be written to {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Which functions the library has in place of the program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryVariant {
    /// `malloc`, `free` and the like.
    Functions,
    /// C++'s operators, too: the program's allocator has its own, which do not call `malloc`.
    FunctionsAndOperators,
}

impl LibraryVariant {
    fn bytes(self) -> &'static [u8] {
        match self {
            Self::Functions => LIBRARY,
            Self::FunctionsAndOperators => LIBRARY_WITH_OPERATORS,
        }
    }
}

/// The library, as a file that a loader can load.
#[derive(Clone, Debug)]
pub struct PreloadedLibrary {
    path: PathBuf,
}

impl PreloadedLibrary {
    /// Writes the library to a folder of the user's, unless it is there already. Called with the user's rights.
    pub fn place(folder: &Path, variant: LibraryVariant) -> Result<Self, LibraryError> {
        let library = variant.bytes();
        if library.is_empty() {
            return Err(LibraryError::Missing);
        }
        let path = folder.join(format!("libnyquist_alloc-{:016x}.so", hash(library)));
        if path.as_os_str().as_bytes().iter().any(|byte| b" :\t\n".contains(byte)) {
            return Err(LibraryError::Path(folder.to_owned()));
        }
        if !is_ours(&path, library) {
            write(folder, &path, library)
                .map_err(|source| LibraryError::Write { path: path.clone(), source })?;
        }
        if is_on_noexec(&path) {
            return Err(LibraryError::NoExec(folder.to_owned()));
        }
        Ok(Self { path })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether the file is the library, and nobody else can change it.
fn is_ours(path: &Path, library: &[u8]) -> bool {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(path) else { return false };
    let is_private = file.metadata().is_ok_and(|it| {
        it.uid() == users::effective() && it.mode() & 0o022 == 0 && it.len() == library.len() as u64
    });
    is_private && has_library(&file, library)
}

fn has_library(file: &File, library: &[u8]) -> bool {
    let mut bytes = Vec::with_capacity(library.len());
    file.take(library.len() as u64).read_to_end(&mut bytes).is_ok() && bytes == library
}

/// Replaces the file by the library as a whole, because a program may be loading it.
fn write(folder: &Path, path: &Path, library: &[u8]) -> io::Result<()> {
    create_private_folder(folder)?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = || {
        // Left over from a process of the same number.
        let _ = fs::remove_file(&temporary);
        let mut file = private_options().write(true).create_new(true).open(&temporary)?;
        file.write_all(library)?;
        fs::rename(&temporary, path)
    };
    written().inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// A number for the content, so that different versions have different names (FNV-1a).
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_object::{Elf, FileSource};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// What the library may take from the C library, with the version of glibc that has it first. musl has all of them.
    const OF_C_LIBRARY: [(&str, &str); 9] = [
        ("dlsym", "2.0"),
        ("dladdr", "2.0"),
        ("memcpy", "2.0"),
        ("memmove", "2.0"),
        ("memset", "2.0"),
        ("memcmp", "2.0"),
        ("bcmp", "2.0"),
        ("getauxval", "2.16"),
        // Before, it was in a library of its own.
        ("clock_gettime", "2.17"),
    ];

    #[test]
    fn the_library_needs_no_new_c_library() {
        for variant in [LibraryVariant::Functions, LibraryVariant::FunctionsAndOperators] {
            needs_no_new_c_library(variant);
        }
    }

    fn needs_no_new_c_library(variant: LibraryVariant) {
        const SYMBOL: usize = 24;
        let folder = std::env::temp_dir().join(format!("nyquist-versions-{}", std::process::id()));
        let placed = PreloadedLibrary::place(&folder, variant).unwrap();
        let elf = Elf::open(FileSource::new(File::open(placed.path()).unwrap())).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        // A symbol with a version would need a C library that has this version.
        assert!(elf.section(".gnu.version_r").is_none());
        let [symbols, names] =
            [".dynsym", ".dynstr"].map(|name| elf.data(elf.section(name).unwrap()).unwrap());
        let is_undefined = |symbol: &&[u8]| symbol[6..8] == [0, 0];
        let undefined: Vec<_> = symbols
            .chunks_exact(SYMBOL)
            .skip(1)
            .filter(is_undefined)
            .map(|symbol| {
                let start = u32::from_le_bytes(*symbol.first_chunk().unwrap()) as usize;
                let name = names[start..].split(|byte| *byte == 0).next().unwrap();
                String::from_utf8_lossy(name).into_owned()
            })
            .collect();
        assert!(undefined.iter().any(|name| name == "dlsym"));
        let new = undefined.iter().find(|name| !OF_C_LIBRARY.iter().any(|(known, _)| known == name));
        assert_eq!(new, None, "docs/allocations.md says that glibc 2.17 is enough");
    }

    #[test]
    fn the_library_is_placed_once_through_no_link() {
        let folder = std::env::temp_dir().join(format!("nyquist-preload-{}", std::process::id()));
        let place = |folder: &Path| PreloadedLibrary::place(folder, LibraryVariant::Functions);
        let placed = place(&folder).unwrap();
        let inode = || fs::symlink_metadata(placed.path()).unwrap().ino();
        let first = inode();
        place(&folder).unwrap();
        assert_eq!(first, inode());
        // Others could change it.
        fs::set_permissions(placed.path(), fs::Permissions::from_mode(0o666)).unwrap();
        place(&folder).unwrap();
        assert!(is_ours(placed.path(), LIBRARY) && first != inode());
        let elsewhere = folder.join("elsewhere");
        fs::rename(placed.path(), &elsewhere).unwrap();
        symlink(&elsewhere, placed.path()).unwrap();
        place(&folder).unwrap();
        assert!(fs::symlink_metadata(placed.path()).unwrap().is_file());
        assert!(matches!(place(&folder.join("a b")), Err(LibraryError::Path(_))));
        fs::remove_dir_all(&folder).unwrap();
    }
}
