//! The table of functions as CSV (RFC 4180): `self,total,function,lib,file,line`.

use std::io::{self, Write};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// What the function takes itself, in sampling intervals.
    pub own: u64,
    /// What it takes with its callees, in sampling intervals.
    pub total: u64,
    /// Its name.
    pub function: &'a str,
    /// The name of its lib.
    pub lib: Option<&'a str>,
    /// The source file that it is defined in.
    pub file: Option<&'a str>,
    /// The line in that file where it begins.
    pub line: Option<u32>,
}

/// Writes a heading and a line a row.
///
/// # Errors
/// If `out` cannot be written.
pub fn write<'a>(rows: impl IntoIterator<Item = Row<'a>>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "self,total,function,lib,file,line")?;
    for row in rows {
        let line = row.line.map(|line| line.to_string()).unwrap_or_default();
        let (function, lib) = (field(row.function), field(row.lib.unwrap_or_default()));
        let file = field(row.file.unwrap_or_default());
        writeln!(out, "{},{},{function},{lib},{file},{line}", row.own, row.total)?;
    }
    Ok(())
}

/// A field, in quotes where it has characters that mean something.
fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        let row = Row {
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
}
