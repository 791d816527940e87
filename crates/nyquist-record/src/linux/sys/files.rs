//! What the file system says of a program's file.

use std::ffi::CStr;

/// Whether a file gives capabilities to who runs it (capabilities(7), "File capabilities").
pub(crate) fn has_capabilities(path: &CStr) -> bool {
    const NAME: &CStr = c"security.capability";
    // SAFETY: both strings end in a zero; with no room given, the call says the length and writes nothing.
    unsafe { libc::getxattr(path.as_ptr(), NAME.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}
