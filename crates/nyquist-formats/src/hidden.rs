//! Escapes characters that are invisible or that change the appearance of other text.
//!
//! Names in a profile come from the author of the program. A control character in one can control a terminal.
//! A character that changes the direction of text or has no width can make a name look like another one. A
//! line separator can forge a line.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character must not be shown unescaped. These are controls (C0, DEL, C1), controls of the direction,
/// and separators of lines and paragraphs. They are also the characters that Unicode calls invisible where they
/// are not supported (`Default_Ignorable_Code_Point`: joiners, fillers, variation selectors, tags). O(1).
pub fn is_hidden(letter: char) -> bool {
    matches!(
        letter,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The text with each hidden character as `\n`, `\x1b` or `\u{202e}`. Existing escapes stay unchanged.
/// O(length).
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_but(text, &[])
}

/// As [`escape`], except for the characters in `kept`, which stay. O(length).
pub fn escape_but<'a>(text: &'a str, retained: &[char]) -> Cow<'a, str> {
    replace(text, |letter| is_hidden(letter) && !retained.contains(&letter), push_escape)
}

/// JSON with each hidden character of its strings as `\u202e`, which is the same JSON. Outside of strings,
/// the only hidden characters are the newlines of the layout. O(length).
pub fn escape_json(json: &str) -> Cow<'_, str> {
    replace(json, |letter| is_hidden(letter) && letter != '\n', push_json_escape)
}

fn replace(text: &str, is_replaced: impl Fn(char) -> bool, push: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.chars().any(&is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut replaced = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_replaced(letter) { push(&mut replaced, letter) } else { replaced.push(letter) }
    }
    Cow::Owned(replaced)
}

fn push_escape(text: &mut String, letter: char) {
    // Writing to a string cannot fail.
    let _ = match letter {
        '\n' => write!(text, "\\n"),
        '\r' => write!(text, "\\r"),
        '\t' => write!(text, "\\t"),
        '\0'..='\u{7f}' => write!(text, "\\x{:02x}", u32::from(letter)),
        _ => write!(text, "\\u{{{:x}}}", u32::from(letter)),
    };
}

fn push_json_escape(text: &mut String, letter: char) {
    for unit in letter.encode_utf16(&mut [0; 2]) {
        let _ = write!(text, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_written_so_that_it_is() {
        let check = |text, expected| assert_eq!(escape(text), expected);
        check("a\u{1b}[31mb", "a\\x1b[31mb");
        check("\n\r\t\0\u{7f}\u{85}\u{9b}", "\\n\\r\\t\\x00\\x7f\\u{85}\\u{9b}");
        check("\u{202e}\u{2066}\u{2028}\u{61c}", "\\u{202e}\\u{2066}\\u{2028}\\u{61c}");
        check("\u{200b}\u{feff}\u{ad}\u{e0041}", "\\u{200b}\\u{feff}\\u{ad}\\u{e0041}");
        check("Vec<T>::größe 漢字 C:\\x", "Vec<T>::größe 漢字 C:\\x");
        assert!(matches!(escape("main"), Cow::Borrowed("main")));
    }

    #[test]
    fn escaping_twice_changes_nothing_more() {
        let all: String = ('\0'..=char::MAX).collect();
        let once = escape(&all).into_owned();
        assert!(!once.contains(is_hidden));
        assert_eq!(escape(&once), once);
    }

    #[test]
    fn controls_and_text_direction_marks_are_hidden() {
        assert!(('\0'..=char::MAX).filter(|letter| letter.is_control()).all(is_hidden));
        let turning = ['\u{61c}', '\u{200e}', '\u{200f}'].into_iter();
        assert!(turning.chain('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}').all(is_hidden));
        assert!(!" ~\u{a0}é…│█▏⋮±µ".contains(is_hidden));
    }

    #[test]
    fn json_stays_the_same_json() {
        let text = "a\u{202e}\u{9b}\u{7f}\u{e0041}\n";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let escaped = escape_json(&json);
        assert_eq!(escaped, "[\n  \"a\\u202e\\u009b\\u007f\\udb40\\udc41\\n\"\n]");
        assert_eq!(serde_json::from_str::<[String; 1]>(&escaped).unwrap(), [text]);
    }
}
