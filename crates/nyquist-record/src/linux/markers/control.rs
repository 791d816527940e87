//! Switching on the markers of a process that was not started for it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use nyquist_convert::event::Pid;
use nyquist_tracing::protocol::control;

use crate::linux::sys::control_page::ControlPage;

/// A program's switch.
#[derive(Debug)]
pub(super) struct Control {
    page: ControlPage,
    owner: (u32, u32),
}

impl Control {
    /// Looks for the switch among the descriptors of a process.
    pub(super) fn find(pid: Pid) -> io::Result<Option<Self>> {
        let wanted = format!("/memfd:{}", control::NAME);
        for entry in fs::read_dir(format!("/proc/{}/fd", pid.0))?.flatten() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            if !target.as_os_str().as_bytes().starts_with(wanted.as_bytes()) {
                continue;
            }
            let file = OpenOptions::new().read(true).write(true).open(entry.path())?;
            if has_magic(&file) {
                let process = fs::metadata(format!("/proc/{}", pid.0))?;
                let owner = (process.uid(), process.gid());
                return Ok(Some(Self { page: ControlPage::map(&file)?, owner }));
            }
        }
        Ok(None)
    }

    /// The user and the group of the program.
    pub(super) fn owner(&self) -> (u32, u32) {
        self.owner
    }

    pub(super) fn switch_on(&self, folder: &Path) {
        self.page.set(Some(folder.as_os_str().as_bytes()));
    }

    pub(super) fn switch_off(&self) {
        self.page.set(None);
    }
}

fn has_magic(file: &File) -> bool {
    let mut magic = [0; control::MAGIC.len()];
    file.read_exact_at(&mut magic, 0).is_ok() && magic == control::MAGIC
}
