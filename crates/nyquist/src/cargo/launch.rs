//! The arguments, the folder and the environment with which cargo runs a program, as its runner gets them.

use super::calls::current_folder;
use crate::failure::Failure;
use crate::page;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// The command that cargo would have run.
#[derive(Debug, Deserialize, Serialize, PartialEq)]
pub(super) struct Launch {
    /// The program and its arguments.
    pub(super) argv: Vec<OsString>,
    /// The working folder.
    pub(super) folder: PathBuf,
    /// The environment. Variables that are not UTF-8 are left out, because cargo itself sets none.
    pub(super) variables: BTreeMap<String, String>,
}

/// The line with a launch, among cargo's own messages.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Message {
    /// Distinguishes it from cargo's messages, which have other values of `reason`.
    pub(super) reason: String,
    /// How the program is run.
    pub(super) launch: Launch,
}

/// The reason of such a line.
pub(super) const REASON: &str = "nyquist-launch";

impl Launch {
    /// The program's file.
    pub(super) fn program(&self) -> PathBuf {
        self.folder.join(self.argv.first().map(PathBuf::from).unwrap_or_default())
    }
}

/// Reports how cargo called this process.
pub(super) fn report(argv: Vec<OsString>) -> Result<u8, Failure> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let launch = Launch { argv, folder: current_folder()?, variables: variables.collect() };
    let line = serde_json::to_string(&Message { reason: REASON.to_owned(), launch });
    let line =
        line.map_err(|error| Failure::because("cannot find out how cargo runs the program", &error))?;
    page::write_json_with(|out| writeln!(out, "{line}"))?;
    Ok(0)
}
