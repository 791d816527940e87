//! The identity of a module: build ids, debug ids, and a substitute for files without either.

use crate::FileSource;
use std::fmt::Write as _;
use std::{fmt, io};

/// A GNU build id, as in the note: usually the 20 bytes of a SHA-1, never empty.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(Vec<u8>);

impl BuildId {
    /// Converts the note's descriptor; `None` if it is empty or longer than any build id (64 bytes).
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (1..=64).contains(&bytes.len()).then(|| Self(bytes.to_vec()))
    }

    /// Parses lower- or upper-case hexadecimal digits.
    pub fn from_hex(digits: &str) -> Option<Self> {
        if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
            return None;
        }
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).ok();
        Self::new(&(0..digits.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>()?)
    }

    /// The id's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// The id for finding debug info: 16 bytes as a GUID and an age. Breakpad and the Firefox
/// Profiler call its text form a breakpad id.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DebugId {
    guid: [u8; 16],
    age: u32,
}

impl DebugId {
    /// Converts the GUID's bytes, in the order in which its digits are printed, and the age.
    pub fn new(guid: [u8; 16], age: u32) -> Self {
        Self { guid, age }
    }

    /// The debug id of an ELF file: the first 16 bytes of the build id (padded with zeros), and age 0. The
    /// first three fields are little-endian numbers if the file is little-endian. This is how Breakpad
    /// derives it (`src/common/linux/file_id.cc`, `FileID::ConvertIdentifierToUUIDString`).
    pub fn from_build_id(id: &BuildId, little_endian: bool) -> Self {
        Self::from_identifier(id.as_bytes(), little_endian)
    }

    /// The debug id of a GUID in a Windows file, whose first three fields are little-endian numbers.
    pub fn from_guid(guid: [u8; 16], age: u32) -> Self {
        Self { age, ..Self::from_identifier(&guid, true) }
    }

    fn from_identifier(bytes: &[u8], little_endian: bool) -> Self {
        let mut guid = [0; 16];
        let used = bytes.len().min(16);
        guid[..used].copy_from_slice(&bytes[..used]);
        if little_endian {
            guid[0..4].reverse();
            guid[4..6].reverse();
            guid[6..8].reverse();
        }
        Self { guid, age: 0 }
    }

    /// Parses the 33 or more hexadecimal digits of a breakpad id.
    pub fn from_breakpad(text: &str) -> Option<Self> {
        if !text.is_ascii() || !(33..=40).contains(&text.len()) {
            return None;
        }
        let id = BuildId::from_hex(&text[..32])?;
        let age = u32::from_str_radix(&text[32..], 16).ok()?;
        Some(Self { guid: id.as_bytes().try_into().ok()?, age })
    }

    /// The breakpad id: 32 upper-case digits of the GUID, then the age in lower-case digits.
    pub fn breakpad(&self) -> String {
        let mut text = String::with_capacity(33);
        for byte in self.guid {
            let _ = write!(text, "{byte:02X}");
        }
        let _ = write!(text, "{:x}", self.age);
        text
    }
}

impl fmt::Debug for DebugId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DebugId({})", self.breakpad())
    }
}

/// The id that the symbol servers of Windows use for a PE image: its link time and its size in memory. In
/// reproducible images, a hash replaces the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeCodeId {
    /// `TimeDateStamp`.
    pub timestamp: u32,
    /// `SizeOfImage`, in bytes.
    pub size_of_image: u32,
}

impl PeCodeId {
    /// Parses eight hexadecimal digits of the time and one to eight of the size.
    pub fn from_hex(digits: &str) -> Option<Self> {
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let (timestamp, size) = digits.split_at_checked(8).filter(|_| is_hex && digits.len() <= 16)?;
        let number = |digits| u32::from_str_radix(digits, 16).ok();
        Some(Self { timestamp: number(timestamp)?, size_of_image: number(size)? })
    }
}

impl fmt::Display for PeCodeId {
    /// Eight upper-case digits of the time, then the size in lower-case digits, the same as in Breakpad
    /// and the Firefox Profiler.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08X}{:x}", self.timestamp, self.size_of_image)
    }
}

/// The ids of a PE image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeId {
    /// The id for finding the image.
    pub code: PeCodeId,
    /// The id for finding its PDB.
    pub debug: DebugId,
}

/// The id of a Mach-O file from Apple's linkers (`LC_UUID`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MachUuid(pub [u8; 16]);

impl MachUuid {
    /// Parses 32 hexadecimal digits, also in the five groups that Apple's tools print.
    pub fn from_text(text: &str) -> Option<Self> {
        let is_grouped =
            text.len() == 36 && [8, 13, 18, 23].iter().all(|&at| text.as_bytes().get(at) == Some(&b'-'));
        let id = if is_grouped { BuildId::from_hex(&text.replace('-', "")) } else { BuildId::from_hex(text) };
        Some(Self(id?.as_bytes().try_into().ok()?))
    }

    /// The id in five groups, as in the output of Apple's tools and in names of folders.
    pub fn grouped(&self) -> String {
        let digits = self.to_string();
        let group = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default();
        [group(0..8), group(8..12), group(12..16), group(16..20), group(20..32)].join("-")
    }

    /// The id of the debug info in a profile: the same bytes, and age 0.
    pub fn debug_id(&self) -> DebugId {
        DebugId::new(self.0, 0)
    }
}

impl fmt::Display for MachUuid {
    /// Writes 32 upper-case digits, the form of a file's code id in a profile.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Debug for MachUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MachUuid({self})")
    }
}

/// The substitute identity of a file without an id: its inode and its properties when it was mapped. If any
/// member differs, it is another file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileIdentity {
    /// The device number from `stat`.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last modification, in nanoseconds since the epoch.
    pub modified_ns: i64,
    /// A hash of the executable code ([`crate::Elf::text_hash`]), from which the debug id is made, too.
    pub text_hash: [u8; 16],
}

impl FileIdentity {
    /// The identity of an open file with this hash of its code.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn of(file: &FileSource, text_hash: [u8; 16]) -> io::Result<Self> {
        let facts = file.facts()?;
        let (seconds, nanoseconds) = facts.modified;
        Ok(Self {
            device: facts.id.device,
            inode: facts.id.number,
            size: facts.len,
            modified_ns: seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds.into()),
            text_hash,
        })
    }
}

/// The identity of a module, in this order of preference.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModuleId {
    /// The build id in the file's notes.
    BuildId(BuildId),
    /// The ids in the headers of a PE image.
    Pe(PeId),
    /// The id of a Mach-O file.
    MachUuid(MachUuid),
    /// The file has no id.
    File(FileIdentity),
}

impl ModuleId {
    /// The identity for the two ids of a profile. It belongs to an ELF file if the debug id is derived
    /// from the build id. It belongs to a Mach-O file if both are the same UUID, or the code id is a UUID in
    /// groups. It belongs to a PE image if the code id has the form of one. `None` otherwise.
    pub fn from_profile(code_id: &str, debug_id: Option<DebugId>) -> Option<Self> {
        let build_id = BuildId::from_hex(code_id);
        let fits = |id: &BuildId| debug_id.is_none_or(|debug| debug == DebugId::from_build_id(id, true));
        if let Some(id) = build_id.filter(fits) {
            return Some(Self::BuildId(id));
        }
        let uuid = MachUuid::from_text(code_id);
        if let Some(uuid) = uuid.filter(|uuid| debug_id.is_none_or(|debug| debug == uuid.debug_id())) {
            return Some(Self::MachUuid(uuid));
        }
        Some(Self::Pe(PeId { code: PeCodeId::from_hex(code_id)?, debug: debug_id? }))
    }

    /// The id of the module's debug info in a profile. Without a build id it is made from the hash
    /// of the code, so that it is the same on every machine with the same file.
    pub fn debug_id(&self) -> DebugId {
        match self {
            Self::BuildId(id) => DebugId::from_build_id(id, true),
            Self::Pe(id) => id.debug,
            Self::MachUuid(uuid) => uuid.debug_id(),
            Self::File(file) => DebugId::from_identifier(&file.text_hash, true),
        }
    }

    /// The id for finding the binary itself; files without a build id have none.
    pub fn code_id(&self) -> Option<String> {
        match self {
            Self::BuildId(id) => Some(id.to_string()),
            Self::Pe(id) => Some(id.code.to_string()),
            Self::MachUuid(uuid) => Some(uuid.to_string()),
            Self::File(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_id_of_a_build_id_is_breakpads() {
        let id = BuildId::from_hex("be4e976c325246ee9d6b7847a670b2a9ffb59e05").unwrap();
        assert_eq!(DebugId::from_build_id(&id, true).breakpad(), "6C974EBE5232EE469D6B7847A670B2A90");
        assert_eq!(id.to_string(), "be4e976c325246ee9d6b7847a670b2a9ffb59e05");
    }

    #[test]
    fn the_ids_of_a_mach_o_file_are_its_uuid() {
        let uuid: Vec<u8> = (0xf0..=0xff).collect();
        let id = ModuleId::MachUuid(MachUuid(uuid.try_into().unwrap()));
        assert_eq!(id.debug_id().breakpad(), "F0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF0");
        assert_eq!(id.code_id().unwrap(), "F0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF");
    }

    #[test]
    fn a_uuid_is_read_with_and_without_groups() {
        let grouped = "F0F1F2F3-F4F5-F6F7-F8F9-FAFBFCFDFEFF";
        let uuid = MachUuid::from_text(grouped).unwrap();
        assert_eq!(MachUuid::from_text("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"), Some(uuid));
        assert_eq!(uuid.grouped(), grouped);
        for wrong in ["", "F0F1", "F0F1F2F3-F4F5-F6F7-F8F9FAFB-FCFDFEFF", "é"] {
            assert_eq!(MachUuid::from_text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_short_build_id_is_padded() {
        let id = BuildId::from_hex("0102030405060708").unwrap();
        assert_eq!(DebugId::from_build_id(&id, true).breakpad(), "040302010605080700000000000000000");
    }

    #[test]
    fn a_breakpad_id_reads_back() {
        let text = "6C974EBE5232EE469D6B7847A670B2A91a";
        assert_eq!(DebugId::from_breakpad(text).unwrap().breakpad(), text);
        for wrong in
            ["", "6C97", "6C974EBE5232EE469D6B7847A670B2A9", "é", "zC974EBE5232EE469D6B7847A670B2A90"]
        {
            assert_eq!(DebugId::from_breakpad(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_code_id_is_breakpads() {
        let id = PeCodeId { timestamp: 0x5ca, size_of_image: 0x1a_2000 };
        assert_eq!(id.to_string(), "000005CA1a2000");
        assert_eq!(PeCodeId::from_hex("000005CA1a2000"), Some(id));
        for wrong in ["", "000005CA", "000005CA+1a", "0000005CA123456789", "xyz005CA1", "000005Cé1"] {
            assert_eq!(PeCodeId::from_hex(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_two_ids_of_a_profile_tell_elf_from_pe() {
        let debug = DebugId::from_breakpad("6C974EBE5232EE469D6B7847A670B2A90").unwrap();
        let elf = "be4e976c325246ee9d6b7847a670b2a9ffb59e05";
        assert_eq!(ModuleId::from_profile(elf, Some(debug)).unwrap().code_id().unwrap(), elf);
        let id = ModuleId::from_profile("5CA12C431a2000", Some(debug)).unwrap();
        assert!(matches!(id, ModuleId::Pe(PeId { debug: of_pe, .. }) if of_pe == debug), "{id:?}");
        assert_eq!(id.code_id().unwrap(), "5CA12C431a2000");
        assert_eq!(ModuleId::from_profile("no id", Some(debug)), None);
        let uuid = MachUuid::from_text("6C974EBE5232EE469D6B7847A670B2A9").unwrap();
        let found = ModuleId::from_profile("6C974EBE5232EE469D6B7847A670B2A9", Some(debug));
        assert_eq!(found, Some(ModuleId::MachUuid(uuid)));
        let found = ModuleId::from_profile("6C974EBE-5232-EE46-9D6B-7847A670B2A9", None);
        assert_eq!(found, Some(ModuleId::MachUuid(uuid)));
        assert_eq!(
            ModuleId::from_profile("be4e976c325246ee9d6b7847a670b2a9", Some(debug)).map(|id| id.code_id()),
            Some(Some("be4e976c325246ee9d6b7847a670b2a9".to_owned()))
        );
        assert_eq!(ModuleId::from_profile("00000000325246ee9d6b7847a670b2a9ffb59e05", Some(debug)), None);
    }

    #[test]
    fn hex_that_is_no_build_id() {
        for wrong in ["", "0", "0g", "ééé", &"00".repeat(65)] {
            assert_eq!(BuildId::from_hex(wrong), None, "{wrong}");
        }
    }
}
