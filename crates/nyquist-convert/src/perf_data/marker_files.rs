//! samply's marker files of a recording that is read later. A program maps its file so that the recording
//! contains the path.

use std::io::Read as _;

use crate::decode::marker_file::Period;
use crate::decode::marker_text::{decode, owner_in_path};
use crate::event::{Event, Mapping, Tid, Timestamp};
use crate::jit::aux_files::AuxFiles;

/// The most bytes that are read of one file.
const MAX_BYTES: u64 = 1 << 30;

/// The markers in the file of a mapping, if it is a marker file and can be read.
pub(crate) fn markers(mapping: &Mapping, aux: &AuxFiles) -> Vec<Event> {
    let mut events = Vec::new();
    let (Some((named_pid, tid)), Some(pid)) = (owner_in_path(&mapping.path), mapping.pid) else {
        return events;
    };
    let Ok((found, _)) = aux.open(&mapping.path) else { return events };
    let mut content = Vec::new();
    if found.file.take(MAX_BYTES).read_to_end(&mut content).is_err() {
        return events;
    }
    // In its own pid namespace, a program has another number than the recorder sees.
    let tid = if tid.0 == named_pid.0 { Tid(pid.0) } else { tid };
    let always = Period { since: Timestamp(0), until: Timestamp(u64::MAX), ahead_ns: 0 };
    decode(&content, (pid, tid), always, &mut events);
    events
}
