//! The Firefox Profiler's own query tool, `profiler-cli`. It runs the front end's code without a browser.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::context::Context;
use super::expect::Stop;
use super::invocation::Invocation;
use super::npm::{self, Package};

/// The tool in the npm registry.
const PACKAGE: Package = Package { name: "@firefox-devtools/profiler-cli", version: "0.10.0" };

/// How long the tool's daemon may take to start and to load a profile.
const PATIENCE: Duration = Duration::from_mins(2);

/// The tool's script.
fn script() -> Result<PathBuf, Stop> {
    Ok(npm::folder_with(&[PACKAGE])?.join("node_modules").join(PACKAGE.name).join("dist/profiler-cli.js"))
}

/// A profile that is loaded in the front end. Its daemon ends when this is dropped. The daemon also has the
/// test's mark.
pub(crate) struct Session<'a> {
    test: &'a Context<'a>,
    script: PathBuf,
    folder: PathBuf,
}

impl<'a> Session<'a> {
    /// Loads a profile file that contains all names.
    pub(crate) fn of_file(test: &'a Context<'a>, profile: &Path) -> Result<Self, Stop> {
        Self::load(test, &[&profile.display().to_string()])
    }

    /// Loads a profile from a server that also provides the names.
    pub(crate) fn of_server(test: &'a Context<'a>, profile: &str, server: &str) -> Result<Self, Stop> {
        Self::load(test, &[profile, "--symbol-server", server])
    }

    fn load(test: &'a Context<'a>, args: &[&str]) -> Result<Self, Stop> {
        let script = script()?;
        let args = [&["load"], args].concat();
        let session = Self { test, script, folder: test.fresh("session") };
        let finished = session.call(&args).run()?;
        // The tool gives its daemon half a second to start, which is not enough on a busy machine. The daemon
        // continues to start.
        if finished.stderr.contains("did not become ready") {
            session.wait_until_loaded()?;
        } else {
            finished.succeeded()?;
        }
        Ok(session)
    }

    /// Waits until the starting daemon answers queries of the profile.
    fn wait_until_loaded(&self) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        let is_loaded = || {
            let answer = self.folder.join("current.txt").exists().then(|| self.ask(&["profile", "info"]));
            answer.is_some_and(|answer| answer.is_ok_and(|answer| answer["type"] == "profile-info"))
        };
        while !is_loaded() {
            ensure!(Instant::now() < end, "the front end's daemon does not load the profile");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn call(&self, args: &[&str]) -> Invocation<'a> {
        let call = self.test.program("node").path(&self.script).args(args);
        call.env("PROFILER_CLI_SESSION_DIR", self.folder.display().to_string())
    }

    fn run(&self, args: &[&str]) -> Result<String> {
        Ok(self.call(args).run()?.succeeded()?.stdout_text())
    }

    /// The answer to a query, as JSON.
    pub(crate) fn ask(&self, args: &[&str]) -> Result<Value> {
        let text = self.run(&[args, &["--json"]].concat())?;
        let json: Value =
            serde_json::from_str(&text).with_context(|| format!("{args:?} gave no JSON: {text}"))?;
        ensure!(json["type"].is_string(), "{args:?} gave {text}");
        Ok(json)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // If this fails, the harness kills the processes that have the test's mark.
        drop(self.run(&["stop", "--all"]));
    }
}
