//! The client of debuginfod servers. It uses the variables and the cache of elfutils' own client, so programs
//! share their downloads (debuginfod-client-config(7), debuginfod_find_debuginfo(3)).

use crate::cache_file::{self, PendingFile, entries, is_abandoned, renew};
use crate::transfer::{Address, Client, TransferFailure};
use crate::{Limits, Observer};
use nyquist_symbols::{AttemptOutcome, FetchResult, RemoteFile};
use nyquist_system::{Access, open_regular};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long a file counts as missing, in seconds, unless a file in the cache's folder overrides it.
const MISS_HOLDS: u64 = 600;

/// The interval of cleaning the cache, and the age of removed files, both in seconds. Files in its folder
/// override them.
const CLEAN_EVERY: u64 = 86_400;
const KEEP_UNUSED: u64 = 604_800;

/// The overriding files in the cache's folder.
const MISS_FILE: &str = "cache_miss_s";
const CLEAN_FILE: &str = "cache_clean_interval_s";
const UNUSED_FILE: &str = "max_unused_age_s";

/// The number of retries after a broken connection.
const RETRIES: u32 = 2;

/// The maximum length of a source file's name in the cache: half the limit of file systems, as in elfutils.
const MAX_NAME: usize = 126;

/// The maximum size that is read of a file with headers or a number.
const MAX_CONFIG: u64 = 64 << 10;

/// The servers, the cache and the limits.
#[derive(Debug)]
pub struct Debuginfod {
    servers: Vec<String>,
    cache: PathBuf,
    client: Client,
}

impl Debuginfod {
    /// The client for the environment; `None` if `DEBUGINFOD_URLS` names no server. `var` returns the
    /// value of a variable.
    pub fn from_environment(var: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let text = |name: &str| var(name).and_then(|value| value.into_string().ok());
        let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
        let servers = servers(&text("DEBUGINFOD_URLS")?);
        if servers.is_empty() {
            return None;
        }
        let cache = cache_folder(&var)?;
        let seconds = |value: u64| (value > 0).then(|| Duration::from_secs(value));
        let default = Limits::default();
        let limits = Limits {
            timeout: number("DEBUGINFOD_TIMEOUT").map_or(default.timeout, seconds),
            max_time: number("DEBUGINFOD_MAXTIME").and_then(seconds),
            max_bytes: number("DEBUGINFOD_MAXSIZE").filter(|max| *max > 0).unwrap_or(default.max_bytes),
        };
        let mut headers = text("DEBUGINFOD_HEADERS_FILE").map(|file| headers(&file)).unwrap_or_default();
        headers.push(("X-Debuginfod-Maxsize".to_owned(), limits.max_bytes.to_string()));
        let retries = number("DEBUGINFOD_RETRY_LIMIT").map_or(RETRIES, |limit| limit.min(10) as u32);
        Some(Self { servers, cache, client: Client::new(limits, headers, retries) })
    }

    /// The folder of the cache that elfutils and gdb share; `None` without a home folder.
    pub fn cache_folder(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        cache_folder(&var)
    }

    /// The servers, in the order of the variable.
    pub fn servers(&self) -> &[String] {
        &self.servers
    }

    /// Gets a file from the cache or the servers. Files of other kinds of servers are not available.
    pub(crate) fn fetch(
        &self,
        file: &RemoteFile<'_>,
        check: &dyn Fn(&Path) -> AttemptOutcome,
        observer: &dyn Observer,
    ) -> FetchResult {
        let Some(requested) = RequestedFile::of(file) else { return FetchResult::default() };
        let target = self.cache.join(&requested.id).join(&requested.file_name);
        let mut fetched = FetchResult::default();
        match self.in_cache(&target, check) {
            CacheLookup::Unknown => {}
            CacheLookup::Useless(outcome) => fetched.tried.push((target.clone(), outcome)),
            CacheLookup::Known(outcome) => {
                let path = (outcome == AttemptOutcome::Used).then(|| target.clone());
                return FetchResult { path, tried: vec![(target, outcome)] };
            }
        }
        // A cache that cannot be cleaned can still be used.
        let _ = self.clean();
        self.download(&requested, &target, check, observer, &mut fetched);
        fetched
    }

    fn in_cache(&self, target: &Path, check: &dyn Fn(&Path) -> AttemptOutcome) -> CacheLookup {
        let Ok(metadata) = fs::metadata(target) else { return CacheLookup::Unknown };
        if metadata.len() > 0 {
            return match check(target) {
                AttemptOutcome::Used => {
                    renew(target);
                    CacheLookup::Known(AttemptOutcome::Used)
                }
                outcome => CacheLookup::Useless(outcome),
            };
        }
        let age = metadata.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        let holds = Duration::from_secs(self.number_in(MISS_FILE, MISS_HOLDS));
        if age.is_none_or(|age| age > holds) {
            return CacheLookup::Unknown;
        }
        let text = "no server had it at the last request (an empty file in the cache records this)";
        CacheLookup::Known(AttemptOutcome::Unreadable(text.to_owned()))
    }

    /// Requests a file from all servers at once. If one sends a wrong file, asks the others again.
    fn download(
        &self,
        requested: &RequestedFile,
        target: &Path,
        check: &dyn Fn(&Path) -> AttemptOutcome,
        observer: &dyn Observer,
        fetched: &mut FetchResult,
    ) {
        let mut open: Vec<Address> = self.servers.iter().map(|server| requested.address(server)).collect();
        while !open.is_empty() {
            let Some(failed) = self.download_once(&open, target, check, observer, fetched) else { return };
            let others = open.into_iter().enumerate().filter(|(number, _)| !failed.contains(number));
            open = others.map(|(_, address)| address).collect();
        }
    }

    /// One round of requests. Returns the numbers of the addresses that did not have the file, if another
    /// round is of use.
    fn download_once(
        &self,
        open: &[Address],
        target: &Path,
        check: &dyn Fn(&Path) -> AttemptOutcome,
        observer: &dyn Observer,
        fetched: &mut FetchResult,
    ) -> Option<Vec<usize>> {
        let unusable = |what: &str, error: io::Error| {
            (target.to_owned(), AttemptOutcome::Unreadable(format!("{what}: {error}")))
        };
        let mut pending = match PendingFile::create(target) {
            Ok(pending) => pending,
            Err(error) => {
                fetched.tried.push(unusable("cannot write there", error));
                return None;
            }
        };
        let race = self.client.get(open, &mut pending.file, observer);
        let url = |number: usize| PathBuf::from(&open[number].url);
        let failures = race.failures.iter().map(|(number, failure)| (url(*number), outcome_of(failure)));
        fetched.tried.extend(failures);
        let Some(winner) = race.winner else {
            drop(pending);
            if race.failures.iter().all(|(_, failure)| *failure == TransferFailure::NotFound) {
                note_miss(target);
            }
            return None;
        };
        let outcome = check(&pending.path);
        let is_used = outcome == AttemptOutcome::Used;
        fetched.tried.push((url(winner), outcome));
        if !is_used {
            // The server sent a wrong file. Others may have the right one.
            return Some(race.failures.iter().map(|(number, _)| *number).chain([winner]).collect());
        }
        match pending.keep(Access::ReadOnly) {
            Ok(()) => fetched.path = Some(target.to_owned()),
            Err(error) => fetched.tried.push(unusable("cannot be kept", error)),
        }
        None
    }

    /// Removes files that were not used for a long time, at most once a day.
    fn clean(&self) -> io::Result<()> {
        let interval = self.cache.join(CLEAN_FILE);
        let every = Duration::from_secs(self.number_in(CLEAN_FILE, CLEAN_EVERY));
        let now = SystemTime::now();
        match fs::metadata(&interval).and_then(|metadata| metadata.modified()) {
            Ok(last) if now.duration_since(last).is_ok_and(|age| age < every) => return Ok(()),
            Ok(_) => open_regular(&interval)?.set_modified(now)?,
            Err(_) => {
                let mut pending = PendingFile::create(&interval)?;
                pending.file.write_all(CLEAN_EVERY.to_string().as_bytes())?;
                return pending.keep(Access::ReadWrite);
            }
        }
        let unused = Duration::from_secs(self.number_in(UNUSED_FILE, KEEP_UNUSED));
        for entry in entries(&self.cache, 1)? {
            let age = entry.used.and_then(|used| now.duration_since(used).ok());
            let is_old = age.is_some_and(|age| age > unused) && is_of_cache(&entry.path);
            if is_old || is_abandoned(&entry) {
                cache_file::remove(&entry.path, &self.cache)?;
            }
        }
        Ok(())
    }

    fn number_in(&self, file: &str, otherwise: u64) -> u64 {
        read_config(&self.cache.join(file)).and_then(|text| text.trim().parse().ok()).unwrap_or(otherwise)
    }
}

/// The result of looking in the cache.
enum CacheLookup {
    Unknown,
    /// The cache has a file, but not the requested one.
    Useless(AttemptOutcome),
    Known(AttemptOutcome),
}

pub(crate) fn outcome_of(failure: &TransferFailure) -> AttemptOutcome {
    match failure {
        TransferFailure::NotFound => AttemptOutcome::Missing,
        failure => AttemptOutcome::Unreadable(failure.to_string()),
    }
}

/// A file, as named by servers and the cache.
struct RequestedFile {
    id: String,
    file_name: String,
    /// The part of the address after the id.
    place: String,
}

impl RequestedFile {
    fn of(file: &RemoteFile<'_>) -> Option<Self> {
        let (id, file_name, place) = match file {
            RemoteFile::Binary(id) => (id, "executable".to_owned(), "executable".to_owned()),
            RemoteFile::DebugFile(id) => (id, "debuginfo".to_owned(), "debuginfo".to_owned()),
            RemoteFile::Source { build_id, path } => {
                let below = path.strip_prefix('/')?;
                (build_id, format!("source-{}", escaped(path)), format!("source/{}", encoded(below)))
            }
            RemoteFile::Pdb { .. } | RemoteFile::Pe { .. } | RemoteFile::Breakpad { .. } => return None,
        };
        Some(Self { id: id.to_string(), file_name, place })
    }

    fn address(&self, server: &str) -> Address {
        let url = format!("{server}/buildid/{}/{}", self.id, self.place);
        Address { server: server.to_owned(), url }
    }
}

/// The servers of `DEBUGINFOD_URLS`. Words between them, such as `ima:enforcing`, request signatures.
fn servers(urls: &str) -> Vec<String> {
    let urls = urls.split_ascii_whitespace().map(|url| url.trim_end_matches('/'));
    let mut servers: Vec<String> = Vec::new();
    for url in urls.filter(|url| url.starts_with("http://") || url.starts_with("https://")) {
        if !servers.iter().any(|known| known == url) {
            servers.push(url.to_owned());
        }
    }
    servers
}

fn cache_folder(var: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = path("DEBUGINFOD_CACHE_PATH") {
        return Some(folder);
    }
    let home = path("HOME");
    let old = home.as_ref().map(|home| home.join(".debuginfod_client_cache"));
    if let Some(old) = old.filter(|old| old.exists()) {
        return Some(old);
    }
    let caches = path("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")))?;
    Some(caches.join("debuginfod_client"))
}

/// The headers in a file: `NAME: VALUE` in each line.
fn headers(file: &str) -> Vec<(String, String)> {
    let text = read_config(Path::new(file)).unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    let is_token = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let pairs = pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    pairs.filter(|(name, value)| is_token(name) && !value.bytes().any(|byte| byte < 0x20)).collect()
}

fn read_config(path: &Path) -> Option<String> {
    use io::Read as _;
    let mut text = String::new();
    open_regular(path).ok()?.take(MAX_CONFIG).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Whether a client has created a path in the cache.
fn is_of_cache(path: &Path) -> bool {
    let Some(name) = path.file_name().map(|name| name.to_string_lossy()) else { return false };
    let kinds = ["debuginfo", "executable", "source", "section", "hdr-"];
    let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let is_id = folder.is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_id && kinds.iter().any(|kind| name.starts_with(kind))
}

/// The name of a source file in the cache: a hash of its path, and as much as fits of the end of the path,
/// with replaced separators.
fn escaped(path: &str) -> String {
    let hash = path.bytes().fold(5381_u32, |hash, byte| {
        // The bytes are signed on the machines for which the name was made.
        hash.wrapping_mul(33).wrapping_add(i32::from(byte as i8) as u32)
    });
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let name: String = path.bytes().map(|byte| if is_plain(byte) { byte as char } else { '#' }).collect();
    let len = name.len().min(MAX_NAME - 9);
    format!("{hash:08x}-{}", &name[name.len() - len..])
}

/// A path encoded for an address: all but unreserved characters and `/` become `%xx`.
pub(crate) fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            text.push(byte as char);
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Creates an empty file in place of a missing one.
fn note_miss(target: &Path) {
    // If this fails, the file is requested again.
    if let Ok(pending) = PendingFile::create(target) {
        let _ = pending.keep(Access::ReadWrite);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(values: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<OsString> {
        move |name| values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
    }

    #[test]
    fn no_variable_means_no_network() {
        assert!(Debuginfod::from_environment(environment(&[("HOME", "/h")])).is_none());
        let empty = &[("HOME", "/h"), ("DEBUGINFOD_URLS", " ima:enforcing  ")];
        assert!(Debuginfod::from_environment(environment(empty)).is_none());
    }

    #[test]
    fn servers_are_words_that_are_addresses() {
        let text =
            "ima:enforcing https://a.example/ ima:ignore http://b.example:8002  https://a.example file:///x";
        assert_eq!(servers(text), ["https://a.example", "http://b.example:8002"]);
    }

    #[test]
    fn the_cache_is_the_one_of_elfutils() {
        let check = |values, expected: &str| {
            assert_eq!(cache_folder(&environment(values)), Some(PathBuf::from(expected)), "{values:?}");
        };
        check(&[("HOME", "/h")], "/h/.cache/debuginfod_client");
        check(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")], "/x/debuginfod_client");
        check(&[("XDG_CACHE_HOME", "/x"), ("DEBUGINFOD_CACHE_PATH", "/d")], "/d");
        assert_eq!(cache_folder(&environment(&[])), None);
    }

    /// The names that debuginfod-find(1) of elfutils 0.192 and later uses for these paths.
    #[test]
    fn source_files_have_elfutils_names() {
        assert_eq!(escaped("/a"), format!("{:08x}-#a", 5381_u32 * 33 * 33 + 47 * 33 + 97));
        let long = format!("/{}/x.c", "d".repeat(200));
        let name = escaped(&long);
        assert_eq!(name.len(), MAX_NAME);
        assert!(name.ends_with("d#x.c"));
    }

    #[test]
    fn addresses_are_encoded() {
        assert_eq!(encoded("usr/src/a b+c/ü.c"), "usr/src/a%20b%2Bc/%C3%BC.c");
    }
}
