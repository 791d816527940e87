//! Source files that have moved to another folder since they were compiled.

use std::path::{Component, Path, PathBuf};

/// A folder in debug info, and the folder with the files on this machine.
#[derive(Clone, Debug)]
pub(super) struct MovedFolder {
    from: Vec<String>,
    to: PathBuf,
}

impl MovedFolder {
    pub(super) fn new(from: &str, to: PathBuf) -> Self {
        Self { from: parts(from).map(str::to_owned).collect(), to }
    }

    /// The folder in which the files are.
    pub(super) fn to(&self) -> &Path {
        &self.to
    }

    /// The current path of a file. `None` if it is not below the folder.
    pub(super) fn place_of(&self, file: &str) -> Option<PathBuf> {
        let mut rest = parts(file);
        self.from
            .iter()
            .all(|part| rest.next() == Some(part.as_str()))
            .then(|| self.to.join(rest.collect::<PathBuf>()))
    }
}

/// The parts of a path, without `.`. For example, `./malloc/./malloc/malloc.c`, as in distributions, is below
/// `malloc`.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    Path::new(path).components().filter_map(|part| match part {
        Component::CurDir => None,
        part => part.as_os_str().to_str(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_parts_of_a_path_are_replaced() {
        let check = |from: &str, file: &str, expected: Option<&str>| {
            let place = MovedFolder::new(from, "/usr/src/glibc".into()).place_of(file);
            assert_eq!(place.as_deref(), expected.map(Path::new), "{from}: {file}");
        };
        check("/build/glibc", "/build/glibc/malloc/malloc.c", Some("/usr/src/glibc/malloc/malloc.c"));
        check("/build/glibc/", "/build//glibc/./a.c", Some("/usr/src/glibc/a.c"));
        check("/build/glibc", "/build/glibc-2/a.c", None);
        check("/build/glibc", "build/glibc/a.c", None);
        check("build", "/build/a.c", None);
        check("./malloc", "./malloc/./malloc/malloc.c", Some("/usr/src/glibc/malloc/malloc.c"));
        check(".", "./malloc/malloc.c", Some("/usr/src/glibc/malloc/malloc.c"));
        check("/", "/a.c", Some("/usr/src/glibc/a.c"));
    }
}
