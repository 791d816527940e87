//! The finder of binaries and debug files for all commands: its folders, its servers and its caches.

use crate::args::SymbolArgs;
use crate::folders::UserFolders;
use crate::identity::has_users_rights;
use nyquist_download::{
    Debuginfod, Downloads, Limits, Observer, StoreConfig, SymbolStores, parse_symbol_path,
};
use nyquist_symbols::{AnswerCache, Finder, SearchPaths, SourceFiles};
use std::sync::Arc;

/// The finder, which downloads files that are not on this machine. `observer` shows the progress.
pub(crate) fn finder(args: &SymbolArgs, observer: Arc<dyn Observer>) -> Finder {
    let folders = UserFolders::of_user();
    let finder = offline_with(args, &folders);
    // Downloads are written to folders that variables and options name, so they need the user's rights.
    if !has_users_rights() {
        return finder;
    }
    let downloads =
        Downloads::new(debuginfod(&folders), SymbolStores::new(&stores(args, &folders)), observer);
    match downloads {
        Some(downloads) => finder.with_fetch(Arc::new(downloads)),
        None => finder,
    }
}

/// The finder without servers, for live views, which cannot wait for one.
pub(crate) fn offline(args: &SymbolArgs) -> Finder {
    offline_with(args, &UserFolders::of_user())
}

fn offline_with(args: &SymbolArgs, folders: &UserFolders) -> Finder {
    let finder = Finder::new(search_paths(args, folders)).with_budget(args.modules().clone());
    match answer_cache(folders).filter(|_| !args.no_cache) {
        Some(cache) => finder.with_cache(Arc::new(cache)),
        None => finder,
    }
}

/// The cache of symbol lookups.
pub(crate) fn answer_cache(folders: &UserFolders) -> Option<AnswerCache> {
    folders.answer_cache().map(AnswerCache::new)
}

/// The debuginfod servers that the environment names.
pub(crate) fn debuginfod(folders: &UserFolders) -> Option<Debuginfod> {
    Debuginfod::from_environment(|name| folders.var_for_caches(name))
}

/// The symbol stores that the options and `_NT_SYMBOL_PATH` name.
pub(crate) fn stores(args: &SymbolArgs, folders: &UserFolders) -> StoreConfig {
    let path = folders.var("_NT_SYMBOL_PATH").unwrap_or_default();
    let own = folders.downloads();
    let below = |name: &str| own.as_ref().map(|own| own.join(name));
    StoreConfig {
        symbol_path: parse_symbol_path(&path.to_string_lossy()),
        windows_servers: args.windows_symbol_server.clone(),
        windows_cache: args.windows_symbol_cache.clone().or_else(|| below("windows")),
        breakpad_servers: args.breakpad_symbol_server.clone(),
        breakpad_folders: args.breakpad_symbol_dir.clone(),
        breakpad_cache: args.breakpad_symbol_cache.clone().or_else(|| below("breakpad")),
        limits: Limits::default(),
        own_folder: own,
        quota: 0,
    }
}

/// The source files that may be shown without debug info that names them, and the places of moved ones.
pub(crate) fn source_files(args: &SymbolArgs) -> SourceFiles {
    let folders = UserFolders::of_user();
    let files = SourceFiles::default().with_rust(folders.rustup_home(), folders.cargo_home());
    let allowed = args.source_dir.iter().fold(files, SourceFiles::allowing);
    args.source_map.iter().fold(allowed, |files, (from, to)| files.moving(from, to))
}

/// The folders to search for files.
fn search_paths(args: &SymbolArgs, folders: &UserFolders) -> SearchPaths {
    SearchPaths {
        symbol_dirs: args.symbol_dir.clone(),
        simpleperf_caches: args.simpleperf_binary_cache.clone(),
        build_id_caches: folders.home().map(|home| home.join(".debug")).into_iter().collect(),
        ..SearchPaths::default()
    }
}
