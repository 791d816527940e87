//! The configuration file: TOML whose keys are the names of options. It becomes words of a command line, before those
//! that were typed, which therefore take precedence.

use crate::args::{AgentArgs, Cli, Command};
use crate::failure::Failure;
use clap::Parser as _;
use nyquist_system::open_regular;
use std::env;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::Path;

/// The longest file.
const MAX_BYTES: u64 = 1 << 20;

/// The arguments with those of the configuration file, if one is named.
pub(super) fn with_file(args: &AgentArgs) -> Result<AgentArgs, Failure> {
    let Some(path) = &args.config else { return Ok(args.clone()) };
    let cannot_read = |reason: String| Failure::new(format!("cannot read {}: {reason}", path.display()));
    let text = read(path).map_err(|error| cannot_read(error.to_string()))?;
    let argv = argv(&text).map_err(cannot_read)?;
    // The first two are the program and the subcommand.
    let typed = env::args_os().skip(2);
    let all = ["nyquist", "agent"].map(OsString::from).into_iter();
    let all = all.chain(argv.into_iter().map(OsString::from)).chain(typed);
    match Cli::try_parse_from(all).map(|cli| cli.command) {
        Ok(Command::Agent(args)) => Ok(*args),
        Ok(_) => Err(cannot_read("it has another subcommand".to_owned())),
        Err(error) => {
            let text = error.to_string();
            let reason = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Err(cannot_read(reason.to_owned()).hint("its keys are the names of options, without --"))
        }
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    open_regular(path)?.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The options of a file as words.
fn argv(text: &str) -> Result<Vec<String>, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
    let mut argv = Vec::new();
    for (key, value) in &table {
        match value {
            toml::Value::Boolean(true) => argv.push(format!("--{key}")),
            toml::Value::Boolean(false) => {}
            toml::Value::Array(values) => {
                for value in values {
                    argv.push(format!("--{key}={}", scalar(key, value)?));
                }
            }
            toml::Value::Table(pairs) => {
                for (name, value) in pairs {
                    argv.push(format!("--{key}={name}={}", scalar(key, value)?));
                }
            }
            value => argv.push(format!("--{key}={}", scalar(key, value)?)),
        }
    }
    Ok(argv)
}

fn scalar(key: &str, value: &toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(truth) => Ok(truth.to_string()),
        _ => Err(format!("{key} is no text and no number")),
    }
}

#[cfg(test)]
mod tests {
    use super::argv;

    #[test]
    fn keys_are_options() {
        let text = "all-cpus = true\noff-cpu = false\nrate = 19\npush = [\"http://a:1\", \"otlp+http://b:2\"]\n\
                    [label]\nenv = \"prod\"\n";
        let mut argv = argv(text).unwrap();
        argv.sort();
        let expected =
            ["--all-cpus", "--label=env=prod", "--push=http://a:1", "--push=otlp+http://b:2", "--rate=19"];
        assert_eq!(argv, expected);
        assert!(super::argv("a = [[1]]").is_err() && super::argv("a = ").is_err());
    }
}
