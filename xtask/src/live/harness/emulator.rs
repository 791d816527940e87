//! Computes the screen of a terminal from a program's output. It supports the part of ECMA-48 that
//! full-screen programs use.

use std::iter::Peekable;
use std::str::Chars;

/// The size of the terminals in tests, in rows and columns.
const SIZE: (usize, usize) = (24, 80);

/// The lines on the screen, without trailing blanks.
pub(crate) fn screen(written: &str) -> Vec<String> {
    let mut cells = vec![vec![' '; SIZE.1]; SIZE.0];
    let (mut row, mut column) = (0, 0);
    let mut chars = written.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => {
                if let Some(place) = sequence(&mut chars) {
                    (row, column) = place;
                }
            }
            '\r' => column = 0,
            '\n' => row += 1,
            _ => {
                if let Some(cell) = cells.get_mut(row).and_then(|line| line.get_mut(column)) {
                    *cell = char;
                }
                column += 1;
            }
        }
    }
    cells.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned()).collect()
}

/// Skips a control sequence, whose ESC was read before. Returns the target of "cursor position". Other
/// sequences change no text.
fn sequence(chars: &mut Peekable<Chars<'_>>) -> Option<(usize, usize)> {
    chars.next_if_eq(&'[')?;
    let mut parameters = String::new();
    while let Some(char) = chars.next_if(|char| !('@'..='~').contains(char)) {
        parameters.push(char);
    }
    if chars.next()? != 'H' {
        return None;
    }
    let mut numbers = parameters.split(';').map(|number| number.parse().unwrap_or(1_usize).max(1) - 1);
    Some((numbers.next()?, numbers.next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::screen;

    #[test]
    fn text_stands_where_the_cursor_was_put() {
        let lines = screen("\u{1b}[?1049h\u{1b}[2;3H\u{1b}[1mabc\u{1b}[0m\u{1b}[2;4HX\u{1b}[Hfirst\r\nz");
        assert_eq!(lines[..3], ["first", "z aXc", ""]);
    }
}
