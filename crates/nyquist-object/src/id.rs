//! What makes a module the same module: build ids, debug ids, and a stand-in for files that carry neither.

use std::fmt;
use std::fmt::Write as _;

/// A GNU build id, as it stands in the note: usually the 20 bytes of a SHA-1, never empty.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(Vec<u8>);

impl BuildId {
    /// Takes the note's descriptor; `None` where it is empty or longer than any build id (64 bytes).
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (1..=64).contains(&bytes.len()).then(|| Self(bytes.to_vec()))
    }

    /// Reads lower- or upper-case hexadecimal digits.
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

/// The id that finds debug info: 16 bytes as a GUID and an age. Its text form is what Breakpad and the Firefox
/// Profiler call a breakpad id.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DebugId {
    guid: [u8; 16],
    age: u32,
}

impl DebugId {
    /// Takes the GUID's bytes in the order in which its digits are printed, and the age.
    pub fn new(guid: [u8; 16], age: u32) -> Self {
        Self { guid, age }
    }

    /// The debug id of an ELF file: the first 16 bytes of the build id (padded with zeros), its first three
    /// fields read as little-endian numbers when the file is, and age 0. This is how Breakpad derives it
    /// (`src/common/linux/file_id.cc`, `FileID::ConvertIdentifierToUUIDString`).
    pub fn from_build_id(id: &BuildId, little_endian: bool) -> Self {
        Self::from_identifier(id.as_bytes(), little_endian)
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

    /// Reads the 33 and more hexadecimal digits of a breakpad id.
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

/// The id that Apple's linkers give a Mach-O file (`LC_UUID`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MachUuid(pub [u8; 16]);

impl fmt::Display for MachUuid {
    /// Writes 32 upper-case digits, as the profile names a file's code.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Debug for MachUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MachUuid({self})")
    }
}

/// What stands for an identity where a file carries no id: where it was and what it looked like when it was
/// mapped. A file of which any part differs is another file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileIdentity {
    /// The device's number, as `stat` gives it.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last modification, in nanoseconds since the epoch.
    pub modified_ns: i64,
    /// A hash of the executable code ([`crate::Elf::text_hash`]), which is also what a debug id is made from.
    pub text_hash: [u8; 16],
}

/// What identifies a module, in this order of preference.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModuleId {
    /// The build id in the file's notes.
    BuildId(BuildId),
    /// The id of a Mach-O file.
    MachUuid(MachUuid),
    /// The file carries no id.
    File(FileIdentity),
}

impl ModuleId {
    /// The id by which the profile names the module's debug info. Without a build id it is made from the hash
    /// of the code, so that it is the same on every machine that has the same file.
    pub fn debug_id(&self) -> DebugId {
        match self {
            Self::BuildId(id) => DebugId::from_build_id(id, true),
            Self::MachUuid(uuid) => DebugId::new(uuid.0, 0),
            Self::File(file) => DebugId::from_identifier(&file.text_hash, true),
        }
    }

    /// The id by which the binary itself is found; files without a build id have none.
    pub fn code_id(&self) -> Option<String> {
        match self {
            Self::BuildId(id) => Some(id.to_string()),
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
    fn hex_that_is_no_build_id() {
        for wrong in ["", "0", "0g", "ééé", &"00".repeat(65)] {
            assert_eq!(BuildId::from_hex(wrong), None, "{wrong}");
        }
    }
}
