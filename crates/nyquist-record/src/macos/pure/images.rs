//! The images that a process has loaded, as its memory states them.
//!
//! The list is the dynamic linker's (`dyld_all_image_infos` and `dyld_image_info` of `mach-o/dyld_images.h`), and
//! the headers are those of Mach-O files (`mach-o/loader.h`). The process can write anything there, so
//! everything is bounded.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use nyquist_object::MachUuid;

/// The most images of a process.
const MAX_IMAGES: usize = 1 << 13;
/// The longest path in bytes (`PATH_MAX`).
const MAX_PATH_LEN: usize = 1024;
/// The most bytes of load commands that are read.
const MAX_COMMAND_BYTES: usize = 1 << 17;
/// Memory is readable or not by pages, of which the smallest have this size.
const PAGE: u64 = 4096;
/// The size of an image in the list.
const IMAGE: usize = 24;
/// The size of an address with a UUID (`dyld_uuid_info`).
const UUID: usize = 24;

/// Reads memory of the process: all of the bytes, or none.
pub(crate) type ReadMemory<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

/// An image in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedImage {
    /// Where its header is.
    pub(crate) start: u64,
    /// Where its path is; `None` for the dynamic linker itself.
    path_at: Option<u64>,
    /// A number that differs for another image that is loaded at the same address later: it is made of where its path
    /// is, of its file's time, and of its UUID.
    pub(crate) stamp: u64,
}

/// What the header of an image says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageHeader {
    /// The size of its code in memory (the segment `__TEXT`, which begins with the header).
    pub(crate) text_len: u64,
    /// Its identity.
    pub(crate) uuid: Option<MachUuid>,
}

/// The path of the dynamic linker.
const LINKER: &str = "/usr/lib/dyld";

/// The images in the list at an address. `None` if the list cannot be read now: the linker changes it, or has
/// not made it yet.
pub(crate) fn list(read: ReadMemory<'_>, at: u64) -> Option<Vec<ListedImage>> {
    let mut head = [0; 40];
    read_at(read, at, &mut head)?;
    let count = (u32_at(&head, 4)? as usize).min(MAX_IMAGES);
    let (array, linker) = (u64_at(&head, 8)?, u64_at(&head, 32)?);
    if array == 0 {
        return None;
    }
    let mut bytes = vec![0; count * IMAGE];
    read_at(read, array, &mut bytes)?;
    // The process runs meanwhile. If its linker has changed the list, what was read may be of both.
    let mut head_after = [0; 40];
    read_at(read, at, &mut head_after)?;
    if head_after != head {
        return None;
    }
    let ids = uuids(read, at).unwrap_or_default();
    let listed = bytes.as_chunks::<IMAGE>().0.iter().filter_map(|image| {
        let start = u64_at(image, 0)?;
        Some(ListedImage { start, path_at: Some(u64_at(image, 8)?), stamp: stamp(image, ids.get(&start)) })
    });
    let linker = ListedImage { start: linker, path_at: None, stamp: 0 };
    let mut images: Vec<_> = listed.chain([linker]).filter(|image| image.start != 0).collect();
    // The first of several at an address is the one with a path.
    images.sort_by_key(|image| image.start);
    images.dedup_by_key(|image| image.start);
    Some(images)
}

/// The UUIDs of the images that are not of the shared cache, by their addresses. The linker lists them apart
/// (`uuidArrayCount` and `uuidArray`).
fn uuids(read: ReadMemory<'_>, at: u64) -> Option<HashMap<u64, [u8; 16]>> {
    let mut head = [0; 16];
    read_at(read, at.checked_add(88)?, &mut head)?;
    let count = usize::try_from(u64_at(&head, 0)?).ok()?.min(MAX_IMAGES);
    let mut bytes = vec![0; count * UUID];
    read_at(read, u64_at(&head, 8)?, &mut bytes)?;
    let pair = |id: &[u8; UUID]| Some((u64_at(id, 0)?, *id.last_chunk()?));
    Some(bytes.as_chunks::<UUID>().0.iter().filter_map(pair).collect())
}

fn stamp(image: &[u8; IMAGE], id: Option<&[u8; 16]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (image, id).hash(&mut hasher);
    hasher.finish()
}

impl ListedImage {
    /// The path of its file.
    pub(crate) fn path(&self, read: ReadMemory<'_>) -> Option<String> {
        let Some(mut at) = self.path_at else { return Some(LINKER.to_owned()) };
        let mut path = Vec::new();
        while path.len() < MAX_PATH_LEN {
            // A path can be at the end of the memory that is readable.
            let in_page = PAGE - at % PAGE;
            let mut bytes = [0; 256];
            let bytes = bytes.get_mut(..usize::try_from(in_page).ok()?.min(256))?;
            read_at(read, at, bytes)?;
            let end = bytes.iter().position(|byte| *byte == 0);
            path.extend_from_slice(bytes.get(..end.unwrap_or(bytes.len()))?);
            if end.is_some() {
                return (!path.is_empty()).then(|| String::from_utf8_lossy(&path).into_owned());
            }
            at = at.checked_add(bytes.len() as u64)?;
        }
        None
    }

    /// Its header.
    pub(crate) fn header(&self, read: ReadMemory<'_>) -> Option<ImageHeader> {
        const MAGIC: u32 = 0xfeed_facf;
        const LC_SEGMENT_64: u32 = 0x19;
        const LC_UUID: u32 = 0x1b;
        let mut head = [0; 32];
        read_at(read, self.start, &mut head)?;
        let size = u32_at(&head, 20)? as usize;
        if u32_at(&head, 0)? != MAGIC || size > MAX_COMMAND_BYTES {
            return None;
        }
        let mut commands = vec![0; size];
        read_at(read, self.start.checked_add(head.len() as u64)?, &mut commands)?;
        let (mut text_len, mut uuid) = (None, None);
        let mut rest = commands.as_slice();
        while let (Some(kind), Some(len)) = (u32_at(rest, 0), u32_at(rest, 4)) {
            let Some((command, next)) = rest.split_at_checked(len as usize).filter(|_| len >= 8) else {
                break;
            };
            match kind {
                LC_SEGMENT_64 if command.get(8..24)?.starts_with(b"__TEXT\0") => {
                    text_len = text_len.or(u64_at(command, 32));
                }
                LC_UUID => uuid = command.get(8..).and_then(|id| id.first_chunk()).copied().map(MachUuid),
                _ => {}
            }
            rest = next;
        }
        Some(ImageHeader { text_len: text_len.filter(|len| *len > 0)?, uuid })
    }
}

fn read_at(read: ReadMemory<'_>, at: u64, out: &mut [u8]) -> Option<()> {
    (out.is_empty() || read(at, out)).then_some(())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Memory of a process: pieces that are readable as a whole.
    #[derive(Default)]
    pub(in super::super) struct SimulatedMemory(Vec<(u64, Vec<u8>)>);

    impl SimulatedMemory {
        pub(in super::super) fn put(&mut self, at: u64, bytes: Vec<u8>) {
            self.0.push((at, bytes));
        }

        pub(in super::super) fn read(&self, at: u64, out: &mut [u8]) -> bool {
            let found = self.0.iter().find_map(|(start, bytes)| {
                let from = usize::try_from(at.checked_sub(*start)?).ok()?;
                bytes.get(from..from.checked_add(out.len())?)
            });
            found.inspect(|found| out.copy_from_slice(found)).is_some()
        }
    }

    pub(in super::super) fn numbers(numbers: &[u64]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    pub(in super::super) fn infos(count: u32, array: u64, linker: u64) -> Vec<u8> {
        numbers(&[u64::from(count) << 32 | 0x11, array, 0, 0, linker])
    }

    fn image(start: u64) -> ListedImage {
        ListedImage { start, path_at: None, stamp: 0 }
    }

    /// A header with these load commands.
    pub(in super::super) fn header(commands: &[u8]) -> Vec<u8> {
        let words = [0xfeed_facf_u32, 0x100_000c, 0, 2, 2, commands.len() as u32, 0, 0];
        words.iter().flat_map(|word| word.to_le_bytes()).chain(commands.iter().copied()).collect()
    }

    pub(in super::super) fn segment(name: &[u8], len: u64) -> Vec<u8> {
        let mut command = [0x19_u32, 72].map(u32::to_le_bytes).concat();
        command.extend_from_slice(name);
        command.resize(24, 0);
        command.extend(numbers(&[0x1_0000_0000, len, 0, 0]));
        command.resize(72, 0);
        command
    }

    pub(in super::super) fn uuid() -> Vec<u8> {
        [0x1b_u32, 24].map(u32::to_le_bytes).concat().into_iter().chain(*b"0123456789abcdef").collect()
    }

    #[test]
    fn images_are_listed_with_their_paths() {
        let mut memory = SimulatedMemory::default();
        memory.put(0x1000, infos(2, 0x2000, 0x9_0000));
        memory.put(0x2000, numbers(&[0x8_0000, 0x3ffc, 0, 0x7_0000, 0x4000, 0]));
        memory.put(0x3ffc, b"/a/lib".to_vec());
        memory.put(0x4000, [b"lib\0".as_slice(), &[b'x'; 252]].concat());
        let read = |at, out: &mut [u8]| memory.read(at, out);
        let images = list(&read, 0x1000).unwrap();
        assert_eq!(
            images.iter().map(|image| image.start).collect::<Vec<_>>(),
            [0x7_0000, 0x8_0000, 0x9_0000]
        );
        assert_eq!(images[0].path(&read).as_deref(), Some("lib"));
        assert_eq!(images[2].path(&read).as_deref(), Some("/usr/lib/dyld"));
    }

    #[test]
    fn another_image_at_an_address_has_another_stamp() {
        let process = |path_at: u64, time: u64, id: u8| {
            let mut memory = SimulatedMemory::default();
            let head = [infos(1, 0x2000, 0x9_0000), vec![0; 48], numbers(&[1, 0x3000])].concat();
            memory.put(0x1000, head);
            memory.put(0x2000, numbers(&[0x8_0000, path_at, time]));
            memory.put(0x3000, [numbers(&[0x8_0000]), vec![id; 16]].concat());
            list(&|at, out: &mut [u8]| memory.read(at, out), 0x1000).unwrap()[0].stamp
        };
        let first = process(0x4000, 5, 1);
        assert_eq!(first, process(0x4000, 5, 1));
        let others = [process(0x5000, 5, 1), process(0x4000, 6, 1), process(0x4000, 5, 2)];
        assert!(others.iter().all(|other| *other != first));
    }

    #[test]
    fn a_path_may_go_on_in_the_next_page() {
        let mut memory = SimulatedMemory::default();
        memory.put(0x3ffc, b"/lib/a\0".to_vec().into_iter().chain([0; 300]).collect());
        let image = ListedImage { start: 1, path_at: Some(0x3ffc), stamp: 0 };
        assert_eq!(image.path(&|at, out: &mut [u8]| memory.read(at, out)).as_deref(), Some("/lib/a"));
    }

    #[test]
    fn a_list_that_changes_is_not_read() {
        let mut memory = SimulatedMemory::default();
        memory.put(0x1000, infos(2, 0, 0x9_0000));
        assert_eq!(list(&|at, out: &mut [u8]| memory.read(at, out), 0x1000), None);
        assert_eq!(list(&|at, out: &mut [u8]| memory.read(at, out), 0x5000), None);
    }

    #[test]
    fn a_list_that_changes_meanwhile_is_not_used() {
        let mut memory = SimulatedMemory::default();
        memory.put(0x1000, infos(1, 0x2000, 0x9_0000));
        memory.put(0x2000, numbers(&[0x8_0000, 0x3ffc, 0]));
        let mut changed = SimulatedMemory::default();
        changed.put(0x1000, infos(2, 0x2000, 0x9_0000));
        let heads = std::cell::Cell::new(0);
        let read = |at, out: &mut [u8]| {
            heads.set(heads.get() + u32::from(at == 0x1000));
            if heads.get() > 1 { changed.read(at, out) } else { memory.read(at, out) }
        };
        assert_eq!(list(&read, 0x1000), None);
        assert_eq!(heads.get(), 2);
    }

    #[test]
    fn stated_counts_and_sizes_are_bounded() {
        // All memory is readable, and full of the same byte.
        for byte in [0, 1, 0x19, 0xff] {
            let read = |_: u64, out: &mut [u8]| {
                assert!(out.len() <= MAX_IMAGES * IMAGE);
                out.fill(byte);
                true
            };
            let images = list(&read, 8).unwrap_or_default();
            assert!(images.len() <= 2);
            for at in [0, u64::MAX, u64::MAX - 40, 5] {
                let image = ListedImage { start: at, path_at: Some(at), stamp: 0 };
                let _ = (image.path(&read), image.header(&read));
            }
        }
        let mut memory = SimulatedMemory::default();
        memory.put(0x1000, infos(u32::MAX, 0x2000, 0));
        memory.put(0x2000, vec![1; 100]);
        assert_eq!(list(&|at, out: &mut [u8]| memory.read(at, out), 0x1000), None);
    }

    #[test]
    fn a_header_states_size_and_identity() {
        let check = |commands: &[u8], expected: Option<(u64, bool)>| {
            let mut memory = SimulatedMemory::default();
            memory.put(0x1000, header(commands));
            let found = image(0x1000).header(&|at, out: &mut [u8]| memory.read(at, out));
            assert_eq!(found.map(|header| (header.text_len, header.uuid.is_some())), expected);
        };
        let text = segment(b"__TEXT", 0x4000);
        check(&[segment(b"__PAGEZERO", 1 << 32), text.clone(), uuid()].concat(), Some((0x4000, true)));
        check(&text, Some((0x4000, false)));
        check(&uuid(), None);
        check(&segment(b"__TEXT", 0), None);
        // Commands without an end, and one that is cut off.
        check(&[text.clone(), vec![0x1b, 0, 0, 0, 0, 0, 0, 0]].concat(), Some((0x4000, false)));
        check(&[text, vec![0x1b, 0, 0, 0, 12, 0, 0, 0, 1, 1, 1, 1]].concat(), Some((0x4000, false)));
        check(&[0x19, 0, 0, 0, 8, 0, 0, 0], None);
    }
}
