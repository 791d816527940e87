//! The vDSO: code that the kernel maps into every process and that no file holds.

use nyquist_system::FileExt as _;
use std::fs::File;
use std::sync::{Arc, OnceLock};

/// The name under which it is mapped.
pub(crate) const NAME: &str = "[vdso]";

/// The image, read from the recorder's own memory: the kernel maps the same one into every 64-bit process.
pub(crate) fn image() -> Option<Arc<Vec<u8>>> {
    static IMAGE: OnceLock<Option<Arc<Vec<u8>>>> = OnceLock::new();
    IMAGE.get_or_init(|| read().map(Arc::new)).clone()
}

fn read() -> Option<Vec<u8>> {
    const MAX_SIZE: u64 = 1 << 20;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with(NAME))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let len = u64::from_str_radix(end, 16).ok()?.checked_sub(start).filter(|&len| len <= MAX_SIZE)?;
    let mut image = vec![0; usize::try_from(len).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut image, start).ok()?;
    Some(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "only Linux has this library")]
    fn the_image_is_an_elf_file_with_unwind_info() {
        let elf = nyquist_object::Elf::open(image().unwrap()).unwrap();
        assert!(!elf.section_data(".eh_frame").unwrap().unwrap().is_empty());
    }
}
