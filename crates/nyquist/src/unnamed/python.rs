//! Functions of Python programs, which are without names unless Python was asked for them: how to get them.

use crate::shell;
use crate::system::launch::Command;
use nyquist_analysis::Function;
use nyquist_profile::Profile;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The function in which Python runs a program's code, and the category of functions that Python names.
const INTERPRETER: &str = "_PyEval_EvalFrameDefault";
const CATEGORY: &str = "Python";

/// The first minor version of Python 3 that writes names for profilers. Older ones accept `-X perf`, and ignore it.
const NAMES_SINCE: u32 = 12;

/// What is said if Python was asked for names, and none are there.
const WROTE_NONE: &str = "it was asked for names but wrote none, as where its `-X perf` does not exist";

/// The longest command that a hint repeats.
const MAX_COMMAND: usize = 200;

/// The command that was recorded, as it was typed. It has no words if running processes were recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TypedCommand<'a> {
    /// The arguments of nyquist before it.
    options: &'a [OsString],
    /// The variables of its environment, the program and its arguments.
    words: &'a [OsString],
}

impl<'a> TypedCommand<'a> {
    /// The command of a call of nyquist with these arguments.
    pub(crate) fn new(argv: &'a [OsString], words: &'a [OsString]) -> Self {
        Self { options: argv.strip_suffix(words).unwrap_or_default(), words }
    }

    /// A call of nyquist that records it in the same way, with more `variables` and with more `options` of its program.
    fn with(self, variables: &[&str], options: &[&str]) -> String {
        let owned = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let record = owned(&["record"]);
        let before = if self.options.starts_with(&record) { self.options } else { &record };
        let (environment, program) = self.words.split_at(self.environment());
        let (program, arguments) = program.split_at(program.len().min(1));
        shell::nyquist([before, &owned(variables), environment, program, &owned(options), arguments].concat())
    }

    /// The number of words that set variables.
    fn environment(self) -> usize {
        let parsed = Command::from_words(self.words.iter().cloned());
        parsed.map_or(0, |command| command.env.len())
    }

    /// Whether its program is called as Python's interpreter is.
    fn is_python(self) -> bool {
        let program = self.words.get(self.environment()).map(Path::new).and_then(Path::file_name);
        let version = program.and_then(OsStr::to_str).and_then(|name| name.strip_prefix("python"));
        version.is_some_and(|rest| rest.chars().all(|letter| letter.is_ascii_digit() || letter == '.'))
    }

    /// Whether it asks Python for names, with its options or by a variable.
    fn asks_for_names(self) -> bool {
        let typed: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        asks_for_names(&typed.join(" "))
    }
}

/// Whether command lines ask Python for names.
fn asks_for_names(command_lines: &str) -> bool {
    ["-X perf", "-Xperf", "PYTHONPERFSUPPORT=1"].iter().any(|word| command_lines.contains(word))
}

/// The time in a Python program's functions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interpreted {
    pub(super) weight: u64,
    /// The minor version of the Python 3 with most of that time; `None` if its file's name does not say it.
    minor: Option<u32>,
    /// Whether Python writes names on this system.
    has_names_here: bool,
}

impl Interpreted {
    /// Finds it; `None` if there is none, or if Python was configured to name its functions.
    pub(super) fn find(profile: &Profile, functions: &[Function<'_>]) -> Option<Self> {
        if profile.categories().iter().any(|known| known.name == CATEGORY) {
            return None;
        }
        let interpreters = functions.iter().filter(|function| function.name == INTERPRETER);
        let hottest = interpreters.max_by_key(|function| function.total.weight)?;
        Some(Self {
            weight: hottest.total.weight,
            minor: hottest.lib.and_then(minor_version),
            has_names_here: cfg!(target_os = "linux"),
        })
    }

    /// How these functions get names, as the end of a sentence about them. `command_lines` are those of
    /// attached processes.
    pub(super) fn advice(self, command: TypedCommand<'_>, command_lines: &str) -> String {
        match self.minor {
            _ if !self.has_names_here => by_other_profiler("Python writes names on Linux alone", command),
            Some(minor) if minor < NAMES_SINCE => {
                by_other_profiler(&format!("Python 3.{minor} writes no names (3.12 and later do)"), command)
            }
            _ if command.asks_for_names() || asks_for_names(command_lines) => WROTE_NONE.to_owned(),
            Some(_) => by_python(command),
            None => "python3 -X perf (3.12 and later) names them".to_owned(),
        }
    }
}

/// Advice for a version that writes names for profilers.
fn by_python(command: TypedCommand<'_>) -> String {
    if command.words.is_empty() {
        return "PYTHONPERFSUPPORT=1 in its environment names them, or in the running program sys.activate_stack_trampoline(\"perf\")".to_owned();
    }
    let python = command.is_python();
    let call =
        if python { command.with(&[], &["-X", "perf"]) } else { command.with(&["PYTHONPERFSUPPORT=1"], &[]) };
    match (call.len() <= MAX_COMMAND, python) {
        (true, _) => format!("`{call}` names them"),
        (false, true) => "python3 -X perf names them".to_owned(),
        (false, false) => "PYTHONPERFSUPPORT=1 before the command names them".to_owned(),
    }
}

/// Advice where Python writes no names for profilers, after the reason.
fn by_other_profiler(reason: &str, command: TypedCommand<'_>) -> String {
    let target = if command.words.is_empty() { "-p PID" } else { "-- COMMAND" };
    format!(
        "{reason}: `py-spy record -f speedscope -o py.speedscope.json {target}` does, for `nyquist load py.speedscope.json`"
    )
}

/// The minor version of Python 3 that the name of its library or program has.
fn minor_version(lib: &str) -> Option<u32> {
    let (_, rest) = lib.split_once("python3.")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The advice for the Python of this file, and these words behind `nyquist`, of which the last `count` are the
    /// command.
    fn advice(lib: &str, argv: &[&str], count: usize) -> String {
        let argv: Vec<_> = argv.iter().map(OsString::from).collect();
        let command = TypedCommand::new(&argv, &argv[argv.len() - count..]);
        let minor = minor_version(lib);
        Interpreted { weight: 1, minor, has_names_here: true }.advice(command, "")
    }

    #[test]
    fn a_launched_python_gets_a_command_to_paste() {
        let argv = ["record", "-o", "my app.json", "python3", "app.py", "a b"];
        let expected = "`nyquist record -o 'my app.json' python3 -X perf app.py 'a b'` names them";
        assert_eq!(advice("libpython3.12.so.1.0", &argv, 3), expected);
        let argv = ["record", "--", "A=1", "/usr/bin/python3.13", "app.py"];
        let expected = "`nyquist record -- A=1 /usr/bin/python3.13 -X perf app.py` names them";
        assert_eq!(advice("python3.13", &argv, 3), expected);
    }

    #[test]
    fn a_script_gets_a_variable() {
        let argv = ["record", "-s", "gunicorn", "app:app"];
        let expected = "`nyquist record -s PYTHONPERFSUPPORT=1 gunicorn app:app` names them";
        assert_eq!(advice("libpython3.14t.so.1.0", &argv, 2), expected);
    }

    #[test]
    fn another_name_of_nyquist_has_other_options() {
        let argv = ["--save-only", "python3", "app.py"];
        let expected = "`nyquist record python3 -X perf app.py` names them";
        assert_eq!(advice("python3.12", &argv, 2), expected);
    }

    #[test]
    fn a_long_command_is_not_repeated() {
        let long = "print()\n".repeat(100);
        let advice = advice("python3.12", &["record", "python3", "-c", &long], 3);
        assert_eq!(advice, "python3 -X perf names them");
    }

    #[test]
    fn a_running_python_gets_what_works_for_it() {
        let advice = advice("python3.12", &["record", "-p", "7"], 0);
        assert!(advice.contains("PYTHONPERFSUPPORT=1 in its environment"), "{advice}");
        assert!(advice.contains("sys.activate_stack_trampoline(\"perf\")"), "{advice}");
    }

    #[test]
    fn an_old_python_gets_another_profiler() {
        for lib in ["python3.8", "libpython3.11.so.1.0"] {
            for argv in [&["record", "python3", "app.py"][..], &["record", "python3", "-X", "perf", "app.py"]]
            {
                let advice = advice(lib, argv, argv.len() - 1);
                assert!(advice.contains("py-spy record") && advice.contains("-- COMMAND"), "{advice}");
                assert!(!advice.contains("-X perf"), "{advice}");
            }
        }
        assert!(advice("python3.9", &["record", "-p", "7"], 0).contains(" -p PID"));
    }

    #[test]
    fn another_system_gets_another_profiler() {
        let python = Interpreted { weight: 1, minor: None, has_names_here: false };
        let advice = python.advice(TypedCommand::default(), "");
        assert!(advice.starts_with("Python writes names on Linux alone: `py-spy record"), "{advice}");
    }

    #[test]
    fn what_was_requested_is_not_advised() {
        let argv = ["record", "PYTHONPERFSUPPORT=1", "gunicorn", "app:app"];
        assert_eq!(advice("python3.12", &argv, 3), WROTE_NONE);
        let argv = ["record", "python3", "-X", "perf", "app.py"];
        assert_eq!(advice("uwsgi", &argv, 4), WROTE_NONE);
    }

    #[test]
    fn an_unknown_version_gets_advice_that_names_it() {
        assert_eq!(advice("uwsgi", &["record", "uwsgi"], 1), "python3 -X perf (3.12 and later) names them");
    }
}
