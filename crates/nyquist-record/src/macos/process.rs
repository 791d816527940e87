//! Processes by their names and numbers.

use nyquist_convert::event::Pid;

use super::pure::names::has_requested_name;
use super::sys::process;

/// The command that lists processes.
pub(crate) const LISTING_COMMAND: &str = "ps -ax";

/// The processes with a requested name, except this one. The name is that of the program's file, or the one that
/// the process goes by.
pub fn named(is_requested: impl Fn(&str) -> bool) -> Vec<Pid> {
    let is_named =
        |pid: &u32| has_requested_name(process::path(*pid).as_deref(), || process::name(*pid), &is_requested);
    let others = process::all().into_iter().filter(|pid| *pid != std::process::id());
    others.filter(is_named).map(Pid).collect()
}

/// Whether a process has ended, or never was.
pub fn has_ended(pid: u32) -> bool {
    process::known(pid).is_none_or(|known| known.has_ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_not_ended() {
        assert!(!has_ended(std::process::id()) && has_ended(0x7fff_fff0));
        assert!(named(|_| true).iter().all(|pid| pid.0 != std::process::id()));
    }
}
