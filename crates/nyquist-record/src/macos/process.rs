//! Processes by their names and numbers.

use nyquist_convert::event::Pid;

use super::sys::process;

/// The command that lists processes.
pub(crate) const LISTING_COMMAND: &str = "ps -ax";

/// The processes with a wanted name, except this one. The name is that of the program's file, or the one that
/// the process goes by.
pub fn named(is_wanted: impl Fn(&str) -> bool) -> Vec<Pid> {
    let is_named = |pid: &u32| {
        let path = process::path(*pid);
        let file = path.as_deref().map(file_name);
        file.is_some_and(&is_wanted) || process::name(*pid).is_some_and(|name| is_wanted(&name))
    };
    let others = process::all().into_iter().filter(|pid| *pid != std::process::id());
    others.filter(is_named).map(Pid).collect()
}

/// Whether a process has ended, or never was.
pub fn has_ended(pid: u32) -> bool {
    process::known(pid).is_none_or(|known| known.has_ended)
}

/// The name of the file of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_not_ended() {
        assert!(!has_ended(std::process::id()) && has_ended(0x7fff_fff0));
        assert!(named(|_| true).iter().all(|pid| pid.0 != std::process::id()));
        assert_eq!(file_name("/a b/app"), "app");
    }
}
