//! Applies the changes below a root folder, which is `/` except in tests.

use super::plan::Change;
use crate::failure::Failure;
use crate::output::{self, OutputError};
use std::fs;
use std::path::{Path, PathBuf};

/// The file of permanent settings, below the root folder.
pub(crate) const LASTING: &str = "etc/sysctl.d/60-nyquist.conf";

/// Sets each setting until reboot.
pub(crate) fn set(root: &Path, changes: &[Change]) -> Result<(), Failure> {
    changes.iter().try_for_each(|change| {
        let path = root.join("proc/sys/kernel").join(change.name);
        fs::write(&path, change.to.to_string()).map_err(|error| cannot_write(&path, &error))
    })
}

/// Writes the file that the system reads at boot. It appears completely or not at all.
pub(crate) fn move_to_end(root: &Path, text: &str) -> Result<PathBuf, Failure> {
    let path = root.join(LASTING);
    let folders = output::create_folders(path.parent().unwrap_or(root));
    match folders.and_then(|()| output::replace(&path, text.as_bytes())) {
        Ok(()) => Ok(path),
        Err(OutputError::Io(error)) => Err(cannot_write(&path, &error)),
        Err(denied) => Err(denied.failure_at(&path)),
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::cannot_write(path, error);
    match error.kind() {
        std::io::ErrorKind::ReadOnlyFilesystem => {
            failure.hint("in a container this is set on the host, or use --capabilities")
        }
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("nyquist-setup-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("proc/sys/kernel")).unwrap();
        root
    }

    const CHANGE: Change = Change { name: "kptr_restrict", from: 1, to: 0, meaning: "" };

    #[test]
    fn settings_are_written() {
        let root = root("settings");
        set(&root, &[CHANGE]).unwrap();
        assert_eq!(fs::read_to_string(root.join("proc/sys/kernel/kptr_restrict")).unwrap(), "0");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_lasting_file_replaces_an_earlier_one() {
        let root = root("lasting");
        for text in ["one", "two"] {
            let path = move_to_end(&root, text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let failure = set(Path::new("/no/such/root"), &[CHANGE]).unwrap_err();
        assert!(failure.message.contains("/no/such/root/proc/sys/kernel/kptr_restrict"), "{failure:?}");
    }
}
