//! Places for output on Linux, tried with real folders, links, pipes and descriptors.

use crate::output::tests::{Folder, save};
use crate::output::{Destination, Output, OutputError};
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::Path;

#[test]
fn a_recording_is_private() {
    let folder = Folder::new("mode");
    let path = folder.0.join("p.json.gz");
    save(&path, "one");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_link_stays_a_link() {
    let folder = Folder::new("link");
    fs::create_dir(folder.0.join("real")).unwrap();
    let link = folder.0.join("link");
    symlink("real/file", &link).unwrap();
    save(&link, "one");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(folder.0.join("real/file")).unwrap(), "one");
}

#[test]
fn a_device_stays_a_device() {
    save(Path::new("/dev/null"), "gone");
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[test]
fn places_of_linux_that_cannot_be_written_fail() {
    let open = |path: &str| Output::open(Path::new(path)).unwrap_err();
    for missing in ["/proc/nonexistent/p", "/proc/nonexistent/", "/proc/nonexistent/inner/p"] {
        assert!(matches!(open(missing), OutputError::NoFolder(_)), "{missing}");
    }
    for folder in ["/tmp", "/tmp/", "/", "/tmp/.", "/tmp/..", ".."] {
        assert!(matches!(open(folder), OutputError::IsFolder), "{folder}");
    }
    let folder = Folder::new("loop");
    let link = folder.0.join("loop");
    symlink("loop", &link).unwrap();
    assert!(Output::open(&link).is_err());
}

#[test]
fn an_old_name_that_is_a_link_is_not_followed() {
    let folder = Folder::new("old-link");
    let (path, other) = (folder.0.join("p"), folder.0.join("other"));
    save(&other, "other");
    symlink(&other, folder.0.join("p.old")).unwrap();
    save(&path, "one");
    save(&path, "two");
    assert_eq!(fs::read_to_string(&other).unwrap(), "other");
    assert_eq!(fs::read_to_string(folder.0.join("p.old")).unwrap(), "one");
}

#[test]
fn a_save_goes_to_the_folder_that_was_opened() {
    let folder = Folder::new("moved");
    let (before, after) = (folder.0.join("before"), folder.0.join("after"));
    fs::create_dir(&before).unwrap();
    let output = Output::open(&before.join("p")).unwrap();
    fs::rename(&before, &after).unwrap();
    symlink("/proc/nonexistent", &before).unwrap();
    output.save(|out| out.write_all(b"one")).unwrap();
    assert_eq!(fs::read_to_string(after.join("p")).unwrap(), "one");
}

#[test]
fn anothers_file_in_its_place_is_not_saved() {
    let folder = Folder::new("replaced");
    let path = folder.0.join("p");
    let output = Output::open(&path).unwrap();
    let temporary = folder.0.join(&folder.names()[0]);
    fs::remove_file(&temporary).unwrap();
    fs::write(&temporary, "another's").unwrap();
    assert!(output.save(|out| out.write_all(b"one")).is_err());
    assert!(!path.exists() && temporary.exists());
}

#[test]
fn a_temporary_file_nobody_holds_is_removed() {
    let folder = Folder::new("leftover");
    let path = folder.0.join("p");
    let (dead, other) = (folder.0.join(".p.1.tmp"), folder.0.join(".q.1.tmp"));
    fs::write(&dead, "half").unwrap();
    fs::write(&other, "half").unwrap();
    let live = Output::open(&path).unwrap();
    assert!(!dead.exists() && other.exists());
    // A second output with the same name has another temporary name.
    save(&path, "two");
    live.save(|out| out.write_all(b"one")).unwrap();
    assert_eq!(folder.names(), [".q.1.tmp", "p", "p.old"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
}

#[test]
fn a_folder_of_its_own_is_private() {
    let folder = Folder::new("private");
    let output = Output::open_in_private_folder(&folder.0, Path::new("p")).unwrap();
    let path = output.name().to_owned();
    let own = path.parent().unwrap();
    assert_eq!(own.parent(), Some(folder.0.canonicalize().unwrap().as_path()));
    assert_eq!(fs::metadata(own).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_descriptor_is_written_to() {
    let folder = Folder::new("descriptor");
    let path = folder.0.join("p");
    fs::write(&path, "before ").unwrap();
    let file = File::options().append(true).open(&path).unwrap();
    for folder in ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"] {
        save(&Path::new(folder).join(file.as_raw_fd().to_string()), "more ");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "before more more more ");
    let read = File::open(&path).unwrap();
    let refused = Output::open(&Path::new("/dev/fd").join(read.as_raw_fd().to_string()));
    assert!(matches!(refused.unwrap_err(), OutputError::NotWritable));
}

#[test]
fn what_is_written_in_any_order_is_a_file() {
    assert!(Destination::find_seekable(Path::new("/dev/null")).is_ok());
    let folder = Folder::new("seekable");
    let fifo = folder.0.join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert!(matches!(Destination::find_seekable(&fifo).unwrap_err(), OutputError::Stream));
}
