//! The folder of a process in `/proc`, held open: reads through it refer to that process, even if the pid is
//! reused.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use super::check;

/// The folder of a process. Reading fails once the process is gone.
#[derive(Debug)]
pub(crate) struct ProcessFolder {
    folder: OwnedFd,
}

impl ProcessFolder {
    /// Opens the folder of the process that has the pid now.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let folder = OpenOptions::new().read(true).custom_flags(flags).open(format!("/proc/{pid}"))?;
        Ok(Self { folder: folder.into() })
    }

    /// Reads a file of the folder to its end into `text`, which is cleared first.
    pub(crate) fn read(&self, name: &CStr, text: &mut Vec<u8>) -> io::Result<()> {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: the name ends in a zero, and the call only reads it.
        let file = check(unsafe { libc::openat(self.folder.as_raw_fd(), name.as_ptr(), flags) })?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
        let mut file = unsafe { File::from_raw_fd(file) };
        text.clear();
        file.read_to_end(text).map(drop)
    }

    /// The size of a file of the folder, as `stat` reports it.
    pub(crate) fn size(&self, name: &CStr) -> io::Result<u64> {
        let mut found = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the name ends in a zero, and the call writes to `found`, which has the right size.
        check(unsafe { libc::fstatat(self.folder.as_raw_fd(), name.as_ptr(), found.as_mut_ptr(), 0) })?;
        // SAFETY: the call has succeeded, so it has filled in all of it.
        Ok(u64::try_from(unsafe { found.assume_init() }.st_size).unwrap_or_default())
    }

    /// The ids of its living threads.
    pub(crate) fn threads(&self) -> io::Result<Vec<u32>> {
        let mut tids = Vec::new();
        for entry in self.path("task").read_dir()? {
            tids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        Ok(tids)
    }

    /// A path to a file of the folder, valid for as long as this is held.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{name}", self.folder.as_raw_fd()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_that_is_gone_is_nobody_else() {
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let folder = ProcessFolder::open(child.id()).unwrap();
        let mut text = Vec::new();
        folder.read(c"stat", &mut text).unwrap();
        assert!(text.starts_with(format!("{} (", child.id()).as_bytes()));
        assert!(folder.path("task").read_dir().unwrap().count() == 1);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(folder.read(c"stat", &mut text).is_err() && folder.size(c"fd").is_err());
        assert!(ProcessFolder::open(u32::MAX >> 1).is_err());
    }
}
