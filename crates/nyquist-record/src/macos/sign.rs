//! Signing program files with an entitlement, by the system's `codesign`.

use std::hash::{BuildHasher as _, RandomState};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// The system's program for signing.
const CODESIGN: &str = "/usr/bin/codesign";
/// The number of attempts to find an unused name for a folder.
const ATTEMPTS: u32 = 16;

/// A right that is signed into a program's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entitlement {
    /// The program may look at others (`com.apple.security.cs.debugger`).
    Debugger,
    /// Others may look at the program (`com.apple.security.get-task-allow`).
    GetTaskAllow,
}

impl Entitlement {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debugger => "com.apple.security.cs.debugger",
            Self::GetTaskAllow => "com.apple.security.get-task-allow",
        }
    }

    /// The file that `codesign` reads.
    fn file(self) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict><key>{}</key><true/></dict></plist>\n",
            self.name()
        )
    }
}

/// Signs a file without a certificate ("ad hoc"), with an entitlement, in place of an earlier signature. It must
/// not be a file that a process runs, which the system would end. The error is a text for the user.
pub fn sign_file(file: &Path, entitlement: Entitlement) -> Result<(), String> {
    let folder = private_folder().map_err(|error| format!("no temporary folder can be made: {error}"))?;
    let result = sign_by(file, &folder.join("entitlements.plist"), entitlement);
    let _ = fs::remove_dir_all(folder);
    result
}

fn sign_by(file: &Path, entitlements: &Path, entitlement: Entitlement) -> Result<(), String> {
    fs::write(entitlements, entitlement.file())
        .map_err(|error| format!("{} cannot be written: {error}", entitlements.display()))?;
    let mut command = Command::new(CODESIGN);
    command.args(["-s", "-", "-f", "--entitlements"]).arg(entitlements).arg(file).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("{CODESIGN} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("codesign says: {}", said.lines().next_back().unwrap_or("nothing")))
}

/// A new folder for temporary files that no other user can enter. Its path has no links.
pub(super) fn private_folder() -> io::Result<PathBuf> {
    let parent = fs::canonicalize(env::temp_dir())?;
    for attempt in 0..ATTEMPTS {
        let folder = parent.join(format!("nyquist-{:016x}", RandomState::new().hash_one(attempt)));
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
