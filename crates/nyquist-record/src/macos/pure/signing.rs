//! The arguments with which `codesign` signs a program without a certificate ("ad hoc").
//!
//! The signatures have no hardened runtime (`--options runtime`):
//!
//! - With it, the system lets a program load only libraries of the system and of the program's own team, and a
//!   signature without a certificate has no team. A copy would lose all libraries but the system's. It is a condition
//!   of notarization, and no copy is notarized.
//! - The dynamic linker removes the variables `DYLD_…` from the environment of a program that has it, so the
//!   command that nyquist starts would not get those that the user has set.
//! - It protects no right of nyquist: everybody may sign a program of their own with the entitlement of debuggers.
//!   Apple does not state it as a condition of that entitlement ("Debugging Tool Entitlement"). GDB's instructions
//!   sign without it, and samply with it.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::entitlements::{Entitlements, property_list};

/// The entitlements of a program that may look at others. By the second one, variables `DYLD_…` stay in its
/// environment, and so in that of the command that it starts, should the linker restrict it because of the first.
pub const DEBUGGER_ENTITLEMENTS: [&str; 2] =
    ["com.apple.security.cs.debugger", "com.apple.security.cs.allow-dyld-environment-variables"];

/// How the last line ends that `codesign` prints for a file that was never signed.
const NOT_SIGNED: &str = "is not signed at all";

/// What a run of `codesign` has printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodesignOutput {
    pub(crate) has_succeeded: bool,
    pub(crate) output: Vec<u8>,
    pub(crate) errors: String,
}

/// The system's `codesign`, and files for it.
pub(crate) trait Codesign {
    /// Runs it.
    fn run(&mut self, arguments: &[OsString]) -> io::Result<CodesignOutput>;
    /// Writes a temporary file for it. Returns its path.
    fn file(&mut self, text: &str) -> Result<OsString, String>;
}

/// Signs a file so that it may look at other programs. The error is a text for the user.
pub(crate) fn sign_debugger(codesign: &mut impl Codesign, file: &Path) -> Result<(), String> {
    sign(codesign, file, &property_list("", &DEBUGGER_ENTITLEMENTS))
}

/// Signs a copy of a program so that others may look at it. Its other entitlements are kept, if that is
/// possible. Returns the names of those that are not. The error is a text for the user.
pub(crate) fn sign_copy(codesign: &mut impl Codesign, copy: &Path) -> Result<Vec<String>, String> {
    let entitlements = entitlements_of(codesign, copy)?;
    if entitlements.is_sandboxed {
        // Without the entitlement, it would do what its sandbox forbids, and with it, the system would give it
        // another folder for its data.
        return Err("the program runs in a sandbox, which belongs to its own signature".to_owned());
    }
    sign(codesign, copy, &entitlements.of_copy())?;
    Ok(entitlements.lost)
}

fn entitlements_of(codesign: &mut impl Codesign, file: &Path) -> Result<Entitlements, String> {
    // The second form is for macOS 11, which does not know the first.
    let forms: [&[&str]; 2] = [&["-", "--xml"], &[":-"]];
    let mut printed = CodesignOutput::default();
    for form in forms {
        let words = ["--display", "--entitlements"].iter().chain(form).map(OsString::from);
        printed = run(codesign, &words.chain([file.into()]).collect::<Vec<_>>())?;
        if printed.has_succeeded {
            let list = String::from_utf8_lossy(&printed.output);
            return Entitlements::of(&list).ok_or_else(|| "its entitlements cannot be read".to_owned());
        }
        if printed.errors.trim_end().ends_with(NOT_SIGNED) {
            return Ok(Entitlements::default());
        }
    }
    Err(complaint(&printed))
}

fn sign(codesign: &mut impl Codesign, file: &Path, entitlements: &str) -> Result<(), String> {
    let entitlements = codesign.file(entitlements)?;
    // The identifier is that of the file's name otherwise. Given entitlements are all that the signature has.
    let words =
        ["--sign", "-", "--force", "--preserve-metadata=identifier", "--entitlements"].map(OsString::from);
    let words = words.into_iter().chain([entitlements, file.into()]);
    let printed = run(codesign, &words.collect::<Vec<_>>())?;
    if printed.has_succeeded { Ok(()) } else { Err(complaint(&printed)) }
}

fn run(codesign: &mut impl Codesign, arguments: &[OsString]) -> Result<CodesignOutput, String> {
    codesign.run(arguments).map_err(|error| format!("codesign cannot be run: {error}"))
}

fn complaint(printed: &CodesignOutput) -> String {
    format!("codesign says: {}", printed.errors.lines().next_back().unwrap_or("nothing"))
}

#[cfg(test)]
mod tests {
    use super::super::entitlements::GET_TASK_ALLOW;
    use super::*;

    const LIST: &str = "/tmp/list";
    const FILE: &str = "/tmp/copy/app";
    const SIGN: &str =
        "--sign - --force --preserve-metadata=identifier --entitlements /tmp/list /tmp/copy/app";

    /// A `codesign` that answers in this order.
    #[derive(Default)]
    struct SimulatedCodesign {
        answers: Vec<CodesignOutput>,
        commands: Vec<String>,
        files: Vec<String>,
    }

    impl Codesign for SimulatedCodesign {
        fn run(&mut self, arguments: &[OsString]) -> io::Result<CodesignOutput> {
            let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
            self.commands.push(words.join(" "));
            if self.answers.is_empty() {
                Err(io::ErrorKind::NotFound.into())
            } else {
                Ok(self.answers.remove(0))
            }
        }

        fn file(&mut self, text: &str) -> Result<OsString, String> {
            self.files.push(text.to_owned());
            Ok(LIST.into())
        }
    }

    fn printed(output: &str) -> CodesignOutput {
        CodesignOutput { has_succeeded: true, output: output.into(), ..CodesignOutput::default() }
    }

    fn failed(errors: &str) -> CodesignOutput {
        CodesignOutput { errors: errors.to_owned(), ..CodesignOutput::default() }
    }

    fn codesign(answers: &[CodesignOutput]) -> SimulatedCodesign {
        SimulatedCodesign { answers: answers.to_vec(), ..SimulatedCodesign::default() }
    }

    fn sign_it(codesign: &mut SimulatedCodesign) -> Result<Vec<String>, String> {
        sign_copy(codesign, Path::new(FILE))
    }

    #[test]
    fn a_copy_keeps_the_entitlements_of_the_program() {
        let given = property_list("", &["com.apple.security.cs.allow-jit", "com.apple.developer.x"]);
        let mut codesign = codesign(&[printed(&given), printed("")]);
        assert_eq!(sign_it(&mut codesign), Ok(vec!["com.apple.developer.x".to_owned()]));
        assert_eq!(codesign.commands, ["--display --entitlements - --xml /tmp/copy/app", SIGN]);
        assert_eq!(codesign.files, [property_list("", &["com.apple.security.cs.allow-jit", GET_TASK_ALLOW])]);
    }

    #[test]
    fn a_program_without_a_signature_is_signed() {
        let mut codesign =
            codesign(&[failed("/tmp/copy/app: code object is not signed at all\n"), printed("")]);
        assert_eq!(sign_it(&mut codesign), Ok(vec![]));
        assert_eq!(codesign.files, [property_list("", &[GET_TASK_ALLOW])]);
    }

    #[test]
    fn the_former_option_is_tried_second() {
        let mut codesign =
            codesign(&[failed("codesign: unrecognized option `--xml'"), printed(""), printed("")]);
        assert_eq!(sign_it(&mut codesign), Ok(vec![]));
        assert_eq!(codesign.commands[1..], ["--display --entitlements :- /tmp/copy/app", SIGN]);
    }

    #[test]
    fn a_sandboxed_program_is_not_signed() {
        let sandbox = property_list("", &["com.apple.security.app-sandbox"]);
        let mut codesign = codesign(&[printed(&sandbox)]);
        assert!(sign_it(&mut codesign).unwrap_err().contains("sandbox"));
        assert_eq!(codesign.commands.len(), 1);
    }

    #[test]
    fn the_complaint_of_codesign_is_reported() {
        let why = |answers: &[CodesignOutput]| sign_it(&mut codesign(answers)).unwrap_err();
        assert!(why(&[]).starts_with("codesign cannot be run: "));
        assert_eq!(why(&[failed("a"), failed("a\nno such file\n")]), "codesign says: no such file");
        assert_eq!(
            why(&[printed(""), failed("detritus not allowed")]),
            "codesign says: detritus not allowed"
        );
        assert_eq!(why(&[printed("[Dict]")]), "its entitlements cannot be read");
    }

    #[test]
    fn nyquist_has_the_debugger_entitlement() {
        let mut codesign = codesign(&[printed("")]);
        sign_debugger(&mut codesign, Path::new(FILE)).unwrap();
        assert_eq!(codesign.commands, [SIGN], "no hardened runtime");
        let given = "<key>com.apple.security.cs.debugger</key><true/>";
        assert!(codesign.files[0].contains(given) && codesign.files[0].contains("allow-dyld-environment"));
    }
}
