//! The table of functions as CSV (RFC 4180): `self,total,function,lib,file,line`.

use crate::hidden;
use std::io::{self, Write};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct FunctionRow<'a> {
    /// The own time of the function, in sampling intervals.
    pub own: u64,
    /// Its time including its callees, in sampling intervals.
    pub total: u64,
    /// Its name.
    pub function: &'a str,
    /// The name of its lib.
    pub lib: Option<&'a str>,
    /// The source file that it is defined in.
    pub file: Option<&'a str>,
    /// A line in that file: where it begins or, if that is not known, its hottest line.
    pub line: Option<u32>,
}

/// Writes a heading and a line for each row.
///
/// # Errors
/// If `out` cannot be written.
pub fn write<'a>(rows: impl IntoIterator<Item = FunctionRow<'a>>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "self,total,function,lib,file,line")?;
    for row in rows {
        let line = row.line.map(|line| line.to_string()).unwrap_or_default();
        let (function, lib) = (field(row.function), field(row.lib.unwrap_or_default()));
        let file = field(row.file.unwrap_or_default());
        writeln!(out, "{},{},{function},{lib},{file},{line}", row.own, row.total)?;
    }
    Ok(())
}

/// A text as a field. It is quoted if it has special characters, and hidden characters are escaped. If a
/// spreadsheet would treat it as a formula, a `'` is prepended, which makes it text (OWASP, "CSV Injection").
/// Numbers are written unchanged.
fn field(text: &str) -> String {
    let formula = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    let text = hidden::escape(text);
    if text.contains(['"', ',']) {
        format!("\"{formula}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{formula}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        let row = FunctionRow {
            own: 3,
            total: 17,
            function: "f<A, B>(\"x\")",
            lib: Some("app"),
            file: None,
            line: Some(9),
        };
        let mut out = Vec::new();
        write([row], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "self,total,function,lib,file,line\n3,17,\"f<A, B>(\"\"x\"\")\",app,,9\n");
    }

    #[test]
    fn a_name_is_no_formula() {
        let check = |text, expected| assert_eq!(field(text), expected);
        check("=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\"");
        check("+1", "'+1");
        check("-[NSObject init]", "'-[NSObject init]");
        check("@SUM", "'@SUM");
        check("\t=1", "'\\t=1");
        check("\r=1", "'\\r=1");
        check("a=b", "a=b");
        check("", "");
    }

    #[test]
    fn hidden_characters_are_escaped_within_a_row() {
        assert_eq!(field("a\nb\u{1b}[31m\u{202e}"), "a\\nb\\x1b[31m\\u{202e}");
    }
}
