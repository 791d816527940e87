//! debuginfod.

use crate::server::{Answer, Server};
use crate::{Impatient, TestFolder, check};
use nyquist_download::{Debuginfod, Downloads, NoObserver, Observer};
use nyquist_object::BuildId;
use nyquist_symbols::{AttemptOutcome, Fetch as _, FetchResult, RemoteFile};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const ID: &str = "ab010203";
const DEBUG: &str = "/buildid/ab010203/debuginfo";

fn id() -> BuildId {
    BuildId::from_hex(ID).unwrap()
}

/// Fetches a file from the servers, with a cache in `folder` and these variables.
fn fetch_with(
    folder: &TestFolder,
    servers: &[&Server],
    file: &RemoteFile<'_>,
    variables: &[(&str, &str)],
    observer: Arc<dyn Observer>,
) -> FetchResult {
    let urls: Vec<_> = servers.iter().map(|server| format!("{}/", server.url)).collect();
    let var = |name: &str| match name {
        "DEBUGINFOD_URLS" => Some(OsString::from(urls.join(" "))),
        "DEBUGINFOD_CACHE_PATH" => Some(folder.0.clone().into_os_string()),
        name => variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()),
    };
    let downloads = Downloads::new(Debuginfod::from_environment(var), None, observer).unwrap();
    downloads.fetch(file, &check)
}

fn fetch(folder: &TestFolder, servers: &[&Server]) -> FetchResult {
    let variables = [("DEBUGINFOD_TIMEOUT", "20"), ("DEBUGINFOD_RETRY_LIMIT", "1")];
    fetch_with(folder, servers, &RemoteFile::DebugFile(&id()), &variables, Arc::new(NoObserver))
}

/// The files except those that configure the cache.
fn cached(folder: &TestFolder) -> Vec<String> {
    folder.files().into_iter().filter(|file| file.contains('/')).collect()
}

/// The server's response is not the file; `said` is the expected message.
fn refused(name: &str, answer: Answer, message: &str) {
    let folder = TestFolder::new(name);
    let server = Server::with(DEBUG, answer);
    let fetched = fetch(&folder, &[&server]);
    assert_eq!(fetched.path, None);
    let text = fetched.tried.last().unwrap().1.to_string();
    assert!(text.contains(message), "{name}: {text}");
    let is_missing = fetched.tried.last().unwrap().1 == AttemptOutcome::Missing;
    assert_eq!(cached(&folder).is_empty(), !is_missing, "{name}: {:?}", cached(&folder));
}

#[test]
fn a_file_is_kept_where_elfutils_keeps_it() {
    let folder = TestFolder::new("kept");
    let server = Server::with(DEBUG, Answer::File(b"right debug info".to_vec()));
    let target = folder.0.join(ID).join("debuginfo");
    let fetched = fetch(&folder, &[&server]);
    assert_eq!(fetched.path.as_ref(), Some(&target), "{fetched:?}");
    assert_eq!(fs::read(&target).unwrap(), b"right debug info");
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o400);
    assert_eq!(fetch(&folder, &[&server]).path, Some(target));
    assert_eq!(server.requests(), [DEBUG]);
    assert_eq!(cached(&folder), ["ab010203/debuginfo"]);
}

#[test]
fn binaries_and_sources_have_their_own_addresses() {
    let folder = TestFolder::new("kinds");
    let server = Server::new();
    server.answer("/buildid/ab010203/executable", Answer::File(b"right binary".to_vec()));
    server.answer("/buildid/ab010203/source/usr/src/a%20b.c", Answer::File(b"right source".to_vec()));
    let get = |file: &RemoteFile<'_>| fetch_with(&folder, &[&server], file, &[], Arc::new(NoObserver)).path;
    assert!(get(&RemoteFile::Binary(&id())).is_some());
    let source = get(&RemoteFile::Source { build_id: &id(), path: "/usr/src/a b.c" }).unwrap();
    let name = source.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("source-") && name.ends_with("-#usr#src#a#b.c"), "{name}");
    assert_eq!(get(&RemoteFile::Source { build_id: &id(), path: "relative.c" }), None);
}

#[test]
fn failing_servers_give_no_file() {
    refused("404", Answer::Status(404), "no such file");
    refused("500", Answer::Status(500), "status 500");
    refused("406", Answer::Status(406), "larger than");
    refused("cut", Answer::Cut(b"right".to_vec(), 5000), "");
    refused("garbage", Answer::Garbage, "connection failed");
    refused("loop", Answer::Redirect(DEBUG.to_owned()), "connection failed");
}

#[test]
fn lying_servers_give_no_file() {
    refused("wrong", Answer::File(b"wrong file".to_vec()), "another file (wrong)");
    refused("empty", Answer::File(Vec::new()), "another file (wrong)");
    refused("huge", Answer::Cut(b"right".to_vec(), 1 << 60), "larger than");
}

#[test]
fn a_body_without_an_end_is_cut_at_the_bound() {
    let folder = TestFolder::new("endless");
    let server = Server::with(DEBUG, Answer::Endless);
    let variables = [("DEBUGINFOD_MAXSIZE", "3000000")];
    let file = RemoteFile::DebugFile(&id());
    let fetched = fetch_with(&folder, &[&server], &file, &variables, Arc::new(NoObserver));
    assert_eq!(fetched.path, None);
    assert!(fetched.tried[0].1.to_string().contains("larger than 3000000 bytes"), "{fetched:?}");
    assert!(cached(&folder).is_empty());
}

#[test]
fn a_silent_server_is_waited_for_once() {
    for answer in [Answer::Silence, Answer::SilentBody] {
        let folder = TestFolder::new("silent");
        let server = Server::with(DEBUG, answer);
        let var = |name: &str| match name {
            "DEBUGINFOD_URLS" => Some(OsString::from(&server.url)),
            "DEBUGINFOD_CACHE_PATH" => Some(folder.0.clone().into_os_string()),
            "DEBUGINFOD_TIMEOUT" => Some("1".into()),
            _ => None,
        };
        let debuginfod = Debuginfod::from_environment(var);
        let downloads = Downloads::new(debuginfod, None, Arc::new(NoObserver)).unwrap();
        let fetched = downloads.fetch(&RemoteFile::DebugFile(&id()), &check);
        assert_eq!(fetched.path, None);
        let other = BuildId::from_hex("cd").unwrap();
        let again = downloads.fetch(&RemoteFile::DebugFile(&other), &check);
        assert!(again.tried[0].1.to_string().contains("not requested again"), "{again:?}");
        assert_eq!(server.requests(), [DEBUG], "one request in all");
        assert!(cached(&folder).is_empty());
    }
}

#[test]
fn the_whole_time_is_bounded_too() {
    let folder = TestFolder::new("max-time");
    let server = Server::with(DEBUG, Answer::Endless);
    let variables = [("DEBUGINFOD_MAXTIME", "1"), ("DEBUGINFOD_MAXSIZE", "1000000000000")];
    let file = RemoteFile::DebugFile(&id());
    let fetched = fetch_with(&folder, &[&server], &file, &variables, Arc::new(NoObserver));
    assert!(fetched.tried[0].1.to_string().contains("longer than 1 seconds"), "{fetched:?}");
}

#[test]
fn the_first_server_that_has_it_gives_it() {
    let folder = TestFolder::new("several");
    let none = Server::new();
    let silent = Server::with(DEBUG, Answer::Silence);
    let right = Server::with(DEBUG, Answer::File(b"right".to_vec()));
    assert!(fetch(&folder, &[&none, &silent, &right]).path.is_some());
}

#[test]
fn after_a_lying_server_others_are_queried() {
    let folder = TestFolder::new("lies");
    let lying = Server::with(DEBUG, Answer::File(b"wrong".to_vec()));
    let slow = Server::with(DEBUG, Answer::SecondTime(b"right".to_vec()));
    let fetched = fetch(&folder, &[&lying, &slow]);
    assert!(fetched.path.is_some(), "{fetched:?}");
    assert_eq!(cached(&folder), ["ab010203/debuginfo"]);
}

#[test]
fn a_connection_that_breaks_is_tried_again() {
    let folder = TestFolder::new("again");
    let server = Server::with(DEBUG, Answer::SecondTime(b"right".to_vec()));
    assert!(fetch(&folder, &[&server]).path.is_some());
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_missing_file_is_not_requested_again_soon() {
    let folder = TestFolder::new("miss");
    let server = Server::new();
    assert_eq!(fetch(&folder, &[&server]).path, None);
    let note = folder.0.join(ID).join("debuginfo");
    assert_eq!(fs::metadata(&note).unwrap().len(), 0, "as elfutils notes it");
    let again = fetch(&folder, &[&server]);
    assert!(again.tried[0].1.to_string().contains("no server had it"), "{again:?}");
    assert_eq!(server.requests().len(), 1);
    // The negative cache entry has expired, and the server has the file now.
    let before = SystemTime::now() - Duration::from_secs(700);
    File::options().write(true).open(&note).unwrap().set_modified(before).unwrap();
    fs::write(folder.0.join("cache_miss_s"), "800\n").unwrap();
    assert_eq!(fetch(&folder, &[&server]).path, None);
    assert_eq!(server.requests().len(), 1, "the folder says for how long");
    fs::write(folder.0.join("cache_miss_s"), "600").unwrap();
    server.answer(DEBUG, Answer::File(b"right".to_vec()));
    assert!(fetch(&folder, &[&server]).path.is_some());
}

#[test]
fn a_damaged_file_in_the_cache_is_replaced() {
    let folder = TestFolder::new("damaged");
    fs::create_dir(folder.0.join(ID)).unwrap();
    fs::write(folder.0.join(ID).join("debuginfo"), "damaged").unwrap();
    let server = Server::with(DEBUG, Answer::File(b"right".to_vec()));
    assert!(fetch(&folder, &[&server]).path.is_some());
    assert_eq!(fs::read(folder.0.join(ID).join("debuginfo")).unwrap(), b"right");
}

#[test]
fn files_unused_for_long_are_removed_once_a_day() {
    let folder = TestFolder::new("clean");
    let server = Server::new();
    let old = |file: &str, days: u64| {
        let path = folder.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = File::create(&path).unwrap();
        let time = SystemTime::now() - Duration::from_hours(24 * days);
        file.set_times(fs::FileTimes::new().set_accessed(time).set_modified(time)).unwrap();
    };
    old("cd/debuginfo", 9);
    old("cd/source-0123-#a.c", 9);
    old("ef/executable", 3);
    old("not-an-id/debuginfo", 9);
    old("cd.txt", 9);
    fs::write(folder.0.join("cache_clean_interval_s"), "86400").unwrap();
    old("cache_clean_interval_s", 0);
    fetch(&folder, &[&server]);
    assert!(folder.files().contains(&"cd/debuginfo".to_owned()), "cleaned less than a day ago");
    old("cache_clean_interval_s", 2);
    fs::remove_dir_all(folder.0.join(ID)).unwrap();
    fetch(&folder, &[&server]);
    let expected =
        ["ab010203/debuginfo", "cache_clean_interval_s", "cd.txt", "ef/executable", "not-an-id/debuginfo"];
    assert_eq!(folder.files(), expected);
}

#[test]
fn whoever_watches_ends_it() {
    let folder = TestFolder::new("cancelled");
    let server = Server::with(DEBUG, Answer::Silence);
    let observer = Arc::new(Impatient::default());
    let file = RemoteFile::DebugFile(&id());
    let fetched = fetch_with(&folder, &[&server], &file, &[], observer.clone());
    assert!(fetched.tried[0].1.to_string().contains("the download was cancelled"), "{fetched:?}");
    assert_eq!(observer.seen.lock().unwrap()[0], format!("{}{DEBUG}", server.url));
    assert!(cached(&folder).is_empty());
}

#[test]
fn a_server_absent_or_without_tls_is_unreachable() {
    let folder = TestFolder::new("unreachable");
    let plain = Server::with(DEBUG, Answer::File(b"right".to_vec()));
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    for url in [plain.url.replace("http:", "https:"), nobody] {
        let var = |name: &str| match name {
            "DEBUGINFOD_URLS" => Some(OsString::from(&url)),
            "DEBUGINFOD_CACHE_PATH" => Some(folder.0.clone().into_os_string()),
            _ => None,
        };
        let debuginfod = Debuginfod::from_environment(var);
        let downloads = Downloads::new(debuginfod, None, Arc::new(NoObserver)).unwrap();
        let fetched = downloads.fetch(&RemoteFile::DebugFile(&id()), &check);
        assert_eq!(fetched.path, None);
        let text = fetched.tried[0].1.to_string();
        assert!(text.contains("cannot be reached") || text.contains("connection failed"), "{url}: {text}");
    }
}

#[test]
fn with_an_unwritable_cache_no_server_is_queried() {
    let folder = TestFolder::new("read-only");
    fs::write(folder.0.join("file"), "").unwrap();
    let server = Server::with(DEBUG, Answer::File(b"right".to_vec()));
    let var = |name: &str| match name {
        "DEBUGINFOD_URLS" => Some(OsString::from(&server.url)),
        "DEBUGINFOD_CACHE_PATH" => Some(folder.0.join("file/below").into_os_string()),
        _ => None,
    };
    let debuginfod = Debuginfod::from_environment(var);
    let downloads = Downloads::new(debuginfod, None, Arc::new(NoObserver)).unwrap();
    let fetched = downloads.fetch(&RemoteFile::DebugFile(&id()), &check);
    assert!(fetched.tried[0].1.to_string().contains("cannot write there"), "{fetched:?}");
    assert!(server.requests().is_empty());
}
