//! Symbol servers and stores of Windows symbols, and those of Breakpad's: both keep a file as `NAME/ID/FILE`
//! (<https://learn.microsoft.com/windows-hardware/drivers/debugger/symstore-folder-tree>; Breakpad's
//! `docs/symbol_files.md` and `SimpleSymbolSupplier`).

use crate::cache_file::{Owner, PendingFile, entries, is_abandoned, remove, remove_empty_folders, renew};
use crate::debuginfod::encoded;
use crate::transfer::{Address, Client};
use crate::{Limits, Observer, PathElement};
use nyquist_symbols::{Fetched, Outcome, RemoteFile};
use std::io;
use std::path::{Path, PathBuf};

/// The bytes that downloads have by default, all together.
const DEFAULT_QUOTA: u64 = 4 << 30;

/// How deep the files of a store are: `NAME/ID/FILE`, and one more in a store of two tiers.
const DEPTH: usize = 3;

/// How often a connection that broke is tried again.
const RETRIES: u32 = 1;

/// Where symbols of Windows programs and of Breakpad's makers are.
#[derive(Clone, Debug, Default)]
pub struct StoreConfig {
    /// `_NT_SYMBOL_PATH`.
    pub symbol_path: Vec<PathElement>,
    /// More servers of Windows symbols.
    pub windows_servers: Vec<String>,
    /// Where Windows symbols are kept that come from servers, unless the path says otherwise.
    pub windows_cache: Option<PathBuf>,
    /// Servers of Breakpad symbols.
    pub breakpad_servers: Vec<String>,
    /// Folders of Breakpad symbols.
    pub breakpad_folders: Vec<PathBuf>,
    /// Where Breakpad symbols are kept that come from servers.
    pub breakpad_cache: Option<PathBuf>,
    /// The user and group that new files get, where they are not the process's own.
    pub owner: Option<(u32, u32)>,
    /// The bounds of one download.
    pub limits: Limits,
    /// A folder below which all caches are this program's own: there, what was not used for longest makes room. Other
    /// caches are the user's, and nothing is ever removed from them.
    pub own_folder: Option<PathBuf>,
    /// How many bytes each cache of its own may have; 4 GiB where it is 0.
    pub quota: u64,
}

/// Looks into stores, and asks symbol servers.
#[derive(Debug)]
pub struct SymbolStores {
    windows: Vec<Place>,
    breakpad: Vec<Place>,
    client: Client,
    owner: Owner,
    own_folder: Option<PathBuf>,
    quota: u64,
}

/// One place, in the order in which they are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Folder(PathBuf),
    /// A server, and the folders that keep what comes from it, the nearest first.
    Server {
        url: String,
        caches: Vec<PathBuf>,
    },
}

impl SymbolStores {
    /// The places that are named; `None` where none is.
    pub fn new(config: &StoreConfig) -> Option<Self> {
        let (windows, breakpad) = (windows_places(config), breakpad_places(config));
        if windows.is_empty() && breakpad.is_empty() {
            return None;
        }
        let quota = if config.quota > 0 { config.quota } else { DEFAULT_QUOTA };
        let client = Client::new(config.limits, Vec::new(), RETRIES);
        let own_folder = config.own_folder.clone();
        Some(Self { windows, breakpad, client, owner: config.owner, own_folder, quota })
    }

    /// Gets a file. Those of debuginfod are not there.
    pub(crate) fn fetch(
        &self,
        file: &RemoteFile<'_>,
        check: &dyn Fn(&Path) -> Outcome,
        observer: &dyn Observer,
    ) -> Fetched {
        let mut fetched = Fetched::default();
        let Some(stored) = StoredFile::of(file) else { return fetched };
        let places = if stored.is_breakpad { &self.breakpad } else { &self.windows };
        for place in places {
            let found = match place {
                Place::Folder(folder) => in_folder(folder, &stored, check, &mut fetched),
                Place::Server { url, caches } => {
                    self.on_server(url, caches, &stored, check, observer, &mut fetched)
                }
            };
            if found.is_some() {
                fetched.path = found;
                return fetched;
            }
        }
        fetched
    }

    fn on_server(
        &self,
        server: &str,
        caches: &[PathBuf],
        stored: &StoredFile,
        check: &dyn Fn(&Path) -> Outcome,
        observer: &dyn Observer,
        fetched: &mut Fetched,
    ) -> Option<PathBuf> {
        for cache in caches {
            if let Some(path) = in_folder(cache, stored, check, fetched) {
                return Some(path);
            }
        }
        let cache = caches.first()?;
        let target = cache.join(&stored.path);
        let url = format!("{server}/{}", encoded(&stored.path));
        let result = self.download(server, url.clone(), &target, check, observer);
        let (outcome, path) = match result {
            Ok(outcome) => (outcome.clone(), (outcome == Outcome::Used).then_some(target)),
            Err(error) => (Outcome::Unreadable(format!("cannot be kept: {error}")), None),
        };
        fetched.tried.push((PathBuf::from(url), outcome));
        let is_own = self.own_folder.as_ref().is_some_and(|own| cache.starts_with(own));
        if is_own && path.is_some() {
            // A cache that cannot be kept small can still be used.
            let _ = make_room(cache, self.quota);
        }
        path
    }

    fn download(
        &self,
        server: &str,
        url: String,
        target: &Path,
        check: &dyn Fn(&Path) -> Outcome,
        observer: &dyn Observer,
    ) -> io::Result<Outcome> {
        let mut pending = PendingFile::create(target, self.owner)?;
        let address = Address { server: server.to_owned(), url };
        let race = self.client.get(&[address], &mut pending.file, observer);
        if let Some((_, failure)) = race.failures.into_iter().next_back().filter(|_| race.winner.is_none()) {
            drop(pending);
            // The folders that were made for it are not left behind.
            remove_empty_folders(target, top_of(target));
            return Ok(crate::debuginfod::outcome_of(&failure));
        }
        let outcome = check(&pending.path);
        if outcome == Outcome::Used {
            pending.keep(0o644)?;
        } else {
            drop(pending);
            remove_empty_folders(target, top_of(target));
        }
        Ok(outcome)
    }
}

/// The cache's folder above a file `NAME/ID/FILE`.
fn top_of(target: &Path) -> &Path {
    target.ancestors().nth(DEPTH).unwrap_or(target)
}

fn windows_places(config: &StoreConfig) -> Vec<Place> {
    let usual = config.windows_cache.as_ref();
    let mut places = Vec::new();
    // What `cache*` names holds for all that comes after it.
    let mut above: Vec<PathBuf> = Vec::new();
    for element in &config.symbol_path {
        match element {
            PathElement::Folder(folder) => places.push(Place::Folder(folder.clone())),
            PathElement::Cache(folder) => above.extend(folder.as_ref().or(usual).cloned()),
            PathElement::Server { caches, url } => {
                let own = caches.iter().filter_map(|folder| folder.as_ref().or(usual).cloned());
                let mut caches: Vec<_> = above.iter().cloned().chain(own).collect();
                match url {
                    Some(url) => {
                        if caches.is_empty() {
                            caches.extend(usual.cloned());
                        }
                        places.push(Place::Server { url: url.clone(), caches });
                    }
                    None => places.extend(caches.into_iter().map(Place::Folder)),
                }
            }
        }
    }
    places.extend(servers(&config.windows_servers, usual));
    places
}

fn breakpad_places(config: &StoreConfig) -> Vec<Place> {
    let folders = config.breakpad_folders.iter().cloned().map(Place::Folder);
    folders.chain(servers(&config.breakpad_servers, config.breakpad_cache.as_ref())).collect()
}

fn servers<'a>(urls: &'a [String], cache: Option<&'a PathBuf>) -> impl Iterator<Item = Place> + 'a {
    urls.iter().map(move |url| Place::Server {
        url: url.trim_end_matches('/').to_owned(),
        caches: cache.into_iter().cloned().collect(),
    })
}

/// A file as stores name it.
#[derive(Debug, PartialEq, Eq)]
struct StoredFile {
    is_breakpad: bool,
    /// The file's own name.
    name: String,
    /// `NAME/ID/FILE`.
    path: String,
}

impl StoredFile {
    /// `None` for files of other kinds, and for names that are no plain names: they come from profiles.
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

    /// In a store of two tiers the first two letters of the name are a folder above all others.
    fn in_two_tiers(&self) -> Option<String> {
        let (first, _) = self.path.split_at_checked(2)?;
        Some(format!("{first}/{}", self.path))
    }

    /// The name of the compressed form: the last letter is an underscore.
    fn compressed(&self) -> Option<String> {
        let mut path = self.path.clone();
        path.pop()?;
        path.push('_');
        Some(path)
    }
}

/// Looks for a file in a folder: as a store has it, as one of two tiers has it, and by its name alone.
fn in_folder(
    folder: &Path,
    stored: &StoredFile,
    check: &dyn Fn(&Path) -> Outcome,
    fetched: &mut Fetched,
) -> Option<PathBuf> {
    let mut paths = vec![folder.join(&stored.path)];
    if folder.join("index2.txt").exists() {
        paths.extend(stored.in_two_tiers().map(|path| folder.join(path)));
    }
    paths.push(folder.join(&stored.name));
    for path in paths {
        let outcome = if path.is_file() { check(&path) } else { Outcome::Missing };
        let is_used = outcome == Outcome::Used;
        fetched.tried.push((path.clone(), outcome));
        if is_used {
            renew(&path);
            return Some(path);
        }
    }
    if let Some(path) = stored.compressed().map(|path| folder.join(path)).filter(|path| path.is_file()) {
        let text = "compressed symbol files cannot be read: expand it with `expand` or `cabextract`";
        fetched.tried.push((path, Outcome::Unreadable(text.to_owned())));
    }
    None
}

/// Removes what was not used for longest until the rest has at most `quota` bytes.
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
