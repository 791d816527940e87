//! The command that is launched, and the search for its program.

use std::collections::BTreeMap;
use std::ffi::{CString, NulError, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// The search path if PATH is not set (confstr(3), `_CS_PATH`).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A command to launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The program: a path, or a name that is searched in PATH.
    pub program: OsString,
    /// The arguments after the program's own name.
    pub args: Vec<OsString>,
    /// Variables that override those of this process.
    pub env: Vec<(OsString, OsString)>,
    /// The user that the command runs as, if it is another one.
    pub run_as: Option<Credentials>,
}

/// A user with its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The user.
    pub uid: u32,
    /// The user's primary group.
    pub gid: u32,
    /// The supplementary groups.
    pub groups: Vec<u32>,
}

impl Command {
    /// Parses a command line: leading `VAR=value` words are the environment, the next is the program, the
    /// rest its arguments. `None` if there is no program.
    pub fn from_words(words: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut command = Self::default();
        let mut words = words.into_iter();
        command.program = loop {
            let word = words.next()?;
            match assignment(&word) {
                Some(variable) => command.env.push(variable),
                None => break word,
            }
        };
        command.args.extend(words);
        Some(command)
    }

    /// The files to try as the program, in order: as a shell searches for it, with the command's own PATH.
    pub(crate) fn candidates(&self) -> Result<Vec<CString>, NulError> {
        let program = self.program.as_bytes();
        if program.contains(&b'/') {
            return Ok(vec![CString::new(program)?]);
        }
        if program.is_empty() {
            return Ok(Vec::new());
        }
        let own = self.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        let path = own.or_else(|| std::env::var_os("PATH")).unwrap_or_else(|| DEFAULT_PATH.into());
        path.as_bytes().split(|byte| *byte == b':').map(|folder| in_folder(folder, program)).collect()
    }

    /// The arguments, with the program's own name first.
    pub(crate) fn arguments(&self) -> Result<Vec<CString>, NulError> {
        [&self.program].into_iter().chain(&self.args).map(|word| CString::new(word.as_bytes())).collect()
    }

    /// The whole environment, as `NAME=value`.
    pub(crate) fn environment(&self) -> Result<Vec<CString>, NulError> {
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        variables.extend(self.env.iter().cloned());
        let line = |(name, value): (OsString, OsString)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        variables.into_iter().map(line).collect()
    }
}

/// The name and the value of a word that sets a variable, as a shell parses it.
fn assignment(word: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = word.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (&bytes[..at], &bytes[at + 1..]);
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let valid = name.first().is_some_and(|byte| !byte.is_ascii_digit()) && name.iter().all(is_name);
    let own = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    valid.then(|| (own(name), own(value)))
}

/// The path of a program in a folder of PATH; an empty folder is the current one.
fn in_folder(folder: &[u8], program: &[u8]) -> Result<CString, NulError> {
    let folder: &[u8] = if folder.is_empty() { b"." } else { folder };
    CString::new([folder, b"/", program].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Command> {
        Command::from_words(line.split(' ').map(OsString::from))
    }

    #[test]
    fn leading_assignments_are_the_environment() {
        let command = words("A=1 _b2= ./app C=3 x").unwrap();
        let env: Vec<_> =
            command.env.iter().map(|(n, v)| (n.to_str().unwrap(), v.to_str().unwrap())).collect();
        assert_eq!(env, [("A", "1"), ("_b2", "")]);
        assert_eq!(command.program, "./app");
        assert_eq!(command.args, ["C=3", "x"]);
    }

    #[test]
    fn what_is_no_variable_name_is_the_program() {
        for program in ["=x", "1A=2", "a-b=c", "./a=b"] {
            assert_eq!(words(&format!("{program} y")).unwrap().program, program);
        }
    }

    #[test]
    fn there_is_no_command_without_a_program() {
        assert_eq!(words("A=1 B=2"), None);
        assert_eq!(Command::from_words([]), None);
    }

    fn candidates(program: &str, path: &str) -> Vec<String> {
        let env = vec![("PATH".into(), path.into())];
        let command = Command { program: program.into(), env, ..Command::default() };
        command.candidates().unwrap().into_iter().map(|path| path.into_string().unwrap()).collect()
    }

    #[test]
    fn a_name_is_looked_for_in_the_folders_of_path() {
        assert_eq!(candidates("ls", "/bin::rel:"), ["/bin/ls", "./ls", "rel/ls", "./ls"]);
    }

    #[test]
    fn a_path_is_not_looked_for() {
        assert_eq!(candidates("./ls", "/bin"), ["./ls"]);
        assert_eq!(candidates("/x/ls", "/bin"), ["/x/ls"]);
    }

    #[test]
    fn an_empty_name_is_found_nowhere() {
        assert_eq!(candidates("", "/bin"), [""; 0]);
    }

    #[test]
    fn a_later_assignment_wins_and_others_are_kept() {
        let command = words("NYQUIST_TEST=1 NYQUIST_TEST=2 app").unwrap();
        let env = command.environment().unwrap();
        let ours: Vec<_> = env.iter().filter(|line| line.as_bytes().starts_with(b"NYQUIST_TEST=")).collect();
        assert_eq!(ours, [c"NYQUIST_TEST=2"]);
        assert!(env.len() > 1, "the environment of this process is handed on");
    }

    #[test]
    fn a_zero_byte_is_an_error() {
        let command = Command { program: OsString::from_vec(b"a\0b".to_vec()), ..Command::default() };
        assert!(command.candidates().is_err());
        assert!(command.arguments().is_err());
    }
}
