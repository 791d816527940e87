//! The text of source files on this machine, and which of them may be shown.
//!
//! A profile may come from an untrusted source, and it names source files. If all of them were shown, a
//! profile could make a page or a report show `/etc/passwd`. So only these files are read:
//!
//! - files that the debug info of a module on this machine names, if the module has the identity in the
//!   profile. The caller checks this;
//! - files in a folder that the user has named ([`SourceFiles::allowing`]), or to which a path was mapped
//!   ([`SourceFiles::moving`]). The file's real path, with all links resolved, must be in that folder.
//! - the source of Rust's standard library and of crates of crates.io, if it is on this machine, because both
//!   are published.
//!
//! Only regular text files of a bounded length are read.

use super::disk_source_path;
use super::moved::MovedFolder;
use super::rust::RustSources;
use super::rust_path::RustPath;
use super::source_file::{MAX_SOURCE_BYTES, OpenSourceFile, SourceError, SourceFile, open, open_below};
use std::borrow::Cow;
use std::cell::LazyCell;
use std::path::{Path, PathBuf};

/// The folders in which source files may be read without debug info that names them, and the mappings of
/// moved folders.
#[derive(Clone, Debug, Default)]
pub struct SourceFiles {
    folders: Vec<PathBuf>,
    moved: Vec<MovedFolder>,
    rust: RustSources,
}

impl SourceFiles {
    /// Allows reading of all files in `folder`, and looks there for files whose folder is not known.
    #[must_use]
    pub fn allowing(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.push(folder.into());
        self
    }

    /// Reads files below `from` from the folder `to`. The first mapping that matches and has the file is
    /// used.
    #[must_use]
    pub fn moving(mut self, from: &str, to: impl Into<PathBuf>) -> Self {
        self.moved.push(MovedFolder::new(from, to.into()));
        self
    }

    /// Looks for the source of Rust's standard library in the toolchains of rustup, and for that of crates in
    /// the folders where cargo unpacks them.
    #[must_use]
    pub fn with_rust(self, rustup_home: Option<PathBuf>, cargo_home: Option<PathBuf>) -> Self {
        Self { rust: RustSources::new(rustup_home, cargo_home), ..self }
    }

    /// Reads the file that is named `file`, by its path or by its special path. If no folder allows it,
    /// `named` returns the spelling in debug info on this machine, if it names the file. It is called last,
    /// because it is slow.
    ///
    /// # Errors
    /// The file cannot or may not be read.
    pub fn read(
        &self,
        file: &str,
        named: impl FnOnce() -> Option<String>,
    ) -> Result<SourceFile, SourceError> {
        let place = &*self.place_of(file);
        if place.chars().any(char::is_control) {
            return Err(SourceError::Unfit("its path has control characters"));
        }
        if let Some(read) = self.read_allowed(place) {
            return read;
        }
        let named = LazyCell::new(named);
        let error = match read_named(Path::new(place), || named.as_deref()) {
            Ok(read) => return Ok(read),
            Err(error) => error,
        };
        if let Some(read) = self.rust.read(place) {
            return read;
        }
        self.read_crate_of(place, || named.as_deref()).ok_or(error)
    }

    /// The place of a file on this machine, according to its name.
    pub fn place_of<'a>(&self, file: &'a str) -> Cow<'a, str> {
        match disk_source_path(file, self.rust.cargo_home()) {
            Cow::Borrowed(file) => local_path(file),
            place @ Cow::Owned(_) => place,
        }
    }

    /// Reads a crate's file that is not at its own path. It was built with another home of cargo, or it is of an
    /// unpublished crate and was built on another machine. Debug info must name it.
    fn read_crate_of<'a>(&self, file: &str, named: impl FnOnce() -> Option<&'a str>) -> Option<SourceFile> {
        if !matches!(RustPath::of(file)?, RustPath::Crate { .. }) {
            return None;
        }
        let named = named()?;
        let allowed = self.read_allowed(named).and_then(Result::ok);
        let there = || open_absolute(Path::new(named)).and_then(OpenSourceFile::text).ok();
        allowed.or_else(there).or_else(|| self.rust.read_unpublished(file))
    }

    /// The file in one of the folders that the user has named.
    fn read_allowed(&self, file: &str) -> Option<Result<SourceFile, SourceError>> {
        let moved = self.moved.iter().filter_map(|moved| Some((moved.place_of(file)?, moved.to())));
        let below = self.folders.iter().map(|folder| (folder.join(file), folder.as_path()));
        moved.chain(below).find_map(|(path, folder)| {
            open_below(folder, &path).map(|opened| opened.and_then(OpenSourceFile::text))
        })
    }
}

/// The path of a file that is named by its URL, like modules of JavaScript. Other names are returned
/// unchanged.
fn local_path(file: &str) -> Cow<'_, str> {
    let Some(path) = file.strip_prefix("file://").filter(|path| path.starts_with('/')) else {
        return Cow::Borrowed(file);
    };
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|_| *first == b'%').filter(|digits| !digits.starts_with('+'));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a file that debug info must name, from its own path.
fn read_named<'a>(path: &Path, named: impl FnOnce() -> Option<&'a str>) -> Result<SourceFile, SourceError> {
    if !path.is_absolute() {
        return Err(SourceError::NoFolder);
    }
    // These errors do not depend on whether debug info names the file.
    let opened = open(path, MAX_SOURCE_BYTES)?;
    let named = local_path(named().ok_or(SourceError::NotAllowed)?);
    let named = Path::new(&*named);
    if named == path { opened.text() } else { open_absolute(named)?.text() }
}

/// Opens a file that debug info names by its whole path.
fn open_absolute(path: &Path) -> Result<OpenSourceFile, SourceError> {
    if path.is_absolute() { open(path, MAX_SOURCE_BYTES) } else { Err(SourceError::NoFolder) }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    /// A separate folder for a test, which is removed at its end.
    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("nyquist-sources-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("src")).unwrap();
            fs::write(path.join("src/a.c"), "int a;\n").unwrap();
            fs::write(path.join("secret"), "secret\n").unwrap();
            Self(path)
        }

        fn path(&self, name: &str) -> String {
            self.0.join(name).to_str().unwrap().to_owned()
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn read(sources: &SourceFiles, file: &str, is_named: bool) -> Result<String, String> {
        let read = sources.read(file, || is_named.then(|| file.to_owned()));
        read.map(|file| file.text).map_err(|error| error.to_string())
    }

    const NOT_ALLOWED: &str = "no debug info on this machine names it; --source-dir DIR allows its folder";

    #[test]
    fn a_file_is_read_where_debug_info_names_it() {
        let folder = TestFolder::new("named");
        let file = folder.path("src/a.c");
        assert_eq!(read(&SourceFiles::default(), &file, true).unwrap(), "int a;\n");
        assert_eq!(read(&SourceFiles::default(), &file, false).unwrap_err(), NOT_ALLOWED);
        assert_eq!(read(&SourceFiles::default(), "/etc/passwd", false).unwrap_err(), NOT_ALLOWED);
    }

    #[test]
    fn a_file_may_be_named_by_its_url() {
        let folder = TestFolder::new("url");
        fs::write(folder.path("src/a b%.js"), "let a;\n").unwrap();
        let sources = SourceFiles::default().allowing(folder.path("src"));
        let url = |name: &str| format!("file://{}", folder.path(name));
        assert_eq!(read(&SourceFiles::default(), &url("src/a%20b%.js"), true).unwrap(), "let a;\n");
        assert_eq!(read(&sources, &url("src/a.c"), false).unwrap(), "int a;\n");
        assert_eq!(read(&sources, &url("src/%2e%2E/secret"), false).unwrap_err(), NOT_ALLOWED);
        assert_eq!(read(&sources, &url("src/a%0ab"), true).unwrap_err(), "its path has control characters");
        assert!(read(&sources, "file://host/src/a.c", true).is_err());
    }

    #[test]
    fn a_folder_allows_what_really_is_in_it() {
        let folder = TestFolder::new("allowed");
        symlink(folder.path("secret"), folder.path("src/link.c")).unwrap();
        symlink("a.c", folder.path("src/own.c")).unwrap();
        let sources = SourceFiles::default().allowing(folder.path("src"));
        for allowed in ["src/a.c", "src/own.c", "src/../src/a.c"] {
            assert_eq!(read(&sources, &folder.path(allowed), false).unwrap(), "int a;\n", "{allowed}");
        }
        for outside in ["secret", "src/../secret", "src/link.c"] {
            assert_eq!(read(&sources, &folder.path(outside), false).unwrap_err(), NOT_ALLOWED, "{outside}");
        }
    }

    #[test]
    fn a_path_without_folder_is_sought_where_allowed() {
        let folder = TestFolder::new("relative");
        let sources = SourceFiles::default().allowing("/proc/nonexistent").allowing(folder.path("src"));
        assert_eq!(read(&sources, "a.c", false).unwrap(), "int a;\n");
        assert_eq!(read(&sources, "./a.c", true).unwrap(), "int a;\n");
        for unknown in ["../secret", "b.c", ""] {
            assert_eq!(
                read(&sources, unknown, true).unwrap_err(),
                "its folder is not known; --source-map FROM=TO tells where it is",
                "{unknown}"
            );
        }
    }

    #[test]
    fn a_moved_file_is_read_only_where_it_is_now() {
        let folder = TestFolder::new("moved");
        let sources = SourceFiles::default().moving("/build/app", folder.path("src"));
        assert_eq!(read(&sources, "/build/app/a.c", false).unwrap(), "int a;\n");
        for outside in ["/build/app/../secret", "/build/app/b.c", "/build/application/a.c"] {
            assert!(read(&sources, outside, false).is_err(), "{outside}");
        }
        assert_eq!(read(&sources, &folder.path("secret"), false).unwrap_err(), NOT_ALLOWED);
    }

    #[test]
    fn what_is_no_source_file_has_a_reason() {
        let folder = TestFolder::new("unfit");
        fs::write(folder.path("binary"), "a\0b").unwrap();
        fs::write(folder.path("line\nbreak"), "int a;\n").unwrap();
        File::create(folder.path("long")).unwrap().set_len(MAX_SOURCE_BYTES + 1).unwrap();
        let sources = SourceFiles::default().allowing(folder.0.as_path()).allowing("/dev");
        let check = |file: &str, reason: &str| {
            assert_eq!(read(&sources, file, true).unwrap_err(), reason, "{file}");
        };
        check(&folder.path("binary"), "it is not text");
        check(&folder.path("long"), "it is too long");
        check(&folder.path("src"), "it is not a regular file");
        check(&folder.path("line\nbreak"), "its path has control characters");
        check("/dev/zero", "it is not a regular file");
        assert!(read(&sources, &folder.path("gone"), true).unwrap_err().contains("No such file"));
        assert_eq!(read(&SourceFiles::default(), "/proc/self/environ", true).as_deref(), Ok(""));
    }

    #[test]
    fn a_fifo_is_not_waited_for() {
        let folder = TestFolder::new("fifo");
        let fifo = folder.path("src/fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let sources = SourceFiles::default().allowing(folder.path("src"));
        assert_eq!(read(&sources, &fifo, true).unwrap_err(), "it is not a regular file");
    }
}
