//! The line for PowerShell that runs this very command as an administrator.

use std::ffi::OsString;
use std::path::Path;

/// The line that runs a program with these arguments as an administrator, in a folder. `None` if one of them cannot be
/// written in a line: it is no Unicode, or has control characters.
pub(crate) fn powershell_line(program: &Path, arguments: &[OsString], folder: &Path) -> Option<String> {
    let arguments = arguments.iter().map(|argument| Some(quoted_argument(plain(argument.to_str()?)?)));
    let arguments = arguments.collect::<Option<Vec<_>>>()?.join(" ");
    let [program, folder] = [program, folder].map(|path| plain(path.to_str()?).map(literal));
    let (program, folder) = (program?, folder?);
    let line = format!("Start-Process -Verb RunAs -FilePath {program} -WorkingDirectory {folder}");
    if arguments.is_empty() {
        return Some(line);
    }
    Some(format!("{line} -ArgumentList {}", literal(&arguments)))
}

/// The text, if a terminal and a line take it as it is.
fn plain(text: &str) -> Option<&str> {
    let is_bad = |it: char| {
        it.is_control()
            || matches!(it, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    (!text.contains(is_bad)).then_some(text)
}

/// A text for PowerShell, in which nothing is replaced. It takes the typographic quotes for quotes, too.
fn literal(text: &str) -> String {
    let mut quoted = String::from("'");
    for character in text.chars() {
        if matches!(character, '\'' | '\u{2018}'..='\u{201b}') {
            quoted.push(character);
        }
        quoted.push(character);
    }
    quoted + "'"
}

/// An argument in a command line of Windows, as programs divide it (`CommandLineToArgvW`): backslashes count double
/// before a quote, and as they are otherwise.
fn quoted_argument(argument: &str) -> String {
    if !argument.is_empty() && !argument.contains([' ', '\t', '"']) {
        return argument.to_owned();
    }
    let mut quoted = String::from("\"");
    let mut backslashes = 0;
    for character in argument.chars() {
        match character {
            '\\' => backslashes += 1,
            '"' => {
                quoted.extend(std::iter::repeat_n('\\', backslashes + 1));
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        quoted.push(character);
    }
    quoted.extend(std::iter::repeat_n('\\', backslashes));
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(arguments: &[&str]) -> Option<String> {
        let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
        powershell_line(Path::new(r"C:\Program Files\nyquist.exe"), &arguments, Path::new(r"C:\it's"))
    }

    /// The arguments of a command line, by the documented rules of `CommandLineToArgvW`.
    fn divided(line: &str) -> Vec<String> {
        let (mut all, mut current, mut is_quoted, mut is_begun) = (Vec::new(), String::new(), false, false);
        let characters: Vec<char> = line.chars().collect();
        let mut at = 0;
        while at < characters.len() {
            let backslashes = characters[at..].iter().take_while(|it| **it == '\\').count();
            at += backslashes;
            match characters.get(at) {
                Some('"') => {
                    current.extend(std::iter::repeat_n('\\', backslashes / 2));
                    if backslashes % 2 == 1 {
                        current.push('"');
                    } else {
                        is_quoted = !is_quoted;
                    }
                    is_begun = true;
                }
                Some(&character) => {
                    current.extend(std::iter::repeat_n('\\', backslashes));
                    if matches!(character, ' ' | '\t') && !is_quoted {
                        if is_begun || !current.is_empty() {
                            all.push(std::mem::take(&mut current));
                        }
                        is_begun = false;
                    } else {
                        current.push(character);
                    }
                }
                None => current.extend(std::iter::repeat_n('\\', backslashes)),
            }
            at += 1;
        }
        if is_begun || !current.is_empty() {
            all.push(current);
        }
        all
    }

    /// What PowerShell makes of a text between single quotes, and what is behind it.
    fn of_literal(text: &str) -> (String, &str) {
        let is_quote = |it: char| matches!(it, '\'' | '\u{2018}'..='\u{201b}');
        let inner = text.strip_prefix('\'').unwrap();
        let (mut found, mut rest) = (String::new(), inner);
        loop {
            let at = rest.find(is_quote).unwrap();
            found.push_str(&rest[..at]);
            let mut behind = rest[at..].chars();
            let quote = behind.next().unwrap();
            let after = behind.as_str();
            match behind.next().filter(|it| is_quote(*it)) {
                Some(_) => {
                    found.push(quote);
                    rest = behind.as_str();
                }
                None => return (found, after),
            }
        }
    }

    #[test]
    fn a_line_can_be_pasted() {
        assert_eq!(
            line(&["record", "-a", "-o", r"my profiles\", "--name", "it's"]).unwrap(),
            r#"Start-Process -Verb RunAs -FilePath 'C:\Program Files\nyquist.exe' -WorkingDirectory 'C:\it''s' -ArgumentList 'record -a -o "my profiles\\" --name it''s'"#
        );
        assert!(line(&[]).unwrap().ends_with("-WorkingDirectory 'C:\\it''s'"));
    }

    #[test]
    fn each_argument_arrives_as_it_was() {
        let arguments = [
            "record",
            "",
            "a b",
            r#"say "x""#,
            r"C:\",
            r"C:\a b\",
            r"\",
            r#"\\" \"#,
            "$env:X",
            "`n;|&",
            "\u{2019}; calc \u{2018}",
            "''",
            "--",
            "%PATH%",
            "\u{e4}",
        ];
        let line = line(&arguments).unwrap();
        let (_, list) = line.split_once(" -ArgumentList ").unwrap();
        let (command_line, rest) = of_literal(list);
        assert_eq!((divided(&command_line), rest), (arguments.map(str::to_owned).to_vec(), ""));
    }

    #[test]
    fn what_cannot_be_written_in_a_line_has_none() {
        for argument in ["a\nb", "\x1b[2J", "\u{202e}exe", "a\u{2028}b", "\t"] {
            assert_eq!(line(&["record", argument]), None, "{argument:?}");
        }
    }
}
