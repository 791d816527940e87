//! The places that are searched for symbols beside the files themselves, and the sources that are not used.

use super::finding::{Finding, Section};
use crate::args::SymbolArgs;
use crate::finder;
use crate::folders::UserFolders;
use nyquist_download::{Debuginfod, PathElement};
use std::path::Path;

/// The findings.
pub(super) fn section(args: &SymbolArgs) -> Section {
    let folders = UserFolders::of_user();
    let stores = finder::stores(args, &folders);
    let mut findings = vec![places(args, &folders), debuginfod(finder::debuginfod(&folders).as_ref())];
    findings.extend(symbol_path(&stores.symbol_path));
    findings.extend(servers("windows_symbols", "servers of Windows symbols", &stores.windows_servers));
    findings.extend(folder_list(&stores.breakpad_folders));
    findings.extend(servers("breakpad_symbols", "servers of Breakpad symbols", &stores.breakpad_servers));
    findings.push(cache(args, folders.answer_cache().as_deref()));
    Section { kind: "symbols", name: "Where symbols are looked for".to_owned(), findings }
}

fn places(args: &SymbolArgs, folders: &UserFolders) -> Finding {
    let given = args.symbol_dir.iter().cloned();
    let perf = folders.home().map(|home| home.join(".debug"));
    let places = ["/usr/lib/debug".into()].into_iter().chain(perf).chain(given);
    let named: Vec<_> = places
        .map(|folder| {
            let is_there = if folder.is_dir() { "" } else { " (not there)" };
            format!("{}{is_there}", folder.display())
        })
        .collect();
    Finding::ok("folders", format!("beside the file, and in {}", named.join(", ")))
}

fn debuginfod(debuginfod: Option<&Debuginfod>) -> Finding {
    const TOPIC: &str = "debuginfod";
    match debuginfod {
        Some(debuginfod) => {
            Finding::ok(TOPIC, format!("debuginfod is queried: {}", debuginfod.servers().join(", ")))
        }
        None => Finding::ok(TOPIC, "debuginfod is not queried: DEBUGINFOD_URLS is not set"),
    }
}

fn symbol_path(path: &[PathElement]) -> Option<Finding> {
    let shown = |element: &PathElement| match element {
        PathElement::Folder(folder) => folder.display().to_string(),
        PathElement::Cache(Some(folder)) => format!("kept in {}", folder.display()),
        PathElement::Cache(None) => "kept".to_owned(),
        PathElement::Server { url: Some(url), .. } => url.clone(),
        PathElement::Server { caches, .. } => {
            let folders = caches.iter().flatten().map(|folder| folder.display().to_string());
            folders.collect::<Vec<_>>().join(", ")
        }
    };
    let shown: Vec<_> = path.iter().map(shown).collect();
    (!path.is_empty())
        .then(|| Finding::ok("symbol_path", format!("of _NT_SYMBOL_PATH: {}", shown.join("; "))))
}

fn servers(topic: &'static str, what: &str, servers: &[String]) -> Option<Finding> {
    (!servers.is_empty()).then(|| Finding::ok(topic, format!("{what}: {}", servers.join(", "))))
}

fn folder_list(folders: &[std::path::PathBuf]) -> Option<Finding> {
    let shown: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    (!shown.is_empty())
        .then(|| Finding::ok("breakpad_folders", format!("Breakpad symbols in {}", shown.join(", "))))
}

fn cache(args: &SymbolArgs, folder: Option<&Path>) -> Finding {
    const TOPIC: &str = "cache";
    match folder {
        _ if args.no_cache => Finding::ok(TOPIC, "symbol lookups are not cached (--no-cache)"),
        Some(folder) => Finding::ok(TOPIC, format!("symbol lookups are cached in {}", folder.display())),
        None => Finding::better(TOPIC, "symbol lookups are not cached: this user has no home folder")
            .hint("set HOME or XDG_CACHE_HOME"),
    }
}
