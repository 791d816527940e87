//! Virtual machines in live tests: they run a script as root, and return the files that the script has
//! written.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Result;

use super::context::Context;
use super::expect::{Stop, skip};
use crate::arm::machine::{EMULATOR, Left, Machine};
use crate::arm::{self, Build, Parts};
use crate::packages;

/// A machine before it runs.
pub(crate) struct VirtualMachine<'a> {
    test: &'a Context<'a>,
    machine: Machine,
}

impl<'a> VirtualMachine<'a> {
    /// A machine with nyquist and a shell. The first call builds or downloads everything that it needs.
    pub(crate) fn new(test: &'a Context<'a>) -> Result<Self, Stop> {
        static LACKING: OnceLock<Vec<&'static str>> = OnceLock::new();
        static PARTS: OnceLock<Result<(Parts, PathBuf), String>> = OnceLock::new();
        let lacking = LACKING.get_or_init(packages::install_arm);
        if !lacking.is_empty() {
            return skip(format_args!("a virtual machine needs Debian's {}", lacking.join(", ")));
        }
        let get = || Ok((arm::parts()?, arm::build_nyquist(Build::Development)?));
        let parts = PARTS.get_or_init(|| get().map_err(|error: anyhow::Error| format!("{error:#}")));
        let (parts, nyquist) = parts.as_ref().map_err(|error| Stop::Failed(error.clone()))?;
        Ok(Self { test, machine: Machine::new(parts, nyquist) })
    }

    /// Adds a workload that is built with these flags.
    pub(crate) fn with_workload(mut self, name: &str, flags: &[&str]) -> Result<Self> {
        let built = self.test.fresh(name);
        arm::build_workload(name, &[flags, &["-static"]].concat(), &built)?;
        self.machine.add(built, format!("bin/{name}"));
        Ok(self)
    }

    /// Adds an example of one of the project's crates.
    pub(crate) fn with_example(mut self, package: &str, name: &str) -> Result<Self> {
        self.machine.add(arm::build_example(package, name)?, format!("bin/{name}"));
        Ok(self)
    }

    /// Adds options for the emulator.
    pub(crate) fn with_options(mut self, options: &[&'static str]) -> Self {
        self.machine.add_options(options);
        self
    }

    /// Runs a script in the machine. The script must succeed.
    pub(crate) fn run(self, script: &str) -> Result<Left> {
        let (archive, port) = (self.test.fresh("initrd"), self.test.fresh("out.tar"));
        self.machine.write_files(&archive, script)?;
        let arguments = self.machine.arguments(&archive, &port);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let finished = self.test.program(EMULATOR).args(&arguments).run()?.succeeded()?;
        let left = Left::unpack(&port, self.test.fresh("out"), &finished.stdout_text())?;
        fs::remove_file(archive)?;
        Ok(left)
    }
}

/// The time limit of a test that may have to build its parts first.
pub(crate) const LIMIT: Duration = Duration::from_mins(40);
