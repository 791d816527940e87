//! Commands in a form that can be pasted into a shell.

use std::ffi::OsStr;
use std::process::Command;

/// The command's variables, program and arguments in one line.
pub(super) fn line(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), quoted(value?))));
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(quoted);
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

/// A word, quoted if a shell would change it.
pub(crate) fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_they_must_be() {
        let check = |word: &str, expected: &str| assert_eq!(quoted(word.as_ref()), expected);
        check("--bin=a/b-c.d", "--bin=a/b-c.d");
        check("", "''");
        check("a b", "'a b'");
        check("it's", r"'it'\''s'");
        check("profile.release.debug=\"limited\"", "'profile.release.debug=\"limited\"'");
    }

    #[test]
    fn a_line_has_the_variables_first() {
        let mut command = Command::new("cargo");
        command.arg("run").env("RUSTFLAGS", "-C a -C b");
        assert_eq!(line(&command), "RUSTFLAGS='-C a -C b' cargo run");
    }
}
