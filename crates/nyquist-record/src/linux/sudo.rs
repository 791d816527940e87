//! The user behind sudo.

use super::Credentials;
use super::sys::users;
use std::ffi::CString;

/// The user who typed sudo, where this process runs as root because of it.
pub fn invoking_user() -> Option<Credentials> {
    if !users::is_root() {
        return None;
    }
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
    let name = std::env::var("SUDO_USER").ok().and_then(|name| CString::new(name).ok());
    // A user whose groups cannot be had still has its own one.
    let groups = name.and_then(|name| users::groups(&name, gid)).unwrap_or_else(|| vec![gid]);
    (uid != 0).then_some(Credentials { uid, gid, groups })
}
