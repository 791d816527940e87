//! The memory of other processes, and of the machine.

use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::{mem, ptr};

use windows_sys::Win32::System::Diagnostics::Debug::ReadProcessMemory;
use windows_sys::Win32::System::Memory::{MEM_COMMIT, MEMORY_BASIC_INFORMATION, VirtualQueryEx};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};

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
    let is_used = len == size && found.State == MEM_COMMIT;
    is_used.then(|| (found.BaseAddress.addr() as u64).saturating_add(found.RegionSize as u64))
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
    #[test]
    fn the_machine_has_memory() {
        assert!(super::of_machine() > 1 << 26);
    }
}
