//! Signing program files by the system's `codesign`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use super::pure::copies::private_folder;
use super::pure::signing::{self, Codesign, CodesignOutput};

/// The system's program for signing.
const CODESIGN: &str = "/usr/bin/codesign";

/// Signs a file without a certificate ("ad hoc"), in place of an earlier signature, so that it may look at other
/// programs. It must not be a file that a process runs, which the system would end. The error is a text for the
/// user.
pub fn sign_debugger(file: &Path) -> Result<(), String> {
    signing::sign_debugger(&mut Signer::new()?, file)
}

/// Signs a copy of a program so that others may look at it. Returns the names of the entitlements that it has
/// lost.
pub(super) fn sign_copy(copy: &Path) -> Result<Vec<String>, String> {
    signing::sign_copy(&mut Signer::new()?, copy)
}

/// The program, with a folder for files. Those are removed when this is dropped.
struct Signer {
    folder: PathBuf,
}

impl Signer {
    fn new() -> Result<Self, String> {
        let folder = private_folder().map_err(|error| format!("no temporary folder can be made: {error}"))?;
        Ok(Self { folder })
    }
}

impl Drop for Signer {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Codesign for Signer {
    fn run(&mut self, arguments: &[OsString]) -> io::Result<CodesignOutput> {
        let output = Command::new(CODESIGN).args(arguments).stdin(Stdio::null()).output()?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(CodesignOutput { has_succeeded: output.status.success(), output: output.stdout, errors })
    }

    fn file(&mut self, text: &str) -> Result<OsString, String> {
        let path = self.folder.join("entitlements.plist");
        let written = fs::write(&path, text);
        written.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        Ok(path.into())
    }
}
