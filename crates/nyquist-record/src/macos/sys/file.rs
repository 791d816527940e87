//! Whether a file may be executed.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::check;

/// Whether this process may execute a file, by access(2); the error says why it may not.
pub(crate) fn may_be_run(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path ends with a zero and lives through the call.
    check(unsafe { libc::access(path.as_ptr(), libc::X_OK) })
}
