//! Options for symbol search and memory limits, for every command that shows functions.

use crate::memory::{self, Bytes};
use clap::Args;
use clap::builder::FalseyValueParser;
use nyquist_resources::Budget;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Where symbols are looked for, beside the usual places.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Symbols")]
pub(crate) struct SymbolArgs {
    /// Also look for binaries and debug files in this folder (may be repeated)
    #[arg(long, value_name = "DIR", env = "NYQUIST_SYMBOL_PATH", value_delimiter = ':')]
    pub(crate) symbol_dir: Vec<PathBuf>,
    /// Also look for binaries in this folder that simpleperf's scripts have filled (may be repeated)
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) simpleperf_binary_cache: Vec<PathBuf>,
    /// Also show source files in this folder whose paths are known from the profile alone (may be repeated)
    #[arg(
        long,
        value_name = "DIR",
        env = "NYQUIST_SOURCE_PATH",
        value_delimiter = ':',
        hide_short_help = true
    )]
    pub(crate) source_dir: Vec<PathBuf>,
    /// Take source files named below FROM from the folder TO (may be repeated)
    #[arg(long, value_name = "FROM=TO", value_parser = source_map, hide_short_help = true)]
    pub(crate) source_map: Vec<(String, PathBuf)>,
    /// Look up everything anew, and keep nothing of it for the next time
    #[arg(long, env = "NYQUIST_NO_CACHE", hide_env_values = true, value_parser = FalseyValueParser::new())]
    pub(crate) no_cache: bool,
    /// Ask this server for symbols of Windows programs, after those of _NT_SYMBOL_PATH (may be repeated)
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub(crate) windows_symbol_server: Vec<String>,
    /// Keep symbols of Windows programs here
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) windows_symbol_cache: Option<PathBuf>,
    /// Ask this server for Breakpad symbol files (may be repeated)
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub(crate) breakpad_symbol_server: Vec<String>,
    /// Look for Breakpad symbol files in this folder (may be repeated)
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) breakpad_symbol_dir: Vec<PathBuf>,
    /// Keep Breakpad symbol files from servers here
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) breakpad_symbol_cache: Option<PathBuf>,
    /// Take no more memory than this to read a file, as 512M or 4G (default: half of the available memory);
    /// when recording, take no more for symbols, debug info and the names of code made at run time (default:
    /// a quarter), and a quarter of it, or 200M if that is more, for the mappings, names and arguments of processes
    #[arg(long, value_name = "SIZE", env = "NYQUIST_MAX_MEMORY", hide_short_help = true)]
    pub(crate) max_memory: Option<Bytes>,
    /// The memory for modules and their debug info, which all finders of a command share.
    #[arg(skip)]
    modules: Arc<OnceLock<Budget>>,
}

impl SymbolArgs {
    /// Sets the memory for modules and their debug info by what is available now. If no limit was given, it is
    /// at most `default`.
    pub(crate) fn limit_modules(&self, default: Option<Bytes>) {
        self.modules.get_or_init(|| memory::side_files(self.max_memory.or(default)));
    }

    /// The memory for modules and their debug info.
    pub(crate) fn modules(&self) -> &Budget {
        self.modules.get_or_init(|| memory::side_files(self.max_memory))
    }
}

/// `FROM=TO`. The last `=` divides them, because paths of build folders contain `=` more often than those of
/// source folders.
fn source_map(text: &str) -> Result<(String, PathBuf), String> {
    match text.rsplit_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.to_owned(), PathBuf::from(to))),
        _ => Err("it is FROM=TO: the folder in the debug info, and the one with its files here".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_map_has_two_folders() {
        let check = |text, from: &str, to: &str| {
            assert_eq!(source_map(text).unwrap(), (from.to_owned(), PathBuf::from(to)), "{text}");
        };
        check("/build/app=/src/app", "/build/app", "/src/app");
        check("/build/a=b=src", "/build/a=b", "src");
        for wrong in ["", "=", "/build", "/build=", "=/src"] {
            assert!(source_map(wrong).is_err(), "{wrong}");
        }
    }
}
