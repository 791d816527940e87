//! The images of a process, as the sampler takes them.

use nyquist_convert::event::MappedFile;

use super::images::{self, ReadMemory};
use crate::suspend::system::{ListedImage, LoadedModule};

/// The library whose code makes system calls.
const CALLING_LIBRARY: &str = "/usr/lib/system/libsystem_kernel.dylib";

/// All images in the list at an address, and descriptions of those that are not known.
/// `None` if the list cannot be read now. `shown` gives the path by which the profile calls a file.
pub(crate) fn loaded(
    read: ReadMemory<'_>,
    list_at: u64,
    known: &dyn Fn(ListedImage) -> bool,
    shown: impl Fn(String) -> String,
) -> Option<(Vec<ListedImage>, Vec<LoadedModule>)> {
    let images = images::list(read, list_at)?;
    let listed: Vec<_> = images.iter().map(listed).collect();
    let new = images.iter().filter(|image| !known(self::listed(image)));
    let new = new.filter_map(|image| describe(image, read, &shown)).collect();
    (!listed.is_empty()).then_some((listed, new))
}

fn listed(image: &images::ListedImage) -> ListedImage {
    ListedImage { start: image.start, stamp: image.stamp }
}

fn describe(
    image: &images::ListedImage,
    read: ReadMemory<'_>,
    shown: impl Fn(String) -> String,
) -> Option<LoadedModule> {
    let path = shown(image.path(read)?);
    let header = image.header(read)?;
    Some(LoadedModule {
        listed: listed(image),
        len: header.text_len,
        makes_calls: path == CALLING_LIBRARY,
        identity: header.uuid.map_or(MappedFile::Unknown, MappedFile::MachO),
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::super::images::tests::{SimulatedMemory, header, infos, numbers, segment, uuid};
    use super::*;

    const LIST: u64 = 0x1000;

    /// A process with a program and the library that makes calls. The library's header is not readable if
    /// `is_torn`: the linker has listed it, and has not mapped it.
    fn process(is_torn: bool) -> SimulatedMemory {
        let mut memory = SimulatedMemory::default();
        memory.put(LIST, infos(2, 0x2000, 0));
        memory.put(0x2000, numbers(&[0x8_0000, 0x4000, 0, 0x9_0000, 0x5000, 0]));
        memory.put(0x4000, [b"/tmp/copy\0".as_slice(), &[0; 300]].concat());
        memory.put(0x5000, [CALLING_LIBRARY.as_bytes(), &[0; 300]].concat());
        memory.put(0x8_0000, header(&[segment(b"__TEXT", 0x4000), uuid()].concat()));
        if !is_torn {
            memory.put(0x9_0000, header(&segment(b"__TEXT", 0x1000)));
        }
        memory
    }

    /// The path of an image, whether it makes calls, and its size.
    type ModuleDescription = (String, bool, u64);

    fn listed_images(memory: &SimulatedMemory, known: &[u64]) -> Option<(Vec<u64>, Vec<ModuleDescription>)> {
        let read = |at, out: &mut [u8]| memory.read(at, out);
        let shown = |path: String| path.replace("/tmp/copy", "/home/app");
        let (starts, new) = loaded(&read, LIST, &|image| known.contains(&image.start), shown)?;
        let starts = starts.into_iter().map(|image| image.start).collect();
        Some((starts, new.into_iter().map(|module| (module.path, module.makes_calls, module.len)).collect()))
    }

    #[test]
    fn new_images_have_the_originals_names() {
        let program = ("/home/app".to_owned(), false, 0x4000);
        let library = (CALLING_LIBRARY.to_owned(), true, 0x1000);
        let starts = vec![0x8_0000, 0x9_0000];
        assert_eq!(
            listed_images(&process(false), &[]),
            Some((starts.clone(), vec![program, library.clone()]))
        );
        assert_eq!(listed_images(&process(false), &[0x8_0000]), Some((starts, vec![library])));
    }

    #[test]
    fn an_image_that_is_not_there_yet_comes_later() {
        let (starts, new) = listed_images(&process(true), &[0x8_0000]).unwrap();
        assert_eq!((starts.len(), new.len()), (2, 0));
        let (_, new) = listed_images(&process(false), &[0x8_0000]).unwrap();
        assert_eq!(new.len(), 1);
    }

    #[test]
    fn a_process_in_exec_has_no_list() {
        assert_eq!(listed_images(&SimulatedMemory::default(), &[]), None);
        let mut memory = SimulatedMemory::default();
        memory.put(LIST, infos(0, 0x2000, 0));
        assert_eq!(listed_images(&memory, &[]), None, "no image at all is no list");
    }
}
