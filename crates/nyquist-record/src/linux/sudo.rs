//! The user behind sudo, doas or pkexec.

use super::Credentials;
use super::sys::users::{self, Account};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// The user for whom sudo, doas or pkexec has started this process as root.
pub fn invoking_user() -> Option<Credentials> {
    if !users::is_root() {
        return None;
    }
    let user = Invoker::of(|name| std::env::var(name).ok(), Account::of_uid, Account::of_name)?;
    // A user whose groups cannot be determined still has the primary group.
    let groups = user.name.and_then(|name| users::groups(&name, user.gid));
    Some(Credentials { uid: user.uid, gid: user.gid, groups: groups.unwrap_or_else(|| vec![user.gid]) })
}

/// The user that requested root's rights.
#[derive(Debug, PartialEq, Eq)]
struct Invoker {
    uid: u32,
    gid: u32,
    name: Option<CString>,
}

impl Invoker {
    /// Determines the user from the variables that sudo(8), doas(1) and pkexec(1) set; `None` for root
    /// itself.
    fn of(
        variable: impl Fn(&str) -> Option<String>,
        of_uid: impl Fn(u32) -> Option<Account>,
        of_name: impl Fn(&CStr) -> Option<Account>,
    ) -> Option<Self> {
        let number = |name| variable(name)?.parse::<u32>().ok();
        let text = |name| variable(name).and_then(|text| CString::new(text).ok());
        let by_sudo = || {
            let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
            Some(Self { uid, gid, name: text("SUDO_USER") })
        };
        let by_doas = || of_name(&text("DOAS_USER")?).map(Self::from);
        let by_pkexec = || of_uid(number("PKEXEC_UID")?).map(Self::from);
        by_sudo().or_else(by_doas).or_else(by_pkexec).filter(|user| user.uid != 0)
    }
}

impl From<Account> for Invoker {
    fn from(account: Account) -> Self {
        Self { uid: account.uid, gid: account.gid, name: Some(account.name) }
    }
}

/// The variables that sudo and similar programs have set to root's values, with the values of the invoking
/// user: the home folder and the name. Variables that were kept or set otherwise are not changed.
pub fn invoking_environment(uid: u32) -> Vec<(OsString, OsString)> {
    let current = |name: &str| std::env::var_os(name);
    let user = Account::of_uid(uid);
    let given = current("SUDO_USER").filter(|name| !name.is_empty());
    let listed = || user.as_ref().map(|user| OsStr::from_bytes(user.name.to_bytes()).to_owned());
    let name = given.or_else(listed);
    let roots_home = Account::of_uid(0).map(|root| root.home);
    environment(current, roots_home, user.as_ref().map(|user| user.home.clone()), name.as_ref())
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
    fn each_way_to_root_says_who_went_it() {
        let ann = || Account { name: c"ann".into(), uid: 1000, gid: 100, home: "/home/ann".into() };
        let check = |variables: &[(&str, &str)], expected: Option<(u32, u32)>| {
            let value = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            let of_uid = |uid| (uid == 1000).then(ann);
            let of_name = |name: &CStr| (name == c"ann").then(ann);
            let found = Invoker::of(value, of_uid, of_name).map(|user| (user.uid, user.gid));
            assert_eq!(found, expected, "{variables:?}");
        };
        check(&[], None);
        check(&[("SUDO_UID", "1000"), ("SUDO_GID", "5"), ("SUDO_USER", "ann")], Some((1000, 5)));
        check(&[("SUDO_UID", "0"), ("SUDO_GID", "0")], None);
        check(&[("SUDO_UID", "1000")], None);
        check(&[("DOAS_USER", "ann")], Some((1000, 100)));
        check(&[("DOAS_USER", "nobody")], None);
        check(&[("PKEXEC_UID", "1000")], Some((1000, 100)));
        check(&[("PKEXEC_UID", "7")], None);
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
