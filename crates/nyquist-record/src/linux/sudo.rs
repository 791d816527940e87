//! The user behind sudo.

use super::Credentials;
use super::sys::users;
use std::ffi::{CString, OsString};

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

/// What sudo has set to root's, as the user who typed it has it: the home folder and the name. What was kept or set
/// otherwise is left alone.
pub fn invoking_environment(uid: u32) -> Vec<(OsString, OsString)> {
    let current = |name: &str| std::env::var_os(name);
    let name = current("SUDO_USER").filter(|name| !name.is_empty());
    environment(current, users::home(0), users::home(uid), name.as_ref())
}

fn environment(
    current: impl Fn(&str) -> Option<OsString>,
    roots_home: Option<OsString>,
    home: Option<OsString>,
    name: Option<&OsString>,
) -> Vec<(OsString, OsString)> {
    let names = ["USER", "LOGNAME"].map(|variable| (variable, Some("root".into()), name.cloned()));
    let variables = [("HOME", roots_home, home)].into_iter().chain(names);
    let changed = variables.filter(|(variable, roots, _)| roots.is_some() && current(variable) == *roots);
    changed.filter_map(|(variable, _, own)| Some((variable.into(), own?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(current: &[(&str, &str)], expected: &[(&str, &str)]) {
        let value = |name: &str| current.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into());
        let text = |text: &str| Some(text.into());
        let changed = environment(value, text("/root"), text("/home/ann"), Some(&"ann".into()));
        let changed: Vec<_> =
            changed.iter().map(|(n, v)| (n.to_str().unwrap(), v.to_str().unwrap())).collect();
        assert_eq!(changed, expected, "{current:?}");
    }

    #[test]
    fn what_is_roots_becomes_the_users() {
        check(
            &[("HOME", "/root"), ("USER", "root"), ("LOGNAME", "root")],
            &[("HOME", "/home/ann"), ("USER", "ann"), ("LOGNAME", "ann")],
        );
    }

    #[test]
    fn what_sudo_has_kept_stays() {
        check(&[("HOME", "/home/ann"), ("USER", "ann")], &[]);
        check(&[("HOME", "/tmp"), ("LOGNAME", "root")], &[("LOGNAME", "ann")]);
        check(&[], &[]);
    }
}
