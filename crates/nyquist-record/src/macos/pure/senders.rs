//! Whether a signal was typed on the terminal, which sends it to the command as well.

use crate::request::EndSignal;

/// The most ancestors that are looked at.
const MAX_ANCESTORS: usize = 64;

/// System calls that read processes, as a trait for tests.
pub(crate) trait Processes {
    /// The process that has started a process.
    fn parent(&self, pid: u32) -> Option<u32>;
    /// The session of a process.
    fn session(&self, pid: u32) -> Option<u32>;
}

/// Whether the terminal is the origin of a signal that the process `own` has got from `sender`, or from the
/// kernel (`None`).
///
/// The system names the process in whose name it works when it sends the signal of a key: the one that writes to
/// the other end of the terminal (`psignal_internal` in `bsd/kern/kern_sig.c`). That is the program of the
/// window, `sshd` or `tmux`. It has started the session of its terminal and is in another session itself.
/// Programs that pass signals on (`timeout`, `make`) are in the same session, and `kill` that is called somewhere
/// else is no ancestor.
pub(crate) fn is_of_terminal(sender: Option<u32>, own: u32, processes: &impl Processes) -> bool {
    let Some(sender) = sender else { return true };
    let is_elsewhere =
        processes.session(sender).is_some_and(|session| Some(session) != processes.session(own));
    let parent = |pid: &u32| processes.parent(*pid);
    is_elsewhere && std::iter::successors(parent(&own), parent).take(MAX_ANCESTORS).any(|pid| pid == sender)
}

/// Whether a request to end was typed on the terminal. The terminal sends signals to the group in its foreground
/// alone, and none that asks for termination.
pub(crate) fn is_typed(
    signal: EndSignal,
    sender: Option<u32>,
    own: u32,
    is_in_foreground: impl FnOnce() -> bool,
    processes: &impl Processes,
) -> bool {
    signal != EndSignal::Terminate && is_in_foreground() && is_of_terminal(sender, own, processes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes with their parents and sessions.
    struct ListedProcesses<'a>(&'a [(u32, u32, u32)]);

    impl Processes for ListedProcesses<'_> {
        fn parent(&self, pid: u32) -> Option<u32> {
            self.0.iter().find(|process| process.0 == pid).map(|process| process.1)
        }

        fn session(&self, pid: u32) -> Option<u32> {
            self.0.iter().find(|process| process.0 == pid).map(|process| process.2)
        }
    }

    #[test]
    fn a_key_comes_from_the_program_of_the_terminal() {
        // The window, its shell, `timeout` and nyquist below it; another shell, whose parent is the window, too.
        let all =
            ListedProcesses(&[(1, 0, 1), (5, 1, 1), (10, 5, 10), (11, 10, 10), (12, 11, 10), (20, 5, 20)]);
        let check = |sender, expected| assert_eq!(is_of_terminal(sender, 12, &all), expected, "{sender:?}");
        check(None, true);
        check(Some(5), true);
        check(Some(1), true);
        // `timeout`, the shell, another shell, and a process that has ended.
        for other in [10, 11, 20, 99] {
            check(Some(other), false);
        }
    }

    #[test]
    fn only_a_signal_to_the_foreground_was_typed() {
        let all = ListedProcesses(&[(5, 1, 1), (10, 5, 10), (12, 10, 10)]);
        let typed =
            |signal, sender, is_in_foreground: bool| is_typed(signal, sender, 12, || is_in_foreground, &all);
        assert!(typed(EndSignal::Interrupt, Some(5), true) && typed(EndSignal::Quit, None, true));
        assert!(!typed(EndSignal::Interrupt, Some(5), false), "it was sent to a group in the background");
        assert!(!typed(EndSignal::Terminate, Some(5), true), "no key sends it");
        assert!(!typed(EndSignal::Interrupt, Some(10), true), "it comes from the shell");
    }

    #[test]
    fn parents_in_a_circle_end() {
        assert!(!is_of_terminal(Some(9), 1, &ListedProcesses(&[(1, 2, 1), (2, 1, 1), (9, 9, 9)])));
    }
}
