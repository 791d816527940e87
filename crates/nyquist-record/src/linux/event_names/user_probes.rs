//! The probes that programs were built with (USDT): notes of SystemTap's `sys/sdt.h`.

use nyquist_object::{Cursor, Elf, FileSource, Svma};

/// The section of the notes.
const NOTES: &str = ".note.stapsdt";

/// A larger section of notes is left out: real ones have some kilobytes.
const MAX_NOTES: u64 = 16 << 20;

/// A probe that a program was built with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserProbe {
    /// Its provider.
    pub provider: String,
    /// Its name.
    pub name: String,
    /// The address of its instruction.
    pub address: Svma,
    /// The address of its counter, if it has one.
    pub counter: Option<Svma>,
}

/// The probes that a file was built with, in file order.
pub(super) fn user_probes_of(elf: &Elf<FileSource>) -> Vec<UserProbe> {
    let section = elf.section(NOTES).filter(|notes| notes.size <= MAX_NOTES && elf.is_64_bit());
    let notes = section.and_then(|notes| elf.data(notes).ok()).unwrap_or_default();
    let base = elf.section(".stapsdt.base").map(|section| section.address.0);
    user_probes_in_notes(&notes, base, elf.is_little_endian())
}

/// Reads the notes of `sys/sdt.h`: name `stapsdt`, type 3; three addresses, then provider, name and
/// arguments, each zero-terminated. Addresses are relative to `.stapsdt.base`: the note contains its address
/// at the time of writing, and `base` is its address in the file. Skips damaged notes.
pub fn user_probes_in_notes(notes: &[u8], base: Option<u64>, little_endian: bool) -> Vec<UserProbe> {
    const TYPE: u32 = 3;
    let mut cursor = Cursor::new(notes, 0, little_endian);
    let mut probes = Vec::new();
    while let (Some(name_len), Some(len), Some(kind)) = (cursor.u32(), cursor.u32(), cursor.u32()) {
        let padded = |len: u32| u64::from(len).next_multiple_of(4);
        let name_at = cursor.position();
        let Some(()) = cursor.skip(padded(name_len)) else { break };
        let at = cursor.position();
        let Some(()) = cursor.skip(padded(len)) else { break };
        let is_probe =
            kind == TYPE && notes.get(name_at..).is_some_and(|name| name.starts_with(b"stapsdt\0"));
        let note = notes.get(at..at + len as usize).filter(|_| is_probe);
        probes.extend(note.and_then(|note| read_note(note, base, little_endian)));
    }
    probes
}

fn read_note(note: &[u8], base: Option<u64>, little_endian: bool) -> Option<UserProbe> {
    let mut cursor = Cursor::new(note, 0, little_endian);
    let (address, written_base, counter) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    let moved = |address: u64| match base {
        Some(base) if written_base != 0 => address.wrapping_add(base).wrapping_sub(written_base),
        _ => address,
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (provider, name) = (text(cursor.string()?), text(cursor.string()?));
    let counter = (counter != 0).then(|| Svma(moved(counter)));
    Some(UserProbe { provider, name, address: Svma(moved(address)), counter })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(provider: &str, name: &str, [address, base, counter]: [u64; 3]) -> Vec<u8> {
        let mut desc: Vec<u8> = [address, base, counter].iter().flat_map(|word| word.to_le_bytes()).collect();
        desc.extend(format!("{provider}\0{name}\0-4@%edi\0").bytes());
        let mut bytes: Vec<u8> =
            [8, desc.len() as u32, 3].iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(b"stapsdt\0");
        bytes.extend(&desc);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn notes_of_probes_are_read() {
        let notes = [note("app", "begin", [0x1000, 0x2000, 0]), note("app", "end", [0x1010, 0x2000, 0x3000])];
        let probes = user_probes_in_notes(&notes.concat(), Some(0x2100), true);
        let found: Vec<_> =
            probes.iter().map(|it| (&*it.provider, &*it.name, it.address, it.counter)).collect();
        assert_eq!(
            found,
            [("app", "begin", Svma(0x1100), None), ("app", "end", Svma(0x1110), Some(Svma(0x3100)))]
        );
        let whole = notes.concat();
        for len in 0..whole.len() {
            assert!(user_probes_in_notes(&whole[..len], None, true).len() < 2, "{len}");
        }
    }
}
