//! Folders of spools with all that may be in them.

use super::*;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A folder that is removed at the end of a test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nyquist-spool-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn kinds(folder: &SpoolFolder) -> Vec<String> {
    let kind = |entry: Entry| match entry {
        Entry::Live => "living".to_owned(),
        Entry::Abandoned(spool) => format!("abandoned {}", spool.segments().map_or(99, |all| all.len())),
        Entry::Refused(_, why) => why,
    };
    folder.entries().unwrap().into_iter().map(kind).collect()
}

#[test]
fn a_spool_is_abandoned_when_its_lock_is_gone() {
    let temporary = Temporary::new("lock");
    let folder = SpoolFolder::create(&temporary.0.join("state/spool"), own_user()).unwrap();
    let mut own = folder.make_spool().unwrap();
    own.make_segment().unwrap().write_all(b"1234").unwrap();
    own.make_segment().unwrap();
    assert_eq!((kinds(&folder), folder.size().unwrap()), (vec!["living".to_owned()], 4));
    drop(own);
    assert_eq!(kinds(&folder), ["abandoned 2"]);
    let [Entry::Abandoned(spool)] = &folder.entries().unwrap()[..] else { panic!("there is one") };
    // Another process that looks at it does not take it.
    assert_eq!((kinds(&folder), spool.size().unwrap()), (vec!["living".to_owned()], 4));
}

#[test]
fn what_is_removed_leaves_nothing() {
    let temporary = Temporary::new("remove");
    let folder = SpoolFolder::create(&temporary.0, own_user()).unwrap();
    let mut own = folder.make_spool().unwrap();
    own.make_segment().unwrap();
    own.make_segment().unwrap();
    own.remove_before(1).unwrap();
    assert_eq!(own.next_segment(), 2);
    own.remove().unwrap();
    assert_eq!(fs::read_dir(&temporary.0).unwrap().count(), 0);
}

#[test]
fn links_and_other_things_are_refused_and_kept() {
    let temporary = Temporary::new("links");
    let (spools, victim) = (temporary.0.join("spools"), temporary.0.join("victim"));
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("00000000.spool"), "precious").unwrap();
    fs::write(victim.join(LOCK), "").unwrap();
    let folder = SpoolFolder::create(&spools, own_user()).unwrap();
    symlink(&victim, spools.join("a-link")).unwrap();
    fs::write(spools.join("b-file"), "").unwrap();
    fs::create_dir(spools.join("c-empty")).unwrap();
    fs::create_dir(spools.join("d-lock")).unwrap();
    symlink(victim.join(LOCK), spools.join("d-lock/lock")).unwrap();
    fs::create_dir(spools.join("e-segment")).unwrap();
    fs::write(spools.join("e-segment/lock"), "").unwrap();
    symlink(victim.join("00000000.spool"), spools.join("e-segment/00000000.spool")).unwrap();
    let not_folder = "it is a file or a link, and not a folder";
    let link = "it has a link in place of a file or folder";
    let no_lock = "it has no lock, so it is no recording";
    assert_eq!(kinds(&folder), [not_folder, not_folder, no_lock, link, "abandoned 99"]);
    for entry in folder.entries().unwrap() {
        if let Entry::Abandoned(spool) = entry {
            spool.remove().unwrap();
        }
    }
    assert_eq!(fs::read(victim.join("00000000.spool")).unwrap(), b"precious");
    let missing = folder.entry("none".to_owned());
    assert!(matches!(&missing, Entry::Refused(_, why) if why == "there is none of that name"), "{missing:?}");
    for name in ["../victim", "", ".", "x/y"] {
        assert!(matches!(folder.entry(name.to_owned()), Entry::Refused(..)), "{name}");
    }
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let temporary = Temporary::new("shared");
    fs::set_permissions(&temporary.0, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(SpoolFolder::create(&temporary.0, own_user()).unwrap_err().to_string().contains("may write"));
    let other = SpoolFolder::open(&temporary.0, own_user() + 1).unwrap_err();
    assert!(other.to_string().contains("another user"));
}
