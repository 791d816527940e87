//! Replacing a program's file by a signed copy. The file itself is not changed, because macOS ends a program whose
//! file is changed while it runs.

use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Copies the file of a program beside it, signs the copy, and puts it in the program's place. `sign` gives a text
/// for the user if it fails; then nothing is changed.
pub(crate) fn replace(program: &Path, sign: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), Failure> {
    let copy = temporary_path(program);
    let cannot = |what: &str, error: &io::Error| {
        Failure::io(format_args!("cannot {what} {}", copy.display()), error)
            .hint(format!("sudo {} setup", program.display()))
    };
    // It must be a new file: the copy follows no link that is there.
    let made = fs::File::create_new(&copy).map_err(|error| cannot("write", &error))?;
    let replace = || {
        copy_into(program, &made).map_err(|error| cannot("write", &error))?;
        sign(&copy).map_err(|why| Failure::new(format!("{} cannot be signed: {why}", program.display())))?;
        fs::rename(&copy, program).map_err(|error| cannot("rename", &error))
    };
    let replaced = replace();
    if replaced.is_err() {
        let _ = fs::remove_file(&copy);
    }
    replaced
}

/// Copies a file with its rights. The copy is the open file, whatever is at its path now.
fn copy_into(program: &Path, mut made: &fs::File) -> io::Result<()> {
    let mut program = fs::File::open(program)?;
    io::copy(&mut program, &mut made)?;
    made.set_permissions(program.metadata()?.permissions())
}

fn temporary_path(program: &Path) -> PathBuf {
    let mut name = program.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed when this is dropped.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    /// A new folder with a program in it.
    fn program(test: &str) -> (Folder, PathBuf) {
        let folder = std::env::temp_dir().join(format!("nyquist-replaced-{test}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let program = folder.join("app");
        fs::write(&program, "code").unwrap();
        (Folder(folder), program)
    }

    fn files(folder: &Folder) -> Vec<PathBuf> {
        fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn the_program_is_the_signed_copy() {
        let (folder, program) = program("signed");
        let running = fs::File::open(&program).unwrap();
        replace(&program, |copy| {
            assert_ne!(copy, program, "the file that runs is not changed");
            assert_eq!(fs::read(copy).unwrap(), b"code");
            fs::write(copy, "code with signature").map_err(|error| error.to_string())
        })
        .unwrap();
        assert_eq!(fs::read(&program).unwrap(), b"code with signature");
        assert_eq!((running.metadata().unwrap().len(), files(&folder)), (4, vec![program]));
    }

    #[test]
    fn an_unsigned_program_stays_as_it_is() {
        let (folder, program) = program("refused");
        let failure = replace(&program, |_| Err("codesign says: no".to_owned())).unwrap_err();
        assert!(failure.message.ends_with("app cannot be signed: codesign says: no"), "{}", failure.message);
        assert_eq!((fs::read(&program).unwrap(), files(&folder)), (b"code".to_vec(), vec![program]));
    }

    #[test]
    fn a_link_that_is_there_is_not_followed() {
        let (folder, program) = program("link");
        let other = folder.0.join("other");
        fs::write(&other, "other").unwrap();
        std::os::unix::fs::symlink(&other, temporary_path(&program)).unwrap();
        assert!(replace(&program, |_| Ok(())).is_err());
        assert_eq!(
            (fs::read(&other).unwrap(), fs::read(&program).unwrap()),
            (b"other".to_vec(), b"code".to_vec())
        );
    }
}
