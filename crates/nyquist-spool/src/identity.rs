//! The identity of a module as fields.

use crate::fields::{Fields, put_bytes, put_number};
use nyquist_object::{BuildId, DebugId, FileIdentity, MachUuid, ModuleId, PeCodeId, PeId};

const NONE: u8 = 0;
const BUILD_ID: u8 = 1;
const PE: u8 = 2;
const MACH_UUID: u8 = 3;
const FILE: u8 = 4;

pub(crate) fn put_identity(out: &mut Vec<u8>, id: Option<&ModuleId>) {
    match id {
        None => out.push(NONE),
        Some(ModuleId::BuildId(id)) => {
            out.push(BUILD_ID);
            put_bytes(out, id.as_bytes());
        }
        Some(ModuleId::Pe(PeId { code, debug })) => {
            out.push(PE);
            put_number(out, code.timestamp.into());
            put_number(out, code.size_of_image.into());
            put_bytes(out, debug.breakpad().as_bytes());
        }
        Some(ModuleId::MachUuid(MachUuid(id))) => {
            out.push(MACH_UUID);
            put_bytes(out, id);
        }
        Some(ModuleId::File(FileIdentity { device, inode, size, modified_ns, text_hash })) => {
            out.push(FILE);
            for number in [*device, *inode, *size, *modified_ns as u64] {
                put_number(out, number);
            }
            put_bytes(out, text_hash);
        }
    }
}

/// The identity; the inner `None` if the module has none.
#[expect(clippy::option_option, reason = "the outer one is missing if the record is damaged")]
pub(crate) fn identity(fields: &mut Fields<'_>) -> Option<Option<ModuleId>> {
    Some(Some(match fields.byte()? {
        NONE => return Some(None),
        BUILD_ID => ModuleId::BuildId(BuildId::new(fields.bytes()?)?),
        PE => {
            let code = PeCodeId { timestamp: fields.small()?, size_of_image: fields.small()? };
            ModuleId::Pe(PeId { code, debug: DebugId::from_breakpad(fields.text()?)? })
        }
        MACH_UUID => ModuleId::MachUuid(MachUuid(fields.bytes()?.try_into().ok()?)),
        FILE => ModuleId::File(FileIdentity {
            device: fields.number()?,
            inode: fields.number()?,
            size: fields.number()?,
            modified_ns: fields.number()? as i64,
            text_hash: fields.bytes()?.try_into().ok()?,
        }),
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_read_as_they_were_written() {
        let code = PeCodeId { timestamp: 7, size_of_image: u32::MAX };
        let ids = [
            None,
            BuildId::new(&[1, 2, 3]).map(ModuleId::BuildId),
            Some(ModuleId::Pe(PeId { code, debug: DebugId::new([9; 16], 2) })),
            Some(ModuleId::MachUuid(MachUuid([5; 16]))),
            Some(ModuleId::File(FileIdentity {
                device: 1,
                inode: u64::MAX,
                size: 3,
                modified_ns: -4,
                text_hash: [6; 16],
            })),
        ];
        for id in ids {
            let mut out = Vec::new();
            put_identity(&mut out, id.as_ref());
            assert_eq!(identity(&mut Fields::new(&out)), Some(id));
        }
        assert_eq!(identity(&mut Fields::new(&[9])), None);
    }
}
