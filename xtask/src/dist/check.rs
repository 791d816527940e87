//! Checks of what was packed: it is unpacked and used, as a user does.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::archive::unpack;
use super::build::moved_folders;
use super::contents::PROGRAMS;
use super::files::empty_folder;
use super::linkage::expect_static;
use super::printed::printed;
use super::run::Runner;
use super::target::{System, Target};
use crate::macos::program::expect_startable;

/// A program that takes a little CPU time, for a recording.
const BUSY: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";

/// Unpacks an archive into a folder, and checks its programs. Returns a sentence about what was checked.
pub(super) fn archive(
    archive: &Path,
    target: &Target,
    version: &str,
    work: &Path,
    records: bool,
) -> Result<String> {
    let folder = work.join("unpacked");
    empty_folder(&folder)?;
    unpack(archive, &folder)?;
    let top = folder.join(target.folder(version));
    programs(&top, target, version, work, records)
}

/// Checks the programs in a folder. Returns a sentence about what was checked.
pub(super) fn programs(
    folder: &Path,
    target: &Target,
    version: &str,
    work: &Path,
    records: bool,
) -> Result<String> {
    let mut checked = Vec::new();
    for name in PROGRAMS {
        let path = folder.join(target.program(name));
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for (place, _) in moved_folders() {
            ensure!(!contains(&bytes, place.as_bytes()), "{name} names the folder {place} of this machine");
        }
        match target.system {
            System::Linux => expect_static(&bytes).with_context(|| format!("{name} is not static"))?,
            System::MacOs => {
                let signature = expect_startable(&bytes);
                let signature = signature.with_context(|| format!("macOS would not start {name}"))?;
                checked.push(format!("{name} has an identity, unwind information and {signature}"));
            }
            System::Windows => {}
        }
    }
    match target.system {
        System::Linux => checked.push("static".to_owned()),
        System::MacOs => checked.push("needs only libraries of the system".to_owned()),
        System::Windows => {}
    }
    let nyquist = folder.join(target.program("nyquist"));
    match Runner::of(target, work) {
        Err(reason) => checked.push(format!("not run, because {reason}")),
        Ok(runner) => {
            let printed = printed(runner.command(&nyquist)?.arg("--version"))?;
            let requested = format!("nyquist {version}");
            ensure!(printed.trim() == requested, "--version printed {:?}, not {requested:?}", printed.trim());
            checked.push(format!("says its version ({runner:?})"));
            if records && matches!(runner, Runner::Native) {
                record(&nyquist, work)?;
                checked.push("records and reports".to_owned());
            }
        }
    }
    Ok(checked.join(", "))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Records a program and reports on it.
fn record(nyquist: &Path, work: &Path) -> Result<()> {
    let profile = work.join("recorded.json.gz");
    let mut record = Command::new(nyquist);
    record.args(["record", "-s", "-o"]).arg(&profile).args(["--", "sh", "-c", BUSY]);
    printed(&mut record)?;
    let report = printed(Command::new(nyquist).arg("report").arg(&profile))?;
    ensure!(report.contains("of CPU time"), "the report names no CPU time: {report}");
    ensure!(report.contains("sh"), "the report does not name the shell: {report}");
    Ok(())
}

/// Checks the checksums by `sha256sum`.
pub(super) fn checksums(folder: &Path) -> Result<()> {
    printed(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(folder))
        .map(drop)
}
