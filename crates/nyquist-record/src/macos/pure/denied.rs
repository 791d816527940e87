//! Why the system does not let a process be sampled, and what helps.

use crate::suspend::system::SamplingDenied;

/// The kernel's flags of signed code (`sys/codesign.h` of the system's published source): `CS_GET_TASK_ALLOW`,
/// `CS_RUNTIME`, `CS_PLATFORM_BINARY`.
const GET_TASK_ALLOW: u32 = 0x4;
const RUNTIME: u32 = 0x1_0000;
const PLATFORM: u32 = 0x400_0000;

/// The bits of a file's mode by which its program gets the rights of the file's owner or group (`S_ISUID`,
/// `S_ISGID`).
const SETUID_OR_SETGID: u32 = 0o6000;

/// The folders whose programs System Integrity Protection keeps from debuggers, and those below them that it
/// does not.
const PROTECTED: [&str; 4] = ["/System/", "/usr/", "/bin/", "/sbin/"];
const UNPROTECTED: [&str; 2] = ["/usr/local/", "/System/Volumes/Data/"];

/// What is known of a program that may not be sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgramFacts {
    /// The path of its file.
    pub(crate) path: Option<String>,
    /// The kernel's flags of its code.
    pub(crate) code_flags: Option<u32>,
    /// The mode of its file.
    pub(crate) mode: Option<u32>,
}

impl ProgramFacts {
    /// Whether it belongs to the system (SIP).
    pub(crate) fn is_protected(&self) -> bool {
        self.has(PLATFORM) || self.path.as_deref().is_some_and(is_protected_path)
    }

    /// Whether it was signed so that no debugger may look at it (hardened runtime).
    pub(crate) fn is_hardened(&self) -> bool {
        self.has(RUNTIME) && !self.has(GET_TASK_ALLOW)
    }

    /// Whether it runs with the rights of its file's owner or group.
    pub(crate) fn changes_rights(&self) -> bool {
        self.mode.is_some_and(|mode| mode & SETUID_OR_SETGID != 0)
    }

    fn has(&self, flag: u32) -> bool {
        self.code_flags.is_some_and(|flags| flags & flag != 0)
    }

    /// The name for messages.
    fn shown(&self) -> &str {
        self.path.as_deref().unwrap_or("the program")
    }
}

/// Whether System Integrity Protection covers the programs at a path.
pub(crate) fn is_protected_path(path: &str) -> bool {
    let is_below = |folder: &&str| path.starts_with(folder);
    PROTECTED.iter().any(is_below) && !UNPROTECTED.iter().any(is_below)
}

/// The refusal of a process whose task port was not given.
pub(crate) fn of_process(pid: u32, facts: &ProgramFacts) -> SamplingDenied {
    refused(&format!("process {pid}"), facts)
}

/// The refusal of a program that was to be launched. `copying` says why no copy could be recorded instead.
pub(crate) fn of_program(facts: &ProgramFacts, copying: Option<&str>) -> SamplingDenied {
    let mut denied = refused("the program", facts);
    if let (SamplingDenied::Refused { reason, .. }, Some(why)) = (&mut denied, copying) {
        reason.push_str(": a copy of it that allows that cannot be recorded either, because ");
        reason.push_str(why);
    }
    denied
}

fn refused(what: &str, facts: &ProgramFacts) -> SamplingDenied {
    let shown = facts.shown();
    let (reason, advice) = if facts.is_protected() {
        (
            format!("{what} may not be sampled: System Integrity Protection (SIP) protects {shown}"),
            "copy the program to a folder of your own and record the copy, or record a build of your own",
        )
    } else if facts.changes_rights() {
        (
            format!(
                "{what} may not be sampled: {shown} runs with the rights of its owner or group (setuid), which a copy that allows sampling would not have"
            ),
            "sudo nyquist record COMMAND",
        )
    } else if facts.is_hardened() {
        (
            format!(
                "{what} may not be sampled: {shown} is signed with the hardened runtime and without the entitlement com.apple.security.get-task-allow"
            ),
            "record a build without the hardened runtime, or sign it again: codesign -s - -f PROGRAM",
        )
    } else {
        (
            format!("{what} may not be sampled: the system gives nyquist no access to {shown}"),
            "`nyquist setup` signs nyquist so that it may sample your programs; sudo helps with those of other users",
        )
    };
    SamplingDenied::Refused { reason, advice: Some(advice.to_owned()) }
}

/// The refusal of a program whose process the system has ended before it ran.
pub(crate) fn of_ended(program: &str) -> SamplingDenied {
    SamplingDenied::Refused {
        reason: "the system has ended it before it ran, as it does with a signature that is not valid"
            .to_owned(),
        advice: Some(format!("codesign --verify --verbose {program}")),
    }
}

/// The refusal of a process whose code is translated, or has 32 bits.
pub(crate) fn of_other_code(pid: u32, is_translated: bool) -> SamplingDenied {
    let kind = if is_translated { "runs under Rosetta" } else { "is a 32-bit program" };
    SamplingDenied::Refused {
        reason: format!("process {pid} {kind}, and only native 64-bit code is sampled"),
        advice: Some("record a build for this machine's processor".to_owned()),
    }
}

/// The refusal of everything, because nyquist itself is translated and does not see other programs as they are.
pub(crate) fn of_translated_nyquist() -> SamplingDenied {
    SamplingDenied::Refused {
        reason: "this nyquist is for Intel processors, and runs under Rosetta".to_owned(),
        advice: Some("use a nyquist for this machine's processor".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(path: &str, code_flags: u32) -> ProgramFacts {
        ProgramFacts { path: Some(path.to_owned()), code_flags: Some(code_flags), mode: Some(0o755) }
    }

    fn texts(denied: SamplingDenied) -> (String, String) {
        match denied {
            SamplingDenied::Refused { reason, advice } => (reason, advice.unwrap_or_default()),
            SamplingDenied::Gone => panic!("gone"),
        }
    }

    #[test]
    fn programs_of_the_system_are_in_its_folders() {
        for path in ["/bin/ls", "/sbin/ping", "/usr/bin/env", "/System/Applications/Mail.app/x"] {
            assert!(is_protected_path(path), "{path}");
        }
        for path in ["/usr/local/bin/x", "/opt/homebrew/bin/x", "/System/Volumes/Data/x", "/binary", "x"] {
            assert!(!is_protected_path(path), "{path}");
        }
    }

    #[test]
    fn each_cause_has_its_way_on() {
        let (reason, advice) = texts(of_process(7, &facts("/bin/ls", 0)));
        assert!(reason.contains("process 7") && reason.contains("SIP") && advice.contains("copy"));
        let (reason, _) = texts(of_process(7, &facts("/opt/x", PLATFORM)));
        assert!(reason.contains("SIP"), "{reason}");
        let (reason, advice) = texts(of_process(7, &facts("/Applications/x", RUNTIME)));
        assert!(reason.contains("hardened runtime") && advice.contains("codesign"));
        let (reason, advice) = texts(of_process(7, &facts("/Users/x", RUNTIME | GET_TASK_ALLOW)));
        assert!(reason.contains("no access") && advice.contains("nyquist setup") && advice.contains("sudo"));
        let (reason, _) = texts(of_program(&ProgramFacts::default(), Some("codesign is not installed")));
        assert!(reason.ends_with("because codesign is not installed"), "{reason}");
        let setuid = ProgramFacts { mode: Some(0o4755), ..facts("/opt/x", RUNTIME) };
        let (reason, advice) = texts(of_process(7, &setuid));
        assert!(reason.contains("setuid") && advice.contains("sudo"), "{reason}");
        let (reason, advice) = texts(of_ended("/opt/x"));
        assert!(reason.contains("before it ran") && advice.contains("codesign --verify"));
        let (reason, _) = texts(of_other_code(7, true));
        assert!(reason.contains("Rosetta"));
        assert!(texts(of_translated_nyquist()).0.contains("Rosetta"));
    }
}
