//! Adds frame pointers to the rustc flags that the user's builds already have.
//!
//! Cargo uses the flags of only one source, the first of (The Cargo Book, Configuration, `build.rustflags`):
//! `CARGO_ENCODED_RUSTFLAGS`; `RUSTFLAGS`; all `target.*.rustflags` that match, joined; `build.rustflags`. A
//! flag in another source is ignored, or causes cargo to ignore the flags that the user has set.

use super::calls::toml_string;
use super::configuration::Configuration;
use serde_json::Value;
use std::env;
use std::process::Command;

const FLAG: &str = "-Cforce-frame-pointers=yes";

/// Adds the flag to the source that cargo uses.
pub(super) fn add(command: &mut Command, configuration: &Configuration) {
    for (name, separator) in [("CARGO_ENCODED_RUSTFLAGS", '\x1f'), ("RUSTFLAGS", ' ')] {
        if let Ok(flags) = env::var(name) {
            command.env(name, with_flag(&flags, separator));
            return;
        }
    }
    for (name, flags) in env::vars_os() {
        let (Some(name), Some(flags)) = (name.to_str(), flags.to_str()) else { continue };
        if name.starts_with("CARGO_TARGET_") && name.ends_with("_RUSTFLAGS") {
            command.env(name, with_flag(flags, ' '));
        }
    }
    for (key, value) in overrides(configuration.values()) {
        command.arg("--config").arg(format!("{key}={value}"));
    }
}

fn with_flag(flags: &str, separator: char) -> String {
    if flags.is_empty() { FLAG.to_owned() } else { format!("{flags}{separator}{FLAG}") }
}

/// The keys to override, and their values, from the current configuration. Cargo uses only one of the
/// keys. So the flag is added to each present key, and to `build.rustflags` in case none is present.
fn overrides(configuration: &Value) -> Vec<(String, String)> {
    let targets = configuration["target"].as_object().into_iter().flatten();
    let targets = targets.filter(|(_, table)| !table["rustflags"].is_null());
    let targets = targets.map(|(name, table)| {
        (format!("target.{}.rustflags", toml_string(name)), flags_to_merge(&table["rustflags"]))
    });
    let build = ("build.rustflags".to_owned(), flags_to_merge(&configuration["build"]["rustflags"]));
    targets.chain([build]).collect()
}

/// The argument that adds the flag to the present ones. Cargo appends an array to an array, and replaces
/// a string.
fn flags_to_merge(present: &Value) -> String {
    match present.as_str() {
        Some(flags) => toml_string(&with_flag(flags, ' ')),
        None => format!("[{}]", toml_string(FLAG)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(configuration: &Value, expected: &[(&str, &str)]) {
        let found = overrides(configuration);
        let found: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(found, expected);
    }

    const ALONE: &str = r#"["-Cforce-frame-pointers=yes"]"#;

    #[test]
    fn without_configuration_the_flag_is_for_all() {
        check(&json!({}), &[("build.rustflags", ALONE)]);
    }

    #[test]
    fn a_string_is_repeated_and_an_array_is_joined() {
        check(&json!({"build": {"rustflags": ["-Cx"]}}), &[("build.rustflags", ALONE)]);
        let repeated = r#""-C x -Cforce-frame-pointers=yes""#;
        check(&json!({"build": {"rustflags": "-C x"}}), &[("build.rustflags", repeated)]);
    }

    #[test]
    fn every_target_with_flags_gets_it() {
        let targets = json!({"target": {"cfg(unix)": {"rustflags": "-Cx"}, "t": {"rustflags": []}, "u": {"linker": "l"}}});
        check(
            &targets,
            &[
                (r#"target."cfg(unix)".rustflags"#, r#""-Cx -Cforce-frame-pointers=yes""#),
                (r#"target."t".rustflags"#, ALONE),
                ("build.rustflags", ALONE),
            ],
        );
    }

    #[test]
    fn variables_keep_their_flags() {
        assert_eq!(with_flag("-Ca", '\x1f'), "-Ca\x1f-Cforce-frame-pointers=yes");
        assert_eq!(with_flag("", ' '), FLAG);
    }
}
