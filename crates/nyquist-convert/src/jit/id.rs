//! The ids of libs whose code was generated at run time. The front end uses them to ask for source and
//! instructions.
//!
//! They look like debug ids. That of a jitdump is made of its header, so that the file can be recognised. A
//! perf map has no header, so its id is made of its device and inode.

use nyquist_object::DebugId;
use nyquist_perf::JitDumpHeader;
use nyquist_system::FileId;
use std::sync::{Arc, OnceLock};

/// The id of a jitdump's lib, which is known as soon as the file's header has been read.
pub(crate) type DumpId = Arc<OnceLock<DebugId>>;

/// The first bytes of the ids.
const DUMP: [u8; 4] = *b"JITO";
const MAP: [u8; 4] = *b"JITM";

/// The id of a jitdump's code, whose addresses are offsets in the file.
pub(crate) fn of_dump(header: &JitDumpHeader) -> DebugId {
    id(DUMP, u64::from(header.pid), header.time ^ u64::from(header.machine).rotate_right(16))
}

/// The id of the code that a perf map names.
pub(crate) fn of_map(file: FileId) -> DebugId {
    id(MAP, file.device, file.number)
}

/// Returns true for the id of a jitdump, false for that of a perf map, and `None` for other ids.
pub(crate) fn is_dump(breakpad_id: &str) -> Option<bool> {
    let begins_as = |kind| {
        let all = id(kind, 0, 0).breakpad();
        breakpad_id.len() == all.len() && breakpad_id.get(..8) == all.get(..8)
    };
    if begins_as(DUMP) { Some(true) } else { begins_as(MAP).then_some(false) }
}

fn id(kind: [u8; 4], first: u64, second: u64) -> DebugId {
    let mut guid = [0; 16];
    guid[..4].copy_from_slice(&kind);
    guid[4..8].copy_from_slice(&((first ^ (first >> 32)) as u32).to_be_bytes());
    guid[8..].copy_from_slice(&second.to_be_bytes());
    DebugId::new(guid, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_codes_ids_are_debug_ids_known_again() {
        let header = JitDumpHeader { size: 40, pid: 77, machine: 62, time: 5, has_clock_times: true };
        let dump = of_dump(&header).breakpad();
        assert_eq!((dump.len(), is_dump(&dump)), (33, Some(true)));
        for other in [JitDumpHeader { pid: 78, ..header }, JitDumpHeader { time: 6, ..header }] {
            assert_ne!(of_dump(&other).breakpad(), dump);
        }
        let map = of_map(FileId { device: 7, number: 8 }).breakpad();
        assert_eq!((map.len(), is_dump(&map)), (33, Some(false)));
        for other in ["", "6C974EBE5232EE469D6B7847A670B2A90", "4A49544F", "é"] {
            assert_eq!(is_dump(other), None, "{other}");
        }
    }
}
