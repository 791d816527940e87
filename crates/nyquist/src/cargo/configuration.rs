//! Cargo's configuration, as cargo merges it from its files, and the values that override it.
//!
//! Cargo refuses to merge a string with an array. So an override has the type of the value that is there.

use super::calls::{program, toml_string};
use crate::args::cargo::CargoArgs;
use crate::failure::Failure;
use crate::identity;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// What the files of cargo's configuration say; see The Cargo Book, Configuration.
#[derive(Debug)]
pub(super) struct Configuration(Value);

impl Configuration {
    /// Gets the configuration from cargo.
    pub(super) fn read(cargo: &CargoArgs) -> Result<Self, Failure> {
        let mut command = identity::command(program());
        // Cargo prints its configuration only if unstable options are permitted. This call builds nothing.
        command.args(["-Zunstable-options", "config", "get", "--format", "json"]).env("RUSTC_BOOTSTRAP", "1");
        let output = command.args(cargo.configuration()).output();
        let output = output.map_err(|error| Failure::because("cargo cannot be run", &error))?;
        if !output.status.success() {
            let cause = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Failure::new(format!("cargo does not show its configuration: {cause}")));
        }
        serde_json::from_slice(&output.stdout)
            .map(Self)
            .map_err(|error| Failure::because("cargo's configuration cannot be read", &error))
    }

    /// The values, by table.
    pub(super) fn values(&self) -> &Value {
        &self.0
    }

    /// The targets that cargo may build for and run: the host, and those that the command line, the environment or
    /// the configuration names.
    pub(super) fn targets(&self, host: &str, cargo: &CargoArgs) -> BTreeSet<String> {
        let named = match cargo.targets() {
            named if !named.is_empty() => named,
            _ => self.default_targets(),
        };
        let named = named.iter().filter(|target| *target != "host-tuple").map(|target| target_name(target));
        named.chain([host.to_owned()]).collect()
    }

    /// The target whose folder a program is built into, if it is not the host's own.
    pub(super) fn target_folder(&self, cargo: &CargoArgs) -> Option<String> {
        let named = cargo.targets().into_iter().next().or_else(|| self.default_targets().into_iter().next());
        named.map(|target| target_name(&target))
    }

    fn default_targets(&self) -> Vec<String> {
        if let Ok(target) = std::env::var("CARGO_BUILD_TARGET") {
            return vec![target];
        }
        match &self.0["build"]["target"] {
            Value::String(target) => vec![target.clone()],
            Value::Array(targets) => targets.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    /// The override that makes `words` the runner of a target.
    pub(super) fn runner(&self, target: &str, argv: &[&str]) -> Result<String, Failure> {
        let key = format!("target.{}.runner", toml_string(target));
        if !self.0["target"][target]["runner"].is_string() {
            let argv: Vec<_> = argv.iter().map(|word| toml_string(word)).collect();
            return Ok(format!("{key}=[{}]", argv.join(", ")));
        }
        Ok(format!("{key}={}", toml_string(&runner_text(target, argv)?)))
    }
}

/// How the runner of a target is replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RunnerOverride {
    /// By this variable of the environment, which has priority over all files.
    Variable(String),
    /// By an option of cargo.
    Option,
}

impl RunnerOverride {
    /// The way that works. The variable is preferred: where files and options both have tables `build` and `target`,
    /// cargo 1.95 sometimes appends the runner of an option to that of a file, and does not replace it. But the
    /// variable cannot hold a name with a space, and a user's `--config` has priority over it. If the user has set it,
    /// an option cannot be merged with it.
    pub(super) fn new(target: &str, argv: &[&str], has_options: bool) -> Self {
        let name = format!("CARGO_TARGET_{}_RUNNER", target.to_uppercase().replace(['-', '.'], "_"));
        let is_set = std::env::var_os(&name).is_some();
        let fits = !argv.iter().any(|word| word.contains(char::is_whitespace));
        if is_set || (fits && !has_options) { Self::Variable(name) } else { Self::Option }
    }
}

/// A runner in one string. Cargo splits it at white space, and knows no quotes in it.
pub(super) fn runner_text(target: &str, argv: &[&str]) -> Result<String, Failure> {
    if let Some(word) = argv.iter().find(|word| word.contains(char::is_whitespace)) {
        let failure =
            format!("cargo cannot call {word}, whose name has a space, by a runner that is a string");
        let hint =
            format!("write the runner of {target} in cargo's configuration as an array: runner = [...]");
        return Err(Failure::new(failure).hint(hint));
    }
    Ok(argv.join(" "))
}

/// The name of a target, which may be given as the file of its specification.
fn target_name(target: &str) -> String {
    let path = Path::new(target);
    let stem = path.file_stem().filter(|_| path.extension().is_some_and(|extension| extension == "json"));
    stem.map_or_else(|| target.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn runner(configuration: Value, argv: &[&str]) -> Result<String, Failure> {
        Configuration(configuration).runner("t", argv)
    }

    #[test]
    fn a_runner_has_the_type_of_the_one_there() {
        let array = r#"target."t".runner=["n", "launch"]"#;
        assert_eq!(runner(json!({}), &["n", "launch"]).unwrap(), array);
        assert_eq!(runner(json!({"target": {"t": {"runner": ["a"]}}}), &["n", "launch"]).unwrap(), array);
        let string = runner(json!({"target": {"t": {"runner": "a b"}}}), &["n", "launch"]).unwrap();
        assert_eq!(string, r#"target."t".runner="n launch""#);
    }

    #[test]
    fn a_variable_replaces_runners_if_it_can() {
        let of = |argv: &[&str], has_options| RunnerOverride::new("a-b.c", argv, has_options);
        let variable = RunnerOverride::Variable("CARGO_TARGET_A_B_C_RUNNER".to_owned());
        assert_eq!(of(&["/n", "launch"], false), variable);
        assert_eq!(of(&["/my programs/n"], false), RunnerOverride::Option);
        assert_eq!(of(&["/n"], true), RunnerOverride::Option);
    }

    #[test]
    fn a_space_in_a_string_is_refused() {
        let failure = runner(json!({"target": {"t": {"runner": "a"}}}), &["/my programs/n"]).unwrap_err();
        assert!(failure.message.contains("/my programs/n"), "{}", failure.message);
        assert!(failure.hints[0].contains("runner = [...]"), "{:?}", failure.hints);
    }

    #[test]
    fn a_specification_is_named_by_its_file() {
        assert_eq!(["a-b-c", "x/my.json"].map(target_name), ["a-b-c", "my"]);
    }
}
