//! The code of .NET's methods in a trace. Methods that were compiled ahead are in images, and the others in memory
//! that the runtime has made, which no other event mentions.

use super::images::Images;
use crate::event::{MappedFile, Mapping, Pid};
use crate::modules::provided_symbols::ProvidedSymbols;
use nyquist_etw::clr::Method;
use nyquist_etw::kernel::Image;
use nyquist_object::{Avma, FileOffset};
use nyquist_perf::PerfMapEntry;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most methods, and the most bytes of their names.
const MAX_METHODS: usize = 1 << 22;
const MAX_NAME_BYTES: usize = 1 << 30;

/// The addresses that one lib can have.
const WINDOW: u64 = 1 << 31;

/// Code with gaps of less than a page is one mapping.
const PAGE: u64 = 4096;

/// The methods of a trace.
#[derive(Debug, Default)]
pub(super) struct ClrMethods {
    methods: Vec<Method>,
    name_bytes: usize,
    seen: FxHashSet<(u32, u64)>,
}

/// What converting needs of them.
#[derive(Debug, Default)]
pub(super) struct ClrCode {
    /// The methods by the paths of their images, or of the mappings below.
    pub(super) symbols: FxHashMap<String, ProvidedSymbols>,
    /// The memory with methods, by process.
    pub(super) mappings: FxHashMap<u32, Vec<Mapping>>,
}

impl ClrMethods {
    /// Adds a method. The last events of a trace may repeat what the first ones have.
    pub(super) fn add(&mut self, method: Method) {
        let has_room = self.methods.len() < MAX_METHODS && self.name_bytes < MAX_NAME_BYTES;
        if method.size > 0 && has_room && self.seen.insert((method.pid, method.start)) {
            self.name_bytes += method.name.len();
            self.methods.push(method);
        }
    }

    /// Distributes the methods to images and to memory without a file.
    pub(super) fn place(self, all_images: &[Image], images: &Images) -> ClrCode {
        let mut methods = self.methods;
        methods.sort_by_key(|method| (method.pid, method.start));
        let mut by_process: FxHashMap<u32, Vec<&Image>> = FxHashMap::default();
        for image in all_images {
            by_process.entry(image.pid).or_default().push(image);
        }
        for images in by_process.values_mut() {
            images.sort_by_key(|image| image.base);
        }
        let mut in_images: FxHashMap<String, Vec<PerfMapEntry>> = FxHashMap::default();
        let mut in_memory: FxHashMap<String, Vec<PerfMapEntry>> = FxHashMap::default();
        let mut mappings: FxHashMap<u32, Vec<Mapping>> = FxHashMap::default();
        for method in methods {
            let (start, end) = (method.start, method.start.saturating_add(method.size.into()));
            let image = by_process.get(&method.pid).and_then(|images| image_at(images, start));
            let (path, from) = match image {
                Some(image) => (images.display_path(image), image.base),
                None => (memory_name(method.pid, start), 0),
            };
            let entries = if image.is_some() { &mut in_images } else { &mut in_memory };
            if image.is_none() {
                map(mappings.entry(method.pid).or_default(), (method.pid, &path), (start, end));
            }
            let entry = PerfMapEntry { start: start - from, end: end - from, name: method.name.into() };
            entries.entry(path).or_default().push(entry);
        }
        let in_images =
            in_images.into_iter().map(|(path, entries)| (path, ProvidedSymbols::from_start(entries)));
        let in_memory =
            in_memory.into_iter().map(|(path, entries)| (path, ProvidedSymbols::in_memory(entries)));
        ClrCode { symbols: in_images.chain(in_memory).collect(), mappings }
    }
}

/// The image at an address, of images in the order of their addresses.
fn image_at<'a>(images: &[&'a Image], address: u64) -> Option<&'a Image> {
    let after = images.partition_point(|image| image.base <= address);
    let image = *images.get(after.checked_sub(1)?)?;
    (address - image.base < image.size).then_some(image)
}

/// The name of the memory with methods around an address. A lib has 2 GiB of addresses.
fn memory_name(pid: u32, address: u64) -> String {
    format!("[.NET {pid}:{:x}]", address / WINDOW)
}

/// Adds code to the mappings of a process. It comes in the order of its addresses.
fn map(mappings: &mut Vec<Mapping>, (pid, path): (u32, &str), (start, end): (u64, u64)) {
    if let Some(last) = mappings.last_mut()
        && last.path == path
        && start <= (last.start.0 + last.len).saturating_add(PAGE)
    {
        last.len = last.len.max(end - last.start.0);
        return;
    }
    mappings.push(Mapping {
        pid: Some(Pid(pid)),
        start: Avma(start),
        len: end - start,
        offset: FileOffset(0),
        path: path.to_owned(),
        identity: MappedFile::Unknown,
    });
}
