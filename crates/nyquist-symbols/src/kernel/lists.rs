//! The files in which the running kernel lists its symbols and modules.

use super::files::KernelFiles;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The running kernel, as its files describe it.
#[derive(Debug)]
pub(super) struct RunningKernel {
    /// The folder that contains `proc` and `sys`.
    pub(super) root: PathBuf,
    /// The files that show more to privileged readers, if they were opened before.
    pub(super) files: Option<Arc<KernelFiles>>,
}

impl RunningKernel {
    pub(super) fn kallsyms(&self) -> io::Result<Box<dyn Read + '_>> {
        match &self.files {
            Some(files) => Ok(Box::new(files.kallsyms())),
            None => Ok(Box::new(File::open(self.path("proc/kallsyms"))?)),
        }
    }

    pub(super) fn modules(&self) -> Vec<u8> {
        match &self.files {
            Some(files) => files.modules(),
            None => fs::read(self.path("proc/modules")).unwrap_or_default(),
        }
    }

    pub(super) fn notes(&self) -> Vec<u8> {
        fs::read(self.path("sys/kernel/notes")).unwrap_or_default()
    }

    pub(super) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }
}
