//! The command that is launched: its program, its arguments and its environment.

use std::ffi::{OsStr, OsString};

#[cfg(target_os = "linux")]
use crate::linux::Credentials;

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
    #[cfg(target_os = "linux")]
    pub run_as: Option<Credentials>,
}

impl Command {
    /// Parses a command line: leading `VAR=value` words are the environment, the next is the program, the
    /// rest its arguments. `None` if there is no program.
    pub fn from_words(argv: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut command = Self::default();
        let mut argv = argv.into_iter();
        command.program = loop {
            let word = argv.next()?;
            match assignment(&word) {
                Some(variable) => command.env.push(variable),
                None => break word,
            }
        };
        command.args.extend(argv);
        Some(command)
    }
}

/// The name and the value of a word that sets a variable, as a shell parses it.
fn assignment(word: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = word.as_encoded_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    let name = str::from_utf8(&bytes[..at]).ok()?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let valid = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit()) && name.bytes().all(is_name);
    if valid { Some((name.into(), value(word, at + 1)?)) } else { None }
}

/// The part of a word from a byte on, which follows an ASCII character.
#[cfg(unix)]
fn value(word: &OsStr, from: usize) -> Option<OsString> {
    use std::os::unix::ffi::OsStrExt as _;
    word.as_bytes().get(from..).map(|bytes| OsStr::from_bytes(bytes).to_owned())
}

/// The same. `None` if the word is not Unicode.
#[cfg(not(unix))]
fn value(word: &OsStr, from: usize) -> Option<OsString> {
    word.to_str()?.get(from..).map(OsString::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Option<Command> {
        Command::from_words(line.split(' ').map(OsString::from))
    }

    #[test]
    fn leading_assignments_are_the_environment() {
        let command = argv("A=1 _b2= ./app C=3 x").unwrap();
        let env: Vec<_> =
            command.env.iter().map(|(n, v)| (n.to_str().unwrap(), v.to_str().unwrap())).collect();
        assert_eq!(env, [("A", "1"), ("_b2", "")]);
        assert_eq!(command.program, "./app");
        assert_eq!(command.args, ["C=3", "x"]);
    }

    #[test]
    fn what_is_no_variable_name_is_the_program() {
        for program in ["=x", "1A=2", "a-b=c", "./a=b", r"C:\app.exe"] {
            assert_eq!(argv(&format!("{program} y")).unwrap().program, program);
        }
    }

    #[test]
    fn there_is_no_command_without_a_program() {
        assert_eq!(argv("A=1 B=2"), None);
        assert_eq!(Command::from_words([]), None);
    }

    #[test]
    #[cfg(unix)]
    fn a_value_need_not_be_unicode() {
        use std::os::unix::ffi::OsStringExt as _;
        let command = Command::from_words([OsString::from_vec(b"A=\xff".to_vec()), "app".into()]).unwrap();
        assert_eq!(command.env, [("A".into(), OsString::from_vec(vec![0xff]))]);
    }
}
