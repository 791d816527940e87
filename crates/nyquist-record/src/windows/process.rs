//! Processes by their names and numbers.

use nyquist_convert::event::Pid;

use super::listing::ProcessListing;
use super::sys::process;

/// The command that lists processes.
pub(crate) const LISTING_COMMAND: &str = "tasklist";

/// The processes with a requested name, except this one. The name is that of the program's file, with and without
/// `.exe`.
pub fn named(is_requested: impl Fn(&str) -> bool) -> Vec<Pid> {
    let mut listing = ProcessListing::default();
    listing.refresh();
    let is_named = |name: &str| is_requested(name) || without_exe(name).is_some_and(&is_requested);
    let others = listing.names().filter(|(pid, _)| *pid != std::process::id());
    others.filter(|(_, name)| is_named(name)).map(|(pid, _)| Pid(pid)).collect()
}

fn without_exe(name: &str) -> Option<&str> {
    let (stem, ending) = name.rsplit_once('.')?;
    ending.eq_ignore_ascii_case("exe").then_some(stem)
}

/// Whether a process has ended, or never was. One that may not be queried lives.
pub fn has_ended(pid: u32) -> bool {
    match process::open_to_ask(pid) {
        Ok(process) => process::has_ended(&process),
        Err(error) => error.kind() != std::io::ErrorKind::PermissionDenied,
    }
}

/// The name of the program's file of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files() {
        let check = |name: &str, expected: Option<&str>| assert_eq!(without_exe(name), expected);
        check("App.EXE", Some("App"));
        check("app", None);
        assert_eq!(file_name(r"C:\a b\app.exe"), "app.exe");
        assert!(named(|_| true).iter().all(|pid| pid.0 != std::process::id()));
    }

    #[test]
    fn this_process_has_not_ended() {
        assert!(!has_ended(std::process::id()));
        assert!(has_ended(0x7fff_fff0));
    }
}
