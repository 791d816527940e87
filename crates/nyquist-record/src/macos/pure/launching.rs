//! The steps by which a command becomes a process that waits and may be sampled.
//!
//! The system gives the port of the process's task, or refuses. If it refuses, a copy of the program is signed
//! so that it allows debuggers (`com.apple.security.get-task-allow`), and the copy is started instead.

use std::io;
use std::path::{Path, PathBuf};

use super::denied::{self, ProgramFacts};
use crate::suspend::system::SamplingDenied;

/// The calls of the system that launching needs.
pub(crate) trait LaunchCalls {
    /// A process that waits for its start. It is ended when this is dropped.
    type Child;
    /// A copy of a program, which is removed when this is dropped.
    type Copy;

    /// Starts a program, which waits.
    fn spawn(&mut self, program: &Path) -> io::Result<Self::Child>;
    /// Whether the system gives the port of a process's task.
    fn may_sample(&mut self, child: &Self::Child) -> bool;
    /// Whether a process has ended.
    fn has_ended(&mut self, child: &Self::Child) -> bool;
    /// What is known of a process's program.
    fn facts(&mut self, child: &Self::Child) -> ProgramFacts;
    /// Makes a copy of a program that allows debuggers. The error says why that is not possible.
    fn signed_copy(&mut self, program: &Path) -> Result<SignedCopy<Self::Copy>, String>;
    /// Whether a path leads to the same file as a program's path.
    fn is_same(&mut self, path: &str, program: &Path) -> bool;
    /// The mode of a program's file.
    fn mode(&mut self, program: &Path) -> Option<u32>;
}

/// A copy of a program that allows debuggers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SignedCopy<K> {
    pub(crate) path: PathBuf,
    pub(crate) copy: K,
    /// The names of the program's entitlements that it has not.
    pub(crate) lost: Vec<String>,
}

/// A process that waits for its start, and the copy of the program that it runs, if it is one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LaunchedChild<C, K> {
    pub(crate) child: C,
    pub(crate) copy: Option<K>,
    /// What differs from the program that was named, to be shown to the user.
    pub(crate) notice: Option<String>,
}

/// Why there is none.
#[derive(Debug)]
pub(crate) enum NotLaunched {
    /// The program cannot be executed.
    Exec(io::Error),
    /// It may not be sampled.
    Refused(SamplingDenied),
}

/// A program's process.
enum StartedChild<C> {
    /// It may be sampled.
    Granted(C),
    /// It may not, and was ended.
    Refused(ProgramFacts),
    /// The system has ended it.
    Ended,
}

/// Launches a program.
pub(crate) fn launch<M: LaunchCalls>(
    machine: &mut M,
    program: &Path,
) -> Result<LaunchedChild<M::Child, M::Copy>, NotLaunched> {
    let facts = match start(machine, program)? {
        StartedChild::Granted(child) => return Ok(LaunchedChild { child, copy: None, notice: None }),
        StartedChild::Refused(facts) => {
            ProgramFacts { mode: facts.mode.or_else(|| machine.mode(program)), ..facts }
        }
        // A copy would be signed validly and run, which the program does not.
        StartedChild::Ended => return refused(denied::of_ended(&program.to_string_lossy())),
    };
    // A copy of a program of the system would not be what the user has requested. One of a program that gets the
    // rights of its owner would run as the user and do something else. A script is run by another program, so
    // that a copy of the script allows nothing.
    let is_it = facts.path.as_deref().is_none_or(|path| machine.is_same(path, program));
    if facts.is_protected() || facts.changes_rights() || !is_it {
        return refused(denied::of_program(&facts, None));
    }
    let SignedCopy { path, copy, lost } = match machine.signed_copy(program) {
        Ok(copy) => copy,
        Err(why) => return refused(denied::of_program(&facts, Some(&why))),
    };
    let why = match start(machine, &path)? {
        StartedChild::Granted(child) => {
            let notice = Some(notice_of_copy(&facts, &lost));
            return Ok(LaunchedChild { child, copy: Some(copy), notice });
        }
        StartedChild::Refused(_) => "the system gives no access to it",
        StartedChild::Ended => "the system has ended it before it ran",
    };
    // That the program is hardened is not what the copy fails for.
    refused(denied::of_program(&ProgramFacts { code_flags: None, ..facts }, Some(why)))
}

fn refused<T>(denied: SamplingDenied) -> Result<T, NotLaunched> {
    Err(NotLaunched::Refused(denied))
}

/// Starts a program. If it may not be sampled, ends it.
fn start<M: LaunchCalls>(machine: &mut M, program: &Path) -> Result<StartedChild<M::Child>, NotLaunched> {
    let child = machine.spawn(program).map_err(NotLaunched::Exec)?;
    Ok(if machine.may_sample(&child) {
        StartedChild::Granted(child)
    } else if machine.has_ended(&child) {
        StartedChild::Ended
    } else {
        StartedChild::Refused(machine.facts(&child))
    })
}

/// The sentence about what a copy lacks.
fn notice_of_copy(facts: &ProgramFacts, lost: &[String]) -> String {
    let (hardened, advice) = if facts.is_hardened() {
        (", the copy has no hardened runtime", "")
    } else {
        ("", " (after `nyquist setup`, no copy is needed)")
    };
    let lost = match lost {
        [] => String::new(),
        [only] => format!(", and it lacks the entitlement {only}, which only the developer can give"),
        [first, others @ ..] => format!(
            ", and it lacks the entitlement {first} and {} more, which only the developer can give",
            others.len()
        ),
    };
    format!(
        "a signed copy of the program in another folder is recorded, because the program itself may not be sampled: libraries, files and Info.plist beside the program are not found from there{hardened}{lost}{advice}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    const COPY: &str = "/private/tmp/copy/app";
    const RUNTIME: u32 = 0x1_0000;

    /// A system of which each answer is chosen.
    #[derive(Default)]
    struct SimulatedLaunch {
        /// The paths whose processes may be sampled.
        granted: Vec<&'static str>,
        /// The error of starting anything.
        exec_error: Option<io::ErrorKind>,
        code_flags: u32,
        /// The program that runs instead of the one that is started: that of a script.
        interpreter: Option<&'static str>,
        signing_error: Option<&'static str>,
        /// The mode of the program's file.
        mode: Option<u32>,
        /// The paths whose processes the system ends.
        ended: Vec<&'static str>,
        /// The entitlements that a copy has not.
        lost: Vec<&'static str>,
        /// How many processes wait, and what was done.
        waiting: Rc<Cell<usize>>,
        done: Vec<String>,
    }

    /// A process that waits.
    #[derive(Debug)]
    struct SimulatedChild {
        program: PathBuf,
        waiting: Rc<Cell<usize>>,
    }

    impl Drop for SimulatedChild {
        fn drop(&mut self) {
            self.waiting.set(self.waiting.get() - 1);
        }
    }

    impl LaunchCalls for SimulatedLaunch {
        type Child = SimulatedChild;
        type Copy = ();

        fn spawn(&mut self, program: &Path) -> io::Result<SimulatedChild> {
            self.done.push(format!("start {}", program.display()));
            if let Some(error) = self.exec_error {
                return Err(error.into());
            }
            self.waiting.set(self.waiting.get() + 1);
            Ok(SimulatedChild { program: program.to_owned(), waiting: Rc::clone(&self.waiting) })
        }

        fn may_sample(&mut self, child: &SimulatedChild) -> bool {
            self.granted.iter().any(|path| child.program == Path::new(path))
        }

        fn has_ended(&mut self, child: &SimulatedChild) -> bool {
            self.ended.iter().any(|path| child.program == Path::new(path))
        }

        fn facts(&mut self, child: &SimulatedChild) -> ProgramFacts {
            let path = self.interpreter.map_or_else(|| child.program.display().to_string(), str::to_owned);
            ProgramFacts { path: Some(path), code_flags: Some(self.code_flags), mode: None }
        }

        fn signed_copy(&mut self, program: &Path) -> Result<SignedCopy<()>, String> {
            self.done.push(format!("sign {}", program.display()));
            if let Some(why) = self.signing_error {
                return Err(why.to_owned());
            }
            let lost = self.lost.iter().map(|name| (*name).to_owned()).collect();
            Ok(SignedCopy { path: COPY.into(), copy: (), lost })
        }

        fn mode(&mut self, _: &Path) -> Option<u32> {
            self.mode
        }

        fn is_same(&mut self, path: &str, program: &Path) -> bool {
            Path::new(path) == program
        }
    }

    fn denied(machine: &mut SimulatedLaunch, program: &str) -> String {
        let result = launch(machine, Path::new(program));
        let Err(NotLaunched::Refused(SamplingDenied::Refused { reason, .. })) = result else {
            panic!("{result:?}")
        };
        assert_eq!(machine.waiting.get(), 0, "a process that is not recorded is ended");
        reason
    }

    #[test]
    fn a_port_that_is_granted_at_once_needs_no_copy() {
        let mut machine = SimulatedLaunch { granted: vec!["/home/app"], ..SimulatedLaunch::default() };
        let launched = launch(&mut machine, Path::new("/home/app")).unwrap();
        assert_eq!((launched.copy, launched.notice), (None, None));
        assert_eq!(machine.done, ["start /home/app"]);
    }

    #[test]
    fn a_copy_is_recorded_if_the_program_is_refused() {
        let mut machine =
            SimulatedLaunch { granted: vec![COPY], code_flags: RUNTIME, ..SimulatedLaunch::default() };
        let launched = launch(&mut machine, Path::new("/home/app")).unwrap();
        assert_eq!((launched.child.program.to_str(), launched.copy), (Some(COPY), Some(())));
        assert_eq!(machine.done, ["start /home/app", "sign /home/app", &format!("start {COPY}")]);
        assert_eq!(machine.waiting.get(), 1, "the first process was ended");
    }

    #[test]
    fn programs_of_the_system_are_not_copied() {
        let mut machine = SimulatedLaunch { granted: vec![COPY], ..SimulatedLaunch::default() };
        let reason = denied(&mut machine, "/bin/ls");
        assert!(reason.contains("SIP") && reason.contains("/bin/ls"), "{reason}");
        assert_eq!(machine.done.len(), 1);
    }

    #[test]
    fn a_script_names_the_systems_interpreter() {
        let mut machine = SimulatedLaunch { interpreter: Some("/bin/sh"), ..SimulatedLaunch::default() };
        let reason = denied(&mut machine, "/home/script");
        assert!(reason.contains("/bin/sh"), "{reason}");
        machine.interpreter = Some("/opt/python");
        assert!(denied(&mut machine, "/home/script").contains("/opt/python"));
        assert!(machine.done.iter().all(|done| !done.starts_with("sign")));
    }

    #[test]
    fn an_unsignable_hardened_program_is_named() {
        let mut machine = SimulatedLaunch {
            code_flags: RUNTIME,
            signing_error: Some("codesign cannot be run"),
            ..SimulatedLaunch::default()
        };
        let reason = denied(&mut machine, "/home/app");
        assert!(reason.contains("hardened") && reason.ends_with("codesign cannot be run"), "{reason}");
    }

    #[test]
    fn a_refused_copy_leads_to_setup() {
        let mut machine = SimulatedLaunch { code_flags: RUNTIME, ..SimulatedLaunch::default() };
        let result = launch(&mut machine, Path::new("/home/app"));
        let Err(NotLaunched::Refused(SamplingDenied::Refused { advice, .. })) = result else {
            panic!("{result:?}")
        };
        assert!(advice.unwrap().contains("nyquist setup"));
        assert_eq!(machine.waiting.get(), 0);
    }

    #[test]
    fn the_notice_says_what_a_copy_lacks() {
        let notice = |code_flags, lost: &[&'static str]| {
            let mut machine =
                SimulatedLaunch { granted: vec![COPY], code_flags, ..SimulatedLaunch::default() };
            machine.lost = lost.to_vec();
            launch(&mut machine, Path::new("/home/app")).unwrap().notice.unwrap()
        };
        let plain = notice(0, &[]);
        assert!(plain.contains("libraries, files and Info.plist") && !plain.contains("hardened"), "{plain}");
        assert!(plain.contains("nyquist setup"), "{plain}");
        let hardened = notice(RUNTIME, &[]);
        assert!(hardened.contains("no hardened runtime") && !hardened.contains("setup"), "{hardened}");
        assert!(notice(0, &["a.b"]).contains("lacks the entitlement a.b, which"));
        assert!(notice(0, &["a.b", "c", "d"]).contains("a.b and 2 more, which"));
    }

    #[test]
    fn setuid_programs_are_never_copied() {
        for mode in [0o4755, 0o2755] {
            let mut machine =
                SimulatedLaunch { mode: Some(mode), granted: vec![COPY], ..SimulatedLaunch::default() };
            let reason = denied(&mut machine, "/home/app");
            assert!(reason.contains("setuid") && reason.contains("/home/app"), "{reason}");
            assert_eq!(machine.done, ["start /home/app"]);
        }
    }

    #[test]
    fn no_copy_is_made_of_a_program_that_was_killed() {
        let mut machine =
            SimulatedLaunch { ended: vec!["/home/app"], granted: vec![COPY], ..SimulatedLaunch::default() };
        let reason = denied(&mut machine, "/home/app");
        assert!(reason.contains("ended it before it ran"), "{reason}");
        assert_eq!(machine.done, ["start /home/app"]);
    }

    #[test]
    fn a_copy_that_the_system_ends_is_reported() {
        let mut machine = SimulatedLaunch { ended: vec![COPY], ..SimulatedLaunch::default() };
        let reason = denied(&mut machine, "/home/app");
        assert!(reason.ends_with("because the system has ended it before it ran"), "{reason}");
    }

    #[test]
    fn what_cannot_be_executed_is_passed_on() {
        for kind in [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied] {
            let mut machine = SimulatedLaunch { exec_error: Some(kind), ..SimulatedLaunch::default() };
            let result = launch(&mut machine, Path::new("/home/app"));
            assert!(matches!(result, Err(NotLaunched::Exec(error)) if error.kind() == kind));
        }
    }
}
