//! The memory of other processes, and of the machine.

use std::ops::Range;
use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::{mem, ptr};

use windows_sys::Win32::System::Diagnostics::Debug::ReadProcessMemory;
use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_IMAGE, MEMORY_BASIC_INFORMATION, PAGE_EXECUTE, PAGE_EXECUTE_READ, PAGE_EXECUTE_READWRITE,
    PAGE_EXECUTE_WRITECOPY, VirtualQueryEx,
};
use windows_sys::Win32::System::ProcessStatus::K32GetMappedFileNameW;
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};

use crate::suspend::system::ImageEnd;

/// The rights of pages with code.
const EXECUTABLE: u32 = PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY;
/// The most regions of a process that are listed.
const MAX_REGIONS: usize = 1 << 16;
/// The longest name of a mapped file, in UTF-16 units.
const MAX_PATH_LEN: usize = 1 << 10;

/// Copies memory of a process from an address on. Returns how many bytes were copied, which are fewer if a
/// part is not readable. Allocates nothing.
pub(crate) fn read(process: &OwnedHandle, address: u64, out: &mut [u8]) -> usize {
    let mut copied = 0;
    // SAFETY: the system checks the other process's address, and writes at most as many bytes as `out` has.
    unsafe {
        ReadProcessMemory(
            process.as_raw_handle(),
            ptr::without_provenance(address as usize),
            out.as_mut_ptr().cast(),
            out.len(),
            &raw mut copied,
        )
    };
    copied.min(out.len())
}

/// The eight bytes at an address as a number.
pub(crate) fn read_u64(process: &OwnedHandle, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (read(process, address, &mut bytes) == bytes.len()).then(|| u64::from_le_bytes(bytes))
}

/// The end of the pages of the same kind that an address is in, if they are in use.
pub(crate) fn end_of_region(process: &OwnedHandle, address: u64) -> Option<u64> {
    let found = region(process, address)?;
    (found.State == MEM_COMMIT).then(|| range_of(&found).end)
}

/// The executable memory of a process that is of no image. Known images are passed over.
pub(crate) fn made_code(process: &OwnedHandle, image_end: ImageEnd<'_>) -> Vec<Range<u64>> {
    let mut next = 0;
    let regions = std::iter::from_fn(|| {
        while let Some(end) = image_end(next) {
            next = end;
        }
        let found = region(process, next).filter(|found| range_of(found).end > next)?;
        next = range_of(&found).end;
        Some(found)
    });
    let is_made = |found: &MEMORY_BASIC_INFORMATION| {
        found.State == MEM_COMMIT && found.Type != MEM_IMAGE && found.Protect & EXECUTABLE != 0
    };
    regions.take(MAX_REGIONS).filter(is_made).map(|found| range_of(&found)).collect()
}

fn range_of(found: &MEMORY_BASIC_INFORMATION) -> Range<u64> {
    let start = found.BaseAddress.addr() as u64;
    start..start.saturating_add(found.RegionSize as u64)
}

/// The pages of the same kind that an address is in.
fn region(process: &OwnedHandle, address: u64) -> Option<MEMORY_BASIC_INFORMATION> {
    // SAFETY: the structure is plain numbers, for which zeros are valid.
    let mut found: MEMORY_BASIC_INFORMATION = unsafe { mem::zeroed() };
    let size = size_of::<MEMORY_BASIC_INFORMATION>();
    // SAFETY: `found` lives through the call and has `size` bytes.
    let len = unsafe {
        VirtualQueryEx(
            process.as_raw_handle(),
            ptr::without_provenance(address as usize),
            &raw mut found,
            size,
        )
    };
    (len == size).then_some(found)
}

/// The file that is mapped at an address, by the name that the kernel gives it; empty if there is none.
pub(crate) fn mapped_file(process: &OwnedHandle, address: u64) -> Vec<u16> {
    let mut units = vec![0; MAX_PATH_LEN];
    // SAFETY: the system checks the address; `units` has that many units and lives through the call.
    let len = unsafe {
        K32GetMappedFileNameW(
            process.as_raw_handle(),
            ptr::without_provenance(address as usize),
            units.as_mut_ptr(),
            units.len() as u32,
        )
    };
    units.truncate(len as usize);
    units
}

/// The memory of the machine in bytes; 0 if the system does not provide it.
pub(crate) fn of_machine() -> u64 {
    let mut status = MEMORYSTATUSEX { dwLength: size_of::<MEMORYSTATUSEX>() as u32, ..Default::default() };
    // SAFETY: the structure states its size, and lives through the call.
    let known = unsafe { GlobalMemoryStatusEx(&raw mut status) };
    if known == 0 { 0 } else { status.ullTotalPhys }
}

#[cfg(test)]
mod tests {
    use windows_sys::Win32::System::Memory::{MEM_RELEASE, MEM_RESERVE, VirtualAlloc, VirtualFree};

    use super::super::process;
    use super::*;

    #[test]
    fn made_code_is_found_and_images_are_not() {
        let own = process::open(std::process::id()).unwrap();
        // SAFETY: the system chooses the address, and nobody executes or reads the memory.
        let made =
            unsafe { VirtualAlloc(ptr::null(), 1 << 16, MEM_COMMIT | MEM_RESERVE, PAGE_EXECUTE_READWRITE) };
        let found = made_code(&own, &|_| None);
        let here = of_machine as fn() -> u64 as usize as u64;
        let has = |at: u64| found.iter().any(|range| range.contains(&at));
        assert!(has(made.addr() as u64) && !has(here), "{found:x?}");
        assert!(!mapped_file(&own, here).is_empty() && mapped_file(&own, made.addr() as u64).is_empty());
        // SAFETY: the memory is of the call above, and nothing refers to it.
        unsafe { VirtualFree(made, 0, MEM_RELEASE) };
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(super::of_machine() > 1 << 26);
    }
}
