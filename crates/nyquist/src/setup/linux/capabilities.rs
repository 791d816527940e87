//! Gives this program's file the privileges to record (capabilities(7), "File capabilities").

use crate::failure::Failure;
use rustix::fs::{XattrFlags, fsetxattr};
use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The capabilities of the file: to sample everything, to attach to and read any process, and to see the
/// kernel's addresses. The kernel's documentation names them for perf (`admin-guide/perf-security.rst`).
pub(crate) const CAPABILITIES: &str = "cap_perfmon,cap_sys_ptrace,cap_syslog+ep";

/// Their numbers (`linux/capability.h`).
const NUMBERS: [u32; 3] = [38, 19, 34];

/// The file of this program.
pub(crate) fn own_program() -> Result<PathBuf, Failure> {
    env::current_exe().map_err(|error| Failure::because("cannot find the file of this program", &error))
}

/// The text to show before the change.
pub(crate) fn describe(program: &Path) -> String {
    let program = program.display();
    format!(
        "  {program}: {CAPABILITIES}\n      every user who may run this file can record every process, and so see into its memory, and see the kernel's addresses;\n      \
         to allow it to a group alone: chgrp GROUP {program} && chmod 750 {program}\n      \
         set them again after each update of the file\n"
    )
}

/// Gives them to the file that runs, whatever is at its path now.
pub(crate) fn give(program: &Path) -> Result<(), Failure> {
    let given = File::open("/proc/self/exe")
        .and_then(|file| Ok(fsetxattr(file, c"security.capability", &attribute(), XattrFlags::empty())?));
    given.map_err(|error| {
        let program = program.display();
        Failure::io(format_args!("the kernel refuses capabilities of {program}"), &error)
            .hint("the file system must keep extended attributes, and root must have CAP_SETFCAP")
    })
}

/// The value of the attribute: `vfs_cap_data`, revision 2 (`linux/capability.h`).
fn attribute() -> [u8; 20] {
    const REVISION_2: u32 = 0x0200_0000;
    const EFFECTIVE: u32 = 1;
    let permitted = NUMBERS.iter().fold(0_u64, |all, number| all | 1 << number);
    let argv = [REVISION_2 | EFFECTIVE, permitted as u32, 0, (permitted >> 32) as u32, 0];
    let mut bytes = [0; 20];
    for (place, word) in bytes.chunks_exact_mut(4).zip(argv) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attribute_is_what_setcap_writes() {
        // `setcap cap_perfmon,cap_sys_ptrace,cap_syslog+ep`, as getfattr shows it.
        let expected = [1, 0, 0, 2, 0, 0, 8, 0, 0, 0, 0, 0, 0x44, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(attribute(), expected);
    }
}
