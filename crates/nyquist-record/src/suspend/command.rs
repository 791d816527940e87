//! The command that is launched.

use std::ffi::{OsStr, OsString};

/// A command to launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The program: a path, or a name that is searched in PATH.
    pub program: OsString,
    /// The arguments after the program's own name.
    pub args: Vec<OsString>,
    /// Variables that override those of this process.
    pub env: Vec<(OsString, OsString)>,
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
}

/// The name and the value of a word that sets a variable.
fn assignment(word: &OsStr) -> Option<(OsString, OsString)> {
    let (name, value) = word.to_str()?.split_once('=')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let valid = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit()) && name.bytes().all(is_name);
    valid.then(|| (name.into(), value.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_assignments_are_the_environment() {
        let words = |line: &str| Command::from_words(line.split(' ').map(OsString::from));
        let command = words(r"A=1 _b2= C:\app.exe C=3 x").unwrap();
        assert_eq!(command.env, [("A".into(), "1".into()), ("_b2".into(), OsString::new())]);
        assert_eq!((command.program, command.args), (r"C:\app.exe".into(), vec!["C=3".into(), "x".into()]));
        assert_eq!(words("1A=2 y").unwrap().program, "1A=2");
        assert_eq!(words("A=1"), None);
    }
}
