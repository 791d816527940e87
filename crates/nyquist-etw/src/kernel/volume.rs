//! Volumes and their drive letters: KernelTraceControl's `SysConfigEx` (PerfView's `VolumeMappingTraceData`).

use crate::{Event, fields::EventFields};

const VOLUME_MAPPING: u8 = 35;

/// The drive letter of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The beginning of paths as the kernel has them: `\Device\HarddiskVolume3\`.
    pub device: String,
    /// What users see in its place: `C:\`.
    pub drive: String,
}

pub(super) fn decode(event: &Event<'_>) -> Option<Volume> {
    if event.opcode != VOLUME_MAPPING {
        return None;
    }
    let mut fields = EventFields::of(event, "SysConfigEx VolumeMapping");
    Some(Volume { device: fields.utf16(), drive: fields.utf16() })
}
