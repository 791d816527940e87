//! A Rust source file with many functions, for the compiler to work on.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

/// Functions that take the compiler some work, all of them different.
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
