//! Files that are mapped for their code: the class `Image` (MOF `Image_Load` of the versions 0 to 3), and what
//! KernelTraceControl adds about them (PerfView's `ImageIDTraceData` and `DbgIDRSDSTraceData`).

use super::change::ObjectChange;
use crate::{Event, Guid, PayloadError, fields::EventFields};

/// The one change whose number differs from other classes.
const LOAD: u8 = 10;

pub(super) const IMAGE_ID: u8 = 0;
pub(super) const DEBUG_ID: u8 = 36;

/// A file that is mapped for its code. Drivers and the kernel are images of process 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// What happened.
    pub change: ObjectChange,
    /// The first address.
    pub base: u64,
    /// The number of bytes.
    pub size: u64,
    /// The process, or 0 for the kernel's address space.
    pub pid: u32,
    /// The checksum in the image's headers.
    pub checksum: u32,
    /// The time in the image's headers, or 0. Then [`ImageId`] may state it.
    pub timestamp: u32,
    /// Its path as the kernel has it: `\Device\HarddiskVolume3\Windows\…` or `\SystemRoot\…`.
    pub path: String,
}

/// The identity of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageId {
    /// The image's first address.
    pub base: u64,
    /// The number of bytes.
    pub size: u64,
    /// Its process. Some writers put it in the event's header alone.
    pub pid: u32,
    /// The time in the image's headers.
    pub timestamp: u32,
    /// The name that the image's version information states.
    pub original_name: String,
}

/// The identity of an image's debug information, a PDB file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdbId {
    /// The image's first address.
    pub base: u64,
    /// Its process.
    pub pid: u32,
    /// The identifier.
    pub guid: Guid,
    /// How often the file was changed.
    pub age: u32,
    /// Its path or name.
    pub path: String,
}

pub(super) fn decode(event: &Event<'_>) -> Result<Option<Image>, PayloadError> {
    let change = match event.opcode {
        LOAD => Some(ObjectChange::Start),
        // The class has no event of that number.
        1 => None,
        opcode => ObjectChange::of(opcode),
    };
    change.map(|change| image(change, event)).transpose()
}

fn image(change: ObjectChange, event: &Event<'_>) -> Result<Image, PayloadError> {
    let mut fields = EventFields::of(event, "Image");
    let base = fields.pointer("base")?;
    let size = if event.version == 0 { fields.u32("size")?.into() } else { fields.pointer("size")? };
    let pid = if event.version == 0 { event.process.unwrap_or_default() } else { fields.u32("process")? };
    let (mut checksum, mut timestamp) = (0, 0);
    if event.version >= 2 {
        checksum = fields.u32("checksum")?;
        timestamp = fields.u32("timestamp")?;
        fields.skip(4, "signature")?;
        fields.skip_pointers(1, "default base")?;
        fields.skip(16, "reserved fields")?;
    }
    let path = fields.utf16();
    Ok(Image { change, base, size, pid, checksum, timestamp, path })
}

pub(super) fn image_id(event: &Event<'_>) -> Result<ImageId, PayloadError> {
    let mut fields = EventFields::of(event, "ImageID Info");
    let base = fields.pointer("base")?;
    let size = fields.pointer("size")?;
    let pid = process(event, fields.u32("process")?);
    let timestamp = fields.u32("timestamp")?;
    Ok(ImageId { base, size, pid, timestamp, original_name: fields.utf16() })
}

pub(super) fn pdb_id(event: &Event<'_>) -> Result<PdbId, PayloadError> {
    let mut fields = EventFields::of(event, "ImageID DbgID_RSDS");
    let base = fields.pointer("base")?;
    let pid = process(event, fields.u32("process")?);
    let guid = fields.guid("identifier")?;
    let age = fields.u32("age")?;
    Ok(PdbId { base, pid, guid, age, path: fields.text() })
}

/// The process of an identity: the one that its payload states, or else the one in the event's header.
fn process(event: &Event<'_>, declared: u32) -> u32 {
    if declared == 0 { event.process.unwrap_or_default() } else { declared }
}
