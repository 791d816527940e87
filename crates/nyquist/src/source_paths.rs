//! The names of a profile's source files: the Firefox Profiler's names in its files, and paths on this disk
//! everywhere else.

use crate::folders::UserFolders;
use nyquist_profile::Profile;
use nyquist_symbols::{disk_source_path, special_source_path};
use std::path::PathBuf;

/// Finds source files on this disk.
#[derive(Clone, Debug)]
pub(crate) struct DiskPaths {
    cargo_home: Option<PathBuf>,
}

impl DiskPaths {
    /// The paths of the user who runs this.
    pub(crate) fn of_user() -> Self {
        Self { cargo_home: UserFolders::of_user().cargo_home() }
    }

    /// The path of a file by any of its names; `None` if the name is already the path.
    pub(crate) fn path(&self, file: &str) -> Option<String> {
        let path = disk_source_path(&special_source_path(file), self.cargo_home.as_deref()).into_owned();
        (path != file).then_some(path)
    }

    /// Sets the names of a profile's source files to their paths.
    pub(crate) fn name(&self, profile: &mut Profile) {
        profile.rename_sources(|file| self.path(file));
    }
}

/// Sets the names of a profile's source files to the Firefox Profiler's names.
pub(crate) fn name_specially(profile: &mut Profile) {
    profile.rename_sources(|file| {
        let special = special_source_path(file);
        (special != file).then(|| special.into_owned())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_profile::{Meta, ProfileBuilder, Source};

    #[test]
    fn files_have_either_name() {
        let mut builder = ProfileBuilder::new(Meta::default());
        for file in [
            "cargo:index.crates.io-1949cf8c6b5b557f:a-1.0.0:src/lib.rs",
            "/build/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/b-1.0.0/src/lib.rs",
            "/src/a.c",
        ] {
            let filename = builder.intern_string(file);
            builder.intern_source(Source { filename });
        }
        let mut profile = builder.finish();
        let names = |profile: &Profile| {
            let name = |source: &Source| profile.string(source.filename).to_owned();
            profile.sources().iter().map(name).collect::<Vec<_>>()
        };
        DiskPaths { cargo_home: Some("/cargo".into()) }.name(&mut profile);
        let folder = "/cargo/registry/src/index.crates.io-1949cf8c6b5b557f";
        let on_disk = [format!("{folder}/a-1.0.0/src/lib.rs"), format!("{folder}/b-1.0.0/src/lib.rs")];
        assert_eq!(names(&profile), [&on_disk[0], &on_disk[1], "/src/a.c"]);
        name_specially(&mut profile);
        let special = |name| format!("cargo:index.crates.io-1949cf8c6b5b557f:{name}-1.0.0:src/lib.rs");
        assert_eq!(names(&profile), [&*special("a"), &special("b"), "/src/a.c"]);
    }
}
