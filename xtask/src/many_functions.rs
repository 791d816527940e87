//! Writes a Rust source file with many functions, which gives the compiler work.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

/// Writes this many different functions, each of which takes the compiler some time.
pub(crate) fn write_functions(path: &Path, count: u32) -> Result<()> {
    let mut text = String::from("use std::collections::BTreeMap;\n");
    for number in 2..count + 2 {
        writeln!(
            text,
            "pub fn f{number}(values: &[u64]) -> BTreeMap<String, [u64; {number}]> {{
                 let kept = values.iter().filter(|value| **value % {number} != 0);
                 kept.map(|value| (format!(\"{{value:>{number}}}\"), [value * {number}; {number}])).collect()
             }}"
        )?;
    }
    Ok(fs::write(path, text)?)
}
