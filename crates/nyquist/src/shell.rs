//! Commands in a form that can be pasted into a shell: every command that a message, an answer or a page suggests.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::process::Command;

/// The command's variables, program and arguments in one line.
pub(crate) fn line(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), quoted(value?))));
    let argv = std::iter::once(command.get_program()).chain(command.get_args()).map(quoted);
    variables.chain(argv).collect::<Vec<_>>().join(" ")
}

/// A call of nyquist with these arguments.
pub(crate) fn nyquist<T: AsRef<OsStr>>(argv: impl IntoIterator<Item = T>) -> String {
    argv.into_iter().fold("nyquist".to_owned(), |line, word| line + " " + &quoted(word.as_ref()))
}

/// A word, quoted if a shell would change it, or a terminal.
pub(crate) fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    if word.chars().any(char::is_control) {
        return quoted_with_escapes(&word);
    }
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A word with control characters, as bash, zsh and ksh read it.
fn quoted_with_escapes(word: &str) -> String {
    let mut quoted = "$'".to_owned();
    for letter in word.chars() {
        match letter {
            '\'' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_as_escapes() {
        let check = |word: &str, expected: &str| assert_eq!(quoted(word.as_ref()), expected);
        check("a\nb", r"$'a\012b'");
        check("it's\u{1b}\\", r"$'it\'s\033\\'");
        check("\u{9b}1m", r"$'\302\2331m'");
    }

    #[test]
    fn arguments_of_nyquist_are_quoted() {
        assert_eq!(nyquist(["report", "my profile.json"]), "nyquist report 'my profile.json'");
    }

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
