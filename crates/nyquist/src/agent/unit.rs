//! The control group of a unit of systemd.

use crate::failure::Failure;
use nyquist_record::linux;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders that are searched at most, and their depth.
const MAX_FOLDERS: usize = 20_000;
const MAX_DEPTH: usize = 6;

/// The group of a unit, as `/proc/PID/cgroup` shows it.
pub(super) fn group(unit: &str) -> Result<PathBuf, Failure> {
    let name = if unit.contains('.') { unit.to_owned() } else { format!("{unit}.service") };
    let root = linux::mount_of_events();
    let root = root.map_err(|error| Failure::because("there are no control groups", &error))?;
    find(&root, &name).ok_or_else(|| {
        Failure::new(format!("there is no control group of a unit {name}"))
            .hint("it exists while the unit runs: systemctl status UNIT")
    })
}

/// The path of a folder below the root, nearest first.
fn find(root: &Path, name: &str) -> Option<PathBuf> {
    let mut folders = std::collections::VecDeque::from([(root.to_owned(), 0)]);
    let mut searched = 0;
    while let Some((folder, depth)) = folders.pop_front() {
        searched += 1;
        if searched > MAX_FOLDERS {
            return None;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name() == name {
                return entry.path().strip_prefix(root).ok().map(|path| Path::new("/").join(path));
            }
            if depth < MAX_DEPTH {
                folders.push_back((entry.path(), depth + 1));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_found_by_its_name() {
        let root = std::env::temp_dir().join(format!("nyquist-unit-{}", std::process::id()));
        fs::create_dir_all(root.join("system.slice/a-b.slice/shop.service")).unwrap();
        let found = find(&root, "shop.service");
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, Some(PathBuf::from("/system.slice/a-b.slice/shop.service")));
        assert_eq!(find(&root, "shop.service"), None);
    }
}
