//! The unsafe code: properties of the machine by their names (sysctlbyname(3)).
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr;

/// The longest text that is read.
const MAX_TEXT_LEN: usize = 256;

/// A property that is a text.
pub(crate) fn text(name: &CStr) -> Option<String> {
    let mut bytes = [0_u8; MAX_TEXT_LEN];
    let len = read(name, &mut bytes)?;
    let text = bytes.get(..len)?.split(|byte| *byte == 0).next()?;
    (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
}

/// A property that is a number, of 32 or 64 bits.
pub(crate) fn number(name: &CStr) -> Option<u64> {
    let mut bytes = [0_u8; 8];
    // All processors of macOS have the lower bytes first, so a number of 32 bits is the same in 64.
    read(name, &mut bytes)?;
    Some(u64::from_le_bytes(bytes))
}

/// Reads a property. Returns its length in bytes; `None` if it is not there or too long.
fn read(name: &CStr, bytes: &mut [u8]) -> Option<usize> {
    let mut len = bytes.len();
    // SAFETY: the name ends with a zero. `bytes` has `len` bytes, of which the call writes no more. All pointers
    // live through the call, and no new value is given.
    let result = unsafe {
        libc::sysctlbyname(name.as_ptr(), bytes.as_mut_ptr().cast(), &raw mut len, ptr::null_mut(), 0)
    };
    (result == 0).then_some(len)
}
