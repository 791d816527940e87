//! Common parts of calls of cargo and of this program: the paths of their executables, and their working
//! folder.

use crate::failure::Failure;
use std::ffi::OsString;
use std::path::PathBuf;

/// Cargo's own exit status for failures.
pub(super) const CARGO_FAILED: u8 = 101;

/// The cargo that called this program, or the one in PATH.
pub(super) fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The file of this program.
pub(super) fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::because("this program's own file cannot be found", &error))
}

pub(super) fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| Failure::because("the current folder cannot be found", &error))
}

/// A TOML string. JSON strings are valid TOML strings.
pub(super) fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_toml_may_hold_quotes() {
        assert_eq!(toml_string("cfg(target_os = \"linux\")"), r#""cfg(target_os = \"linux\")""#);
    }
}
