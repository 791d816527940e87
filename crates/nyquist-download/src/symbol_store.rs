//! Symbol servers and stores for Windows symbols and for Breakpad's. Both name a file `NAME/ID/FILE`
//! (<https://learn.microsoft.com/windows-hardware/drivers/debugger/symstore-folder-tree>; Breakpad's
//! `docs/symbol_files.md` and `SimpleSymbolSupplier`).

use crate::cabinet::{self, CabinetError};
use crate::cache_file::{PendingFile, entries, is_abandoned, remove, remove_empty_folders, renew};
use crate::debuginfod::encoded;
use crate::pointer::{self, Pointer};
use crate::transfer::{Address, Client};
use crate::{Limits, Observer, PathElement};
use nyquist_symbols::{AttemptOutcome, FetchResult, RemoteFile};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

/// The default limit of all downloads together, in bytes.
const DEFAULT_QUOTA: u64 = 4 << 30;

/// The depth of files in a store: `NAME/ID/FILE`, and one more in a two-tier store.
const DEPTH: usize = 3;

/// The replacement for a file that is elsewhere.
const POINTER: &str = "file.ptr";

/// The number of retries after a broken connection.
const RETRIES: u32 = 1;

/// The places of symbols for Windows and in Breakpad's format.
#[derive(Clone, Debug, Default)]
pub struct StoreConfig {
    /// `_NT_SYMBOL_PATH`.
    pub symbol_path: Vec<PathElement>,
    /// Further servers of Windows symbols.
    pub windows_servers: Vec<String>,
    /// The cache of Windows symbols from servers, unless the path names another one.
    pub windows_cache: Option<PathBuf>,
    /// Servers of Breakpad symbols.
    pub breakpad_servers: Vec<String>,
    /// Folders of Breakpad symbols.
    pub breakpad_folders: Vec<PathBuf>,
    /// The cache of Breakpad symbols from servers.
    pub breakpad_cache: Option<PathBuf>,
    /// The limits of one download.
    pub limits: Limits,
    /// A folder below which all caches belong to this program. There, the least recently used files are
    /// removed to free space. Other caches belong to the user, and nothing is ever removed from them.
    pub own_folder: Option<PathBuf>,
    /// The maximum size of each own cache in bytes; 4 GiB if it is 0.
    pub quota: u64,
}

/// Searches stores and symbol servers.
#[derive(Debug)]
pub struct SymbolStores {
    windows: Vec<StoreLocation>,
    breakpad: Vec<StoreLocation>,
    client: Client,
    own_folder: Option<PathBuf>,
    quota: u64,
    max_bytes: u64,
    /// The folder for expanded copies of compressed files.
    expanded: Option<PathBuf>,
}

/// The context of fetching one file: the check, the observer of progress, and the attempts.
struct StoreSearch<'a> {
    stored: &'a StoredFile,
    check: &'a dyn Fn(&Path) -> AttemptOutcome,
    observer: &'a dyn Observer,
    tried: Vec<(PathBuf, AttemptOutcome)>,
}

/// One place, in search order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StoreLocation {
    Folder(PathBuf),
    /// A server, and the folders that cache its files, the nearest first.
    Server {
        url: String,
        caches: Vec<PathBuf>,
    },
}

impl SymbolStores {
    /// The configured places; `None` if there are none.
    pub fn new(config: &StoreConfig) -> Option<Self> {
        let (windows, breakpad) = (windows_places(config), breakpad_places(config));
        if windows.is_empty() && breakpad.is_empty() {
            return None;
        }
        let quota = if config.quota > 0 { config.quota } else { DEFAULT_QUOTA };
        let client = Client::new(config.limits, Vec::new(), RETRIES);
        let own_folder = config.own_folder.clone();
        let (max_bytes, expanded) = (config.limits.max_bytes, config.windows_cache.clone());
        Some(Self { windows, breakpad, client, own_folder, quota, max_bytes, expanded })
    }

    /// Gets a file. Files of debuginfod are not available.
    pub(crate) fn fetch(
        &self,
        file: &RemoteFile<'_>,
        check: &dyn Fn(&Path) -> AttemptOutcome,
        observer: &dyn Observer,
    ) -> FetchResult {
        let Some(stored) = StoredFile::of(file) else { return FetchResult::default() };
        let places = if stored.is_breakpad { &self.breakpad } else { &self.windows };
        let mut search = StoreSearch { stored: &stored, check, observer, tried: Vec::new() };
        let path = places.iter().find_map(|place| match place {
            StoreLocation::Folder(folder) => self.in_folder(folder, self.expanded.as_deref(), &mut search),
            StoreLocation::Server { url, caches } => self.on_server(url, caches, &mut search),
        });
        FetchResult { path, tried: search.tried }
    }

    /// Searches a file in a folder: under its path in a store, under that in a two-tier store, and by its
    /// name alone. Then it searches its compressed form, which is expanded into the folder `expanded`, and
    /// a pointer to its path.
    fn in_folder(
        &self,
        folder: &Path,
        expanded: Option<&Path>,
        search: &mut StoreSearch<'_>,
    ) -> Option<PathBuf> {
        let stored = search.stored;
        let mut in_store = vec![folder.join(&stored.path)];
        if folder.join("index2.txt").exists() {
            in_store.extend(stored.in_two_tiers().map(|path| folder.join(path)));
        }
        let by_name = folder.join(&stored.name);
        if let Some(path) = in_store.iter().chain([&by_name]).find_map(|path| search.check_file(path)) {
            return Some(path);
        }
        if stored.is_breakpad {
            return None;
        }
        let packed = in_store.iter().chain([&by_name]).filter_map(|path| compressed(path));
        let packed: Vec<_> = packed.filter(|path| path.is_file()).collect();
        if let Some(path) = packed.iter().find_map(|packed| self.expand(packed, expanded, search)) {
            return Some(path);
        }
        let pointer = in_store.iter().map(|path| path.with_file_name(POINTER)).find(|path| path.is_file())?;
        let text = read_pointer(&File::open(&pointer).ok()?);
        search.follow(pointer, &text)
    }

    /// Expands a compressed file into a cache, unless the cache already has it.
    fn expand(&self, packed: &Path, cache: Option<&Path>, search: &mut StoreSearch<'_>) -> Option<PathBuf> {
        let Some(cache) = cache else {
            let text = "it is compressed, and there is no folder to expand it to (--windows-symbol-cache)";
            search.tried.push((packed.to_owned(), AttemptOutcome::Unreadable(text.to_owned())));
            return None;
        };
        let target = cache.join(&search.stored.path);
        if target.is_file() && (search.check)(&target) == AttemptOutcome::Used {
            return search.check_file(&target);
        }
        let opened = File::open(packed).map_err(|error| AttemptOutcome::Unreadable(error.to_string()));
        let expanded = opened.and_then(|packed| self.expanded(&packed, &target));
        let outcome = expanded.map_or_else(|outcome| outcome, |pending| search.keep(pending));
        self.settle(packed.to_owned(), outcome, &target, cache, search)
    }

    /// Records the outcome for a file that was to become `target` in a cache, and frees space there.
    /// Returns `target` if it exists.
    fn settle(
        &self,
        from: PathBuf,
        outcome: AttemptOutcome,
        target: &Path,
        cache: &Path,
        search: &mut StoreSearch<'_>,
    ) -> Option<PathBuf> {
        let is_used = outcome == AttemptOutcome::Used;
        search.tried.push((from, outcome));
        if !is_used {
            // Folders that were created for it are removed.
            remove_empty_folders(target, cache);
            return None;
        }
        if self.own_folder.as_ref().is_some_and(|own| cache.starts_with(own)) {
            // A cache that cannot be kept small can still be used.
            let _ = make_room(cache, self.quota);
        }
        Some(target.to_owned())
    }

    fn on_server(&self, server: &str, caches: &[PathBuf], search: &mut StoreSearch<'_>) -> Option<PathBuf> {
        let found = caches.iter().find_map(|cache| self.in_folder(cache, Some(cache), search));
        if found.is_some() {
            return found;
        }
        let cache = caches.first()?;
        let stored = search.stored;
        let target = cache.join(&stored.path);
        let mut forms = vec![(stored.path.clone(), FileForm::Plain)];
        if !stored.is_breakpad {
            forms.extend(stored.compressed().map(|path| (path, FileForm::Compressed)));
            forms.push((stored.pointer(), FileForm::Pointer));
        }
        for (path, form) in forms {
            let url = format!("{server}/{}", encoded(&path));
            let pending = match self.download(server, url.clone(), &target, search.observer) {
                Ok(pending) => pending,
                // Only if a server has no file under one name, another name is requested.
                Err(AttemptOutcome::Missing) => {
                    self.settle(url.into(), AttemptOutcome::Missing, &target, cache, search);
                    continue;
                }
                Err(outcome) => return self.settle(url.into(), outcome, &target, cache, search),
            };
            if form == FileForm::Pointer {
                let text = read_pointer(&pending.file);
                drop(pending);
                remove_empty_folders(&target, cache);
                return search.follow(url.into(), &text);
            }
            let whole = match form {
                FileForm::Compressed => {
                    let whole = self.expanded(&pending.file, &target);
                    drop(pending);
                    whole
                }
                _ => Ok(pending),
            };
            let outcome = whole.map_or_else(|outcome| outcome, |whole| search.keep(whole));
            return self.settle(url.into(), outcome, &target, cache, search);
        }
        None
    }

    /// The contents of a compressed file, to become `target`.
    fn expanded(&self, mut packed: &File, target: &Path) -> Result<PendingFile, AttemptOutcome> {
        let mut expand = || -> Result<PendingFile, CabinetError> {
            let pending = PendingFile::create(target)?;
            packed.rewind()?;
            cabinet::expand(packed, &pending.file, self.max_bytes)?;
            Ok(pending)
        };
        expand().map_err(|error| AttemptOutcome::Unreadable(error.to_string()))
    }

    /// Downloads the file that is to become `target`.
    fn download(
        &self,
        server: &str,
        url: String,
        target: &Path,
        observer: &dyn Observer,
    ) -> Result<PendingFile, AttemptOutcome> {
        let mut pending = PendingFile::create(target)
            .map_err(|error| AttemptOutcome::Unreadable(format!("cannot be kept: {error}")))?;
        let address = Address { server: server.to_owned(), url };
        let race = self.client.get(&[address], &mut pending.file, observer);
        match race.failures.into_iter().next_back().filter(|_| race.winner.is_none()) {
            Some((_, failure)) => Err(crate::debuginfod::outcome_of(&failure)),
            None => Ok(pending),
        }
    }
}

impl StoreSearch<'_> {
    /// Checks a file, if it exists, and records the outcome.
    fn check_file(&mut self, path: &Path) -> Option<PathBuf> {
        let outcome = if path.is_file() { (self.check)(path) } else { AttemptOutcome::Missing };
        let is_used = outcome == AttemptOutcome::Used;
        self.tried.push((path.to_owned(), outcome));
        if is_used {
            renew(path);
        }
        is_used.then(|| path.to_owned())
    }

    /// Checks a received file, and keeps it if it is the right one.
    fn keep(&self, pending: PendingFile) -> AttemptOutcome {
        match (self.check)(&pending.path) {
            AttemptOutcome::Used => match pending.keep(nyquist_system::Access::ReadByAll) {
                Ok(()) => AttemptOutcome::Used,
                Err(error) => AttemptOutcome::Unreadable(format!("cannot be kept: {error}")),
            },
            outcome => outcome,
        }
    }

    /// Follows a pointer.
    fn follow(&mut self, pointer: PathBuf, text: &[u8]) -> Option<PathBuf> {
        match Pointer::parse(text) {
            Pointer::Path(path) => self.check_file(&path),
            Pointer::Nowhere(reason) => {
                self.tried.push((pointer, AttemptOutcome::Unreadable(reason)));
                None
            }
        }
    }
}

/// The forms of a file on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileForm {
    Plain,
    Compressed,
    Pointer,
}

fn read_pointer(mut file: &File) -> Vec<u8> {
    let mut text = Vec::new();
    // A pointer that cannot be read counts as empty.
    let _ = file.rewind().and_then(|()| file.take(pointer::MAX_SIZE).read_to_end(&mut text));
    text
}

/// The path of the compressed form, whose last letter is an underscore.
fn compressed(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_str()?.to_owned();
    path.pop()?;
    path.push('_');
    Some(PathBuf::from(path))
}

fn windows_places(config: &StoreConfig) -> Vec<StoreLocation> {
    let usual = config.windows_cache.as_ref();
    let mut places = Vec::new();
    // The folder of `cache*` applies to all later elements.
    let mut above: Vec<PathBuf> = Vec::new();
    for element in &config.symbol_path {
        match element {
            PathElement::Folder(folder) => places.push(StoreLocation::Folder(folder.clone())),
            PathElement::Cache(folder) => above.extend(folder.as_ref().or(usual).cloned()),
            PathElement::Server { caches, url } => {
                let own = caches.iter().filter_map(|folder| folder.as_ref().or(usual).cloned());
                let mut caches: Vec<_> = above.iter().cloned().chain(own).collect();
                match url {
                    Some(url) => {
                        if caches.is_empty() {
                            caches.extend(usual.cloned());
                        }
                        places.push(StoreLocation::Server { url: url.clone(), caches });
                    }
                    None => places.extend(caches.into_iter().map(StoreLocation::Folder)),
                }
            }
        }
    }
    places.extend(servers(&config.windows_servers, usual));
    places
}

fn breakpad_places(config: &StoreConfig) -> Vec<StoreLocation> {
    let folders = config.breakpad_folders.iter().cloned().map(StoreLocation::Folder);
    folders.chain(servers(&config.breakpad_servers, config.breakpad_cache.as_ref())).collect()
}

fn servers<'a>(urls: &'a [String], cache: Option<&'a PathBuf>) -> impl Iterator<Item = StoreLocation> + 'a {
    urls.iter().map(move |url| StoreLocation::Server {
        url: url.trim_end_matches('/').to_owned(),
        caches: cache.into_iter().cloned().collect(),
    })
}

/// A file, as named in stores.
#[derive(Debug, PartialEq, Eq)]
struct StoredFile {
    is_breakpad: bool,
    /// The file's own name.
    name: String,
    /// `NAME/ID/FILE`.
    path: String,
}

impl StoredFile {
    /// `None` for files of other kinds, and for names that are not plain file names, because they come
    /// from profiles.
    fn of(file: &RemoteFile<'_>) -> Option<Self> {
        let (is_breakpad, folder, id, name) = match file {
            RemoteFile::Pdb { name, id } => (false, *name, id.breakpad(), (*name).to_owned()),
            RemoteFile::Pe { name, code_id } => (false, *name, (*code_id).to_owned(), (*name).to_owned()),
            RemoteFile::Breakpad { name, id } => {
                let stem = name.strip_suffix(".pdb").unwrap_or(name);
                (true, *name, id.breakpad(), format!("{stem}.sym"))
            }
            RemoteFile::Binary(_) | RemoteFile::DebugFile(_) | RemoteFile::Source { .. } => return None,
        };
        let is_plain = |text: &str| {
            !matches!(text, "" | "." | "..")
                && !text.contains(|c: char| matches!(c, '/' | '\\') || c.is_control())
        };
        let is_safe = is_plain(folder) && is_plain(&name) && is_plain(&id);
        is_safe.then(|| Self { is_breakpad, path: format!("{folder}/{id}/{name}"), name })
    }

    /// In a two-tier store, the first two letters of the name are the top folder.
    fn in_two_tiers(&self) -> Option<String> {
        let (first, _) = self.path.split_at_checked(2)?;
        Some(format!("{first}/{}", self.path))
    }

    /// The path of the compressed form.
    fn compressed(&self) -> Option<String> {
        compressed(Path::new(&self.path)).map(|path| path.to_string_lossy().into_owned())
    }

    /// The path of the pointer to the file.
    fn pointer(&self) -> String {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/{POINTER}")
    }
}

/// Removes the least recently used files until the rest has at most `quota` bytes.
fn make_room(cache: &Path, quota: u64) -> io::Result<()> {
    let mut files = entries(cache, DEPTH)?;
    files.sort_by_key(|entry| std::cmp::Reverse(entry.used));
    let mut total = 0_u64;
    for entry in files {
        total = total.saturating_add(entry.bytes);
        if total > quota || is_abandoned(&entry) {
            remove(&entry.path, cache)?;
        }
    }
    Ok(())
}
