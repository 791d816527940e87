//! What an output promises on every system.

use super::{Output, OutputError};
use crate::output::files::NULL_DEVICE;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder that is removed at the end of a test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nyquist-output-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Saves a text at a path.
pub(crate) fn save(path: &Path, text: &str) {
    Output::open(path).unwrap().save(|out| out.write_all(text.as_bytes())).unwrap();
}

#[test]
fn an_earlier_recording_is_kept() {
    let folder = Folder::new("old");
    let path = folder.0.join("p.json.gz");
    save(&path, "one");
    save(&path, "two");
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    assert_eq!(fs::read_to_string(folder.0.join("p.json.gz.old")).unwrap(), "one");
    assert_eq!(folder.names(), ["p.json.gz", "p.json.gz.old"]);
}

#[test]
fn a_failed_save_leaves_the_earlier_recording() {
    let folder = Folder::new("failed");
    let path = folder.0.join("p");
    save(&path, "one");
    let output = Output::open(&path).unwrap();
    let result = output.save(|out| {
        out.write_all(b"half")?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    assert_eq!(folder.names(), ["p"]);
}

#[test]
fn an_output_that_is_never_saved_leaves_nothing() {
    let folder = Folder::new("unused");
    drop(Output::open(&folder.0.join("p")).unwrap());
    assert!(folder.names().is_empty());
}

#[test]
fn an_old_name_that_is_taken_loses_nothing() {
    let folder = Folder::new("taken");
    let path = folder.0.join("p");
    fs::create_dir(folder.0.join("p.old")).unwrap();
    for text in ["one", "two", "three"] {
        save(&path, text);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "three");
    assert_eq!(fs::read_to_string(folder.0.join("p.old.2")).unwrap(), "one");
    assert_eq!(fs::read_to_string(folder.0.join("p.old.3")).unwrap(), "two");
}

#[test]
fn places_that_cannot_be_written_fail_at_once() {
    let folder = Folder::new("places");
    let refused = |path: &Path| Output::open(path).unwrap_err();
    assert!(matches!(refused(&folder.0), OutputError::IsFolder));
    assert!(matches!(refused(&folder.0.join("none").join("p")), OutputError::NoFolder(_)));
    assert!(matches!(refused(&folder.0.join("none/")), OutputError::NoFolder(_)));
}

#[test]
fn a_device_is_written_to() {
    save(Path::new(NULL_DEVICE), "gone");
}

#[test]
fn a_folder_of_its_own_is_gone_with_its_file() {
    let folder = Folder::new("apart");
    let open = || Output::open_in_private_folder(&folder.0, Path::new("p")).unwrap();
    drop(open());
    assert!(folder.names().is_empty());
    let output = open();
    let path = output.name().to_owned();
    output.save(|out| out.write_all(b"one")).unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), "one");
}
