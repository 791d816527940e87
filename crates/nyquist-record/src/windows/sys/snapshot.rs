//! All processes and threads of the machine at one time.

use std::ptr;

use windows_sys::Wdk::System::SystemInformation::{NtQuerySystemInformation, SystemProcessInformation};
use windows_sys::Win32::Foundation::{STATUS_BUFFER_TOO_SMALL, STATUS_INFO_LENGTH_MISMATCH, STATUS_SUCCESS};

/// The largest answer that is read: some 300,000 threads.
const MAX_BYTES: usize = 64 << 20;
/// The size to begin with.
const FIRST_BYTES: usize = 256 << 10;
/// What is added to the size that the system asks for, because threads may be born meanwhile.
const SPARE_BYTES: usize = 64 << 10;

/// Fills a buffer, which grows as needed, with the records of all processes. Returns the number of bytes; 0 if
/// the system gives none.
pub(crate) fn read(buffer: &mut Vec<u8>) -> usize {
    buffer.resize(buffer.len().max(FIRST_BYTES), 0);
    loop {
        let mut len = 0;
        let room = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        // SAFETY: the buffer has `room` bytes, and both pointers live through the call.
        let status = unsafe {
            NtQuerySystemInformation(
                SystemProcessInformation,
                buffer.as_mut_ptr().cast(),
                room,
                ptr::from_mut(&mut len),
            )
        };
        let requested = (len as usize).max(buffer.len()) + SPARE_BYTES;
        match status {
            STATUS_SUCCESS => return (len as usize).min(buffer.len()),
            STATUS_INFO_LENGTH_MISMATCH | STATUS_BUFFER_TOO_SMALL if requested <= MAX_BYTES => {
                buffer.resize(requested, 0);
            }
            _ => return 0,
        }
    }
}
