//! The files of a process's folder in `/proc` whose readers wait for the process: while it calls exec, and a file
//! system of its own does not answer the closing of a file, the kernel holds the lock that guards them
//! (`exec_update_lock`).

use crate::event::{Pid, Tid};
use std::fs::{self, File};
use std::io::{self, Read as _};

/// Such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessFile {
    /// The system call in which a thread waits, and its registers (`syscall`).
    SystemCall,
    /// The kernel's function in which a thread sleeps (`wchan`).
    WaitChannel,
    /// The process's state and sums (`stat`).
    Stat,
    /// The bytes that it has read and written (`io`).
    Io,
    /// The beginning of its environment (`environ`).
    Environment,
    /// The first mappings (`maps`), which show whether they may be read.
    FirstMappings,
    /// Its memory (`mem`), which is opened and not read: that shows whether it may be traced.
    Memory,
    /// The path of its program (the link `exe`).
    Program,
    /// Its pid namespace (the link `ns/pid`).
    PidNamespace,
    /// Its time namespace (the link `ns/time`).
    TimeNamespace,
    /// The time namespace of its next children (the link `ns/time_for_children`).
    ChildTimeNamespace,
    /// The path of an open file (a link in `fd`).
    Descriptor(u32),
}

/// The most bytes that are read of such a file: those of a path, and more than the others have.
const MAX_FILE_BYTES: u64 = 4096;

/// The same of an environment.
const MAX_ENVIRONMENT_BYTES: u64 = 128 << 10;

impl ProcessFile {
    /// All but the links of descriptors. The index of one is its number in a request.
    #[cfg(target_os = "linux")]
    pub(super) const FIXED: [Self; 11] = [
        Self::SystemCall,
        Self::WaitChannel,
        Self::Stat,
        Self::Io,
        Self::Environment,
        Self::FirstMappings,
        Self::Memory,
        Self::Program,
        Self::PidNamespace,
        Self::TimeNamespace,
        Self::ChildTimeNamespace,
    ];

    /// Its path in the folder of a process or of a thread.
    fn path(self) -> String {
        let fixed = match self {
            Self::SystemCall => "syscall",
            Self::WaitChannel => "wchan",
            Self::Stat => "stat",
            Self::Io => "io",
            Self::Environment => "environ",
            Self::FirstMappings => "maps",
            Self::Memory => "mem",
            Self::Program => "exe",
            Self::PidNamespace => "ns/pid",
            Self::TimeNamespace => "ns/time",
            Self::ChildTimeNamespace => "ns/time_for_children",
            Self::Descriptor(number) => return format!("fd/{number}"),
        };
        fixed.to_owned()
    }

    /// How much of it is read; `None` for a link.
    fn most(self) -> Option<u64> {
        match self {
            Self::Program
            | Self::PidNamespace
            | Self::TimeNamespace
            | Self::ChildTimeNamespace
            | Self::Descriptor(_) => None,
            Self::Memory => Some(0),
            Self::Environment => Some(MAX_ENVIRONMENT_BYTES),
            _ => Some(MAX_FILE_BYTES),
        }
    }

    /// Reads the file of a process, or of one of its threads: its first bytes, or where the link leads. The calling
    /// thread waits for the process.
    ///
    /// # Errors
    /// If the process is gone, or may not be read.
    pub fn read_here(self, pid: Pid, tid: Option<Tid>) -> io::Result<Vec<u8>> {
        let thread = tid.map_or_else(String::new, |tid| format!("task/{}/", tid.0));
        let path = format!("/proc/{}/{thread}{}", pid.0, self.path());
        let Some(most) = self.most() else {
            return Ok(fs::read_link(path)?.into_os_string().into_encoded_bytes());
        };
        let mut bytes = Vec::new();
        File::open(path)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn files_and_links_of_this_process_are_read() {
        let own = Pid(std::process::id());
        let program = std::env::current_exe().unwrap().into_os_string().into_encoded_bytes();
        assert_eq!(ProcessFile::Program.read_here(own, None).unwrap(), program);
        let file = File::open("/proc/self/exe").unwrap();
        let descriptor = ProcessFile::Descriptor(file.as_raw_fd() as u32);
        assert_eq!(descriptor.read_here(own, None).unwrap(), program);
        let stat = ProcessFile::Stat.read_here(own, Some(Tid(own.0))).unwrap();
        assert!(stat.starts_with(format!("{} (", own.0).as_bytes()));
        for file in ProcessFile::FIXED {
            let bytes = file.read_here(own, None).unwrap_or_else(|error| panic!("{file:?}: {error}"));
            assert!(bytes.len() as u64 <= file.most().unwrap_or(MAX_FILE_BYTES), "{file:?}");
            assert!(file.read_here(Pid(u32::MAX >> 1), None).is_err(), "{file:?} of nobody");
        }
    }
}
