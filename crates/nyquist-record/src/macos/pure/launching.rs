//! The steps by which a command becomes a process that waits and may be sampled.
//!
//! The system gives the port of the process's task, or refuses. If it refuses, a copy of the program is signed
//! so that it allows debuggers (`com.apple.security.get-task-allow`), and the copy is started instead.

use std::io;
use std::path::{Path, PathBuf};

use super::refusal::{self, Facts};
use crate::suspend::system::Refusal;

/// The calls of the system that launching needs.
pub(crate) trait Machine {
    /// A process that waits for its start.
    type Child;
    /// A copy of a program, which is removed when this is dropped.
    type Copy;

    /// Starts a program, which waits.
    fn spawn(&mut self, program: &Path) -> io::Result<Self::Child>;
    /// Whether the system gives the port of a process's task.
    fn may_sample(&mut self, child: &Self::Child) -> bool;
    /// What is known of a process's program.
    fn facts(&mut self, child: &Self::Child) -> Facts;
    /// Ends a process that has not run.
    fn end(&mut self, child: Self::Child);
    /// Makes a copy of a program that allows debuggers. The error says why that is not possible.
    fn signed_copy(&mut self, program: &Path) -> Result<(PathBuf, Self::Copy), String>;
    /// Whether a path leads to the same file as a program's path.
    fn is_same(&mut self, path: &str, program: &Path) -> bool;
}

/// A process that waits for its start, and the copy of the program that it runs, if it is one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Launched<C, K> {
    pub(crate) child: C,
    pub(crate) copy: Option<(PathBuf, K)>,
}

/// Why there is none.
#[derive(Debug)]
pub(crate) enum NotLaunched {
    /// The program cannot be executed.
    Exec(io::Error),
    /// It may not be sampled.
    Refused(Refusal),
}

/// Launches a program.
pub(crate) fn launch<M: Machine>(
    machine: &mut M,
    program: &Path,
) -> Result<Launched<M::Child, M::Copy>, NotLaunched> {
    let facts = match start(machine, program)? {
        Ok(child) => return Ok(Launched { child, copy: None }),
        Err(facts) => facts,
    };
    // A copy of a program of the system would not be what the user has asked for. A script is run by another
    // program, so that a copy of the script allows nothing.
    let is_it = facts.path.as_deref().is_none_or(|path| machine.is_same(path, program));
    if facts.is_protected() || !is_it {
        return Err(NotLaunched::Refused(refusal::of_program(&facts, None)));
    }
    let (path, copy) = match machine.signed_copy(program) {
        Ok(copy) => copy,
        Err(why) => return Err(NotLaunched::Refused(refusal::of_program(&facts, Some(&why)))),
    };
    match start(machine, &path)? {
        Ok(child) => Ok(Launched { child, copy: Some((path, copy)) }),
        Err(_) => Err(NotLaunched::Refused(refusal::of_program(
            &Facts { code_flags: None, ..facts },
            Some("the system gives no access to it"),
        ))),
    }
}

/// Starts a program. If it may not be sampled, ends it, and returns what is known of it.
fn start<M: Machine>(machine: &mut M, program: &Path) -> Result<Result<M::Child, Facts>, NotLaunched> {
    let child = machine.spawn(program).map_err(NotLaunched::Exec)?;
    if machine.may_sample(&child) {
        return Ok(Ok(child));
    }
    let facts = machine.facts(&child);
    machine.end(child);
    Ok(Err(facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: &str = "/private/tmp/copy/app";
    const RUNTIME: u32 = 0x1_0000;

    /// A system of which each answer is chosen.
    #[derive(Default)]
    struct Simulated {
        /// The paths whose processes may be sampled.
        granted: Vec<&'static str>,
        /// The error of starting anything.
        exec_error: Option<io::ErrorKind>,
        code_flags: u32,
        /// The program that runs instead of the one that is started: that of a script.
        interpreter: Option<&'static str>,
        signing_error: Option<&'static str>,
        /// How many processes wait, and what was done.
        waiting: usize,
        done: Vec<String>,
    }

    impl Machine for Simulated {
        type Child = PathBuf;
        type Copy = ();

        fn spawn(&mut self, program: &Path) -> io::Result<PathBuf> {
            self.done.push(format!("start {}", program.display()));
            if let Some(error) = self.exec_error {
                return Err(error.into());
            }
            self.waiting += 1;
            Ok(program.to_owned())
        }

        fn may_sample(&mut self, child: &PathBuf) -> bool {
            self.granted.iter().any(|path| child == Path::new(path))
        }

        fn facts(&mut self, child: &PathBuf) -> Facts {
            let path = self.interpreter.map_or_else(|| child.display().to_string(), str::to_owned);
            Facts { path: Some(path), code_flags: Some(self.code_flags) }
        }

        fn end(&mut self, _: PathBuf) {
            self.waiting -= 1;
        }

        fn signed_copy(&mut self, program: &Path) -> Result<(PathBuf, ()), String> {
            self.done.push(format!("sign {}", program.display()));
            self.signing_error.map_or_else(|| Ok((COPY.into(), ())), |why| Err(why.to_owned()))
        }

        fn is_same(&mut self, path: &str, program: &Path) -> bool {
            Path::new(path) == program
        }
    }

    fn refusal(machine: &mut Simulated, program: &str) -> String {
        let result = launch(machine, Path::new(program));
        let Err(NotLaunched::Refused(Refusal::Refused { reason, .. })) = result else { panic!("{result:?}") };
        assert_eq!(machine.waiting, 0, "a process that is not recorded is ended");
        reason
    }

    #[test]
    fn a_port_that_is_granted_at_once_needs_no_copy() {
        let mut machine = Simulated { granted: vec!["/home/app"], ..Simulated::default() };
        let launched = launch(&mut machine, Path::new("/home/app")).unwrap();
        assert_eq!(launched, Launched { child: "/home/app".into(), copy: None });
        assert_eq!(machine.done, ["start /home/app"]);
    }

    #[test]
    fn a_copy_is_recorded_if_the_program_is_refused() {
        let mut machine = Simulated { granted: vec![COPY], code_flags: RUNTIME, ..Simulated::default() };
        let launched = launch(&mut machine, Path::new("/home/app")).unwrap();
        assert_eq!(launched, Launched { child: COPY.into(), copy: Some((COPY.into(), ())) });
        assert_eq!(machine.done, ["start /home/app", "sign /home/app", &format!("start {COPY}")]);
        assert_eq!(machine.waiting, 1, "the first process was ended");
    }

    #[test]
    fn programs_of_the_system_are_not_copied() {
        let mut machine = Simulated { granted: vec![COPY], ..Simulated::default() };
        let reason = refusal(&mut machine, "/bin/ls");
        assert!(reason.contains("SIP") && reason.contains("/bin/ls"), "{reason}");
        assert_eq!(machine.done.len(), 1);
    }

    #[test]
    fn a_script_names_the_systems_interpreter() {
        let mut machine = Simulated { interpreter: Some("/bin/sh"), ..Simulated::default() };
        let reason = refusal(&mut machine, "/home/script");
        assert!(reason.contains("/bin/sh"), "{reason}");
        machine.interpreter = Some("/opt/python");
        assert!(refusal(&mut machine, "/home/script").contains("/opt/python"));
        assert!(machine.done.iter().all(|done| !done.starts_with("sign")));
    }

    #[test]
    fn an_unsignable_hardened_program_is_named() {
        let mut machine = Simulated {
            code_flags: RUNTIME,
            signing_error: Some("codesign cannot be run"),
            ..Simulated::default()
        };
        let reason = refusal(&mut machine, "/home/app");
        assert!(reason.contains("hardened") && reason.ends_with("codesign cannot be run"), "{reason}");
    }

    #[test]
    fn a_refused_copy_leads_to_setup() {
        let mut machine = Simulated { code_flags: RUNTIME, ..Simulated::default() };
        let result = launch(&mut machine, Path::new("/home/app"));
        let Err(NotLaunched::Refused(Refusal::Refused { advice, .. })) = result else { panic!("{result:?}") };
        assert!(advice.unwrap().contains("nyquist setup"));
        assert_eq!(machine.waiting, 0);
    }

    #[test]
    fn what_cannot_be_executed_is_passed_on() {
        for kind in [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied] {
            let mut machine = Simulated { exec_error: Some(kind), ..Simulated::default() };
            let result = launch(&mut machine, Path::new("/home/app"));
            assert!(matches!(result, Err(NotLaunched::Exec(error)) if error.kind() == kind));
        }
    }
}
