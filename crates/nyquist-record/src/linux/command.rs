//! How Linux launches the command: the search for its program, its words and its environment.

use std::collections::BTreeMap;
use std::ffi::{CString, NulError, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::command::Command;

/// The search path if PATH is not set (confstr(3), `_CS_PATH`).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

impl Command {
    /// The files to try as the program, in order: as a shell searches for it, with the command's own PATH.
    pub(crate) fn candidates(&self) -> Result<Vec<CString>, NulError> {
        let program = self.program.as_bytes();
        if program.contains(&b'/') {
            return Ok(vec![CString::new(program)?]);
        }
        if program.is_empty() {
            return Ok(Vec::new());
        }
        let path = self.variable("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
        path.as_bytes().split(|byte| *byte == b':').map(|folder| in_folder(folder, program)).collect()
    }

    /// The arguments, with the program's own name first.
    pub(crate) fn arguments(&self) -> Result<Vec<CString>, NulError> {
        [&self.program].into_iter().chain(&self.args).map(|word| CString::new(word.as_bytes())).collect()
    }

    /// The libraries that the loader loads before all others, if there are some.
    pub fn preloaded(&self) -> Option<OsString> {
        self.variable("LD_PRELOAD").filter(|libraries| !libraries.is_empty())
    }

    /// A variable of its environment.
    fn variable(&self, name: &str) -> Option<OsString> {
        let own = self.env.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        own.or_else(|| std::env::var_os(name))
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

/// The path of a program in a folder of PATH; an empty folder is the current one.
fn in_folder(folder: &[u8], program: &[u8]) -> Result<CString, NulError> {
    let folder: &[u8] = if folder.is_empty() { b"." } else { folder };
    CString::new([folder, b"/", program].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt as _;

    fn words(line: &str) -> Option<Command> {
        Command::from_words(line.split(' ').map(OsString::from))
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
