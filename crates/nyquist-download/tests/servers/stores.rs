//! Symbol servers and stores.

use crate::server::{Answer, Server};
use crate::{TestFolder, check};
use nyquist_download::{Downloads, NoObserver, StoreConfig, SymbolStores, parse_symbol_path};
use nyquist_object::DebugId;
use nyquist_symbols::{Fetch as _, FetchResult, RemoteFile};
use std::fs;
use std::path::Path;
use std::sync::Arc;

const PDB: &str = "app.pdb/0123456789ABCDEF0123456789ABCDEF1/app.pdb";
const SYM: &str = "libx.so/0123456789ABCDEF0123456789ABCDEF1/libx.so.sym";

fn id() -> DebugId {
    DebugId::from_breakpad("0123456789ABCDEF0123456789ABCDEF1").unwrap()
}

fn fetch(config: &StoreConfig, file: &RemoteFile<'_>) -> FetchResult {
    let stores = SymbolStores::new(config);
    Downloads::new(None, stores, Arc::new(NoObserver)).unwrap().fetch(file, &check)
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn pdb() -> RemoteFile<'static> {
    RemoteFile::Pdb { name: "app.pdb", id: id() }
}

#[test]
fn a_symbol_path_fills_its_nearest_store() {
    let folder = TestFolder::new("srv");
    let server = Server::with(&format!("/{PDB}"), Answer::File(b"right pdb".to_vec()));
    let (near, far) = (folder.0.join("near"), folder.0.join("far"));
    let path = format!("srv*{}*{}*{}", near.display(), far.display(), server.url);
    let config = StoreConfig { symbol_path: parse_symbol_path(&path), ..StoreConfig::default() };
    assert_eq!(fetch(&config, &pdb()).path, Some(near.join(PDB)));
    assert_eq!(fetch(&config, &pdb()).path, Some(near.join(PDB)));
    assert_eq!(server.requests(), [format!("/{PDB}")]);
    fs::rename(&near, &far).unwrap();
    assert_eq!(fetch(&config, &pdb()).path, Some(far.join(PDB)));
}

#[test]
fn a_cache_entry_holds_for_the_servers_after_it() {
    let folder = TestFolder::new("cache");
    let server = Server::with(&format!("/{PDB}"), Answer::File(b"right pdb".to_vec()));
    let path = format!("cache*{};srv*{}", folder.0.display(), server.url);
    let config = StoreConfig { symbol_path: parse_symbol_path(&path), ..StoreConfig::default() };
    assert_eq!(fetch(&config, &pdb()).path, Some(folder.0.join(PDB)));
}

#[test]
fn folders_are_looked_into_in_all_three_layouts() {
    let check = |name: &str, two_tiers: bool| {
        let folder = TestFolder::new("layout");
        if two_tiers {
            write(&folder.0.join("index2.txt"), "");
        }
        write(&folder.0.join(name), "right");
        let path = folder.0.to_str().unwrap();
        let config = StoreConfig { symbol_path: parse_symbol_path(path), ..StoreConfig::default() };
        assert_eq!(fetch(&config, &pdb()).path, Some(folder.0.join(name)));
    };
    check(PDB, false);
    check(&format!("ap/{PDB}"), true);
    check("app.pdb", false);
}

#[test]
fn programs_are_found_by_time_stamp_and_size() {
    let folder = TestFolder::new("pe");
    let path = "app.exe/5F9A3B2C1a000/app.exe";
    let server = Server::with(&format!("/{path}"), Answer::File(b"right exe".to_vec()));
    let config = StoreConfig {
        windows_servers: vec![format!("{}/", server.url)],
        windows_cache: Some(folder.0.clone()),
        ..StoreConfig::default()
    };
    let file = RemoteFile::Pe { name: "app.exe", code_id: "5F9A3B2C1a000" };
    assert_eq!(fetch(&config, &file).path, Some(folder.0.join(path)));
}

#[test]
fn breakpad_folders_come_before_breakpad_servers() {
    let folder = TestFolder::new("breakpad");
    let server = Server::with(&format!("/{SYM}"), Answer::File(b"right sym".to_vec()));
    let (local, cache) = (folder.0.join("local"), folder.0.join("cache"));
    let config = StoreConfig {
        breakpad_folders: vec![local.clone()],
        breakpad_servers: vec![server.url.clone()],
        breakpad_cache: Some(cache.clone()),
        ..StoreConfig::default()
    };
    let file = RemoteFile::Breakpad { name: "libx.so", id: id() };
    assert_eq!(fetch(&config, &file).path, Some(cache.join(SYM)));
    write(&local.join(SYM), "right");
    assert_eq!(fetch(&config, &file).path, Some(local.join(SYM)));
    let of_pdb = RemoteFile::Breakpad { name: "app.pdb", id: id() };
    let tried = fetch(&config, &of_pdb).tried;
    assert!(tried[0].0.ends_with("app.pdb/0123456789ABCDEF0123456789ABCDEF1/app.sym"), "{tried:?}");
}

#[test]
fn wrong_and_missing_files_leave_nothing() {
    let folder = TestFolder::new("wrong");
    for answer in [Answer::File(b"wrong".to_vec()), Answer::Status(404), Answer::Cut(b"right".to_vec(), 9999)]
    {
        let server = Server::with(&format!("/{PDB}"), answer);
        let path = format!("srv*{}*{}", folder.0.display(), server.url);
        let config = StoreConfig { symbol_path: parse_symbol_path(&path), ..StoreConfig::default() };
        assert_eq!(fetch(&config, &pdb()).path, None);
        assert!(folder.files().is_empty(), "{:?}", folder.files());
        assert!(fs::read_dir(&folder.0).unwrap().next().is_none(), "no folders either");
        write(&folder.0.join(PDB), "the user's own, whatever it is");
        assert_eq!(fetch(&config, &pdb()).path, None);
        assert_eq!(folder.files(), [PDB]);
        fs::remove_dir_all(folder.0.join("app.pdb")).unwrap();
    }
}

const PACKED: &str = "app.pdb/0123456789ABCDEF0123456789ABCDEF1/app.pd_";
const POINTER: &str = "app.pdb/0123456789ABCDEF0123456789ABCDEF1/file.ptr";

/// A cabinet with one file, not compressed (`[MS-CAB]`): header, folder, file, data.
fn cabinet(contents: &[u8]) -> Vec<u8> {
    let (short, long) = (|n: usize| (n as u16).to_le_bytes(), |n: usize| (n as u32).to_le_bytes());
    let mut bytes =
        [&b"MSCF"[..], &[0; 12], &long(44), &[0, 0, 0, 0, 3, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0]].concat();
    bytes.extend([&long(62)[..], &short(1), &short(0)].concat());
    bytes.extend([&long(contents.len())[..], &[0; 12], b"a\0"].concat());
    bytes.extend([&long(0)[..], &short(contents.len()), &short(contents.len()), contents].concat());
    bytes
}

fn of_server(server: &Server, cache: &Path) -> StoreConfig {
    let path = format!("srv*{}*{}", cache.display(), server.url);
    StoreConfig { symbol_path: parse_symbol_path(&path), ..StoreConfig::default() }
}

#[test]
fn a_servers_compressed_file_is_kept_expanded() {
    let folder = TestFolder::new("packed");
    let server = Server::with(&format!("/{PACKED}"), Answer::File(cabinet(b"right pdb")));
    let config = of_server(&server, &folder.0);
    assert_eq!(fetch(&config, &pdb()).path, Some(folder.0.join(PDB)));
    assert_eq!(fs::read(folder.0.join(PDB)).unwrap(), b"right pdb");
    assert_eq!(folder.files(), [PDB]);
    assert_eq!(fetch(&config, &pdb()).path, Some(folder.0.join(PDB)));
    assert_eq!(server.requests(), [format!("/{PDB}"), format!("/{PACKED}")]);
}

#[test]
fn a_bad_compressed_file_leaves_nothing() {
    let folder = TestFolder::new("packed-wrong");
    let cut = cabinet(b"right pdb");
    for (answer, reason) in [
        (cabinet(b"wrong"), "wrong"),
        (cut[..cut.len() - 1].to_vec(), "damaged"),
        (b"MS".to_vec(), "not a cabinet"),
        (cabinet(&[b"right".as_slice(), &[0; 3000]].concat()), "larger than 3000 bytes"),
    ] {
        let server = Server::with(&format!("/{PACKED}"), Answer::File(answer));
        let mut config = of_server(&server, &folder.0);
        config.limits.max_bytes = 3000;
        let fetched = fetch(&config, &pdb());
        assert_eq!(fetched.path, None);
        assert!(fetched.tried.last().unwrap().1.to_string().contains(reason), "{reason}: {fetched:?}");
        assert!(fs::read_dir(&folder.0).unwrap().next().is_none(), "{reason}");
    }
}

#[test]
fn a_folders_compressed_file_expands_into_cache() {
    let (store, cache) = (TestFolder::new("store"), TestFolder::new("expanded"));
    for (place, two_tiers) in
        [(PACKED.to_owned(), false), (format!("ap/{PACKED}"), true), ("app.pd_".to_owned(), false)]
    {
        let store = store.0.join(if two_tiers { "tiers" } else { place.split('/').next().unwrap() });
        let packed = store.join(&place);
        fs::create_dir_all(packed.parent().unwrap()).unwrap();
        fs::write(packed, cabinet(b"right pdb")).unwrap();
        if two_tiers {
            write(&store.join("index2.txt"), "");
        }
        let symbol_path = parse_symbol_path(store.to_str().unwrap());
        let config = StoreConfig { symbol_path: symbol_path.clone(), ..StoreConfig::default() };
        let fetched = fetch(&config, &pdb());
        assert!(
            fetched.tried.last().unwrap().1.to_string().contains("no folder to expand it to"),
            "{fetched:?}"
        );
        let config =
            StoreConfig { symbol_path, windows_cache: Some(cache.0.clone()), ..StoreConfig::default() };
        for _ in 0..2 {
            assert_eq!(fetch(&config, &pdb()).path, Some(cache.0.join(PDB)), "{place}");
        }
        fs::remove_file(cache.0.join(PDB)).unwrap();
    }
}

#[test]
fn a_pointer_leads_to_the_file_or_says_why_not() {
    let folder = TestFolder::new("pointer");
    let target = folder.0.join("builds/app.pdb");
    write(&target, "right pdb");
    let cache = folder.0.join("cache");
    for (text, expected, reason) in [
        (format!("PATH:{}\r\n", target.display()), Some(target.clone()), "used"),
        (format!("PATH:{}", folder.0.display()), None, "no such file"),
        ("MSG: it was withdrawn".to_owned(), None, "the store says: it was withdrawn"),
        ("PATH:\\\\builds\\app.pdb".to_owned(), None, "not a path of this system"),
    ] {
        let store = folder.0.join("store");
        write(&store.join(POINTER), &text);
        let local = parse_symbol_path(store.to_str().unwrap());
        let server = Server::with(&format!("/{POINTER}"), Answer::File(text.clone().into_bytes()));
        for config in
            [StoreConfig { symbol_path: local, ..StoreConfig::default() }, of_server(&server, &cache)]
        {
            let fetched = fetch(&config, &pdb());
            assert_eq!(fetched.path, expected, "{text}");
            assert!(fetched.tried.last().unwrap().1.to_string().contains(reason), "{text}: {fetched:?}");
        }
        let requested = [PDB, PACKED, POINTER].map(|path| format!("/{path}"));
        assert_eq!(server.requests(), requested);
        assert!(!cache.exists() || fs::read_dir(&cache).unwrap().next().is_none());
    }
}

#[test]
fn a_name_leading_elsewhere_is_not_requested() {
    let folder = TestFolder::new("names");
    write(&folder.0.join("secret"), "right");
    let config = StoreConfig {
        symbol_path: parse_symbol_path(folder.0.join("a/b").to_str().unwrap()),
        ..StoreConfig::default()
    };
    for name in ["../../secret", "..", ".", "", "a\\b", "a\0b", "/etc/passwd"] {
        let fetched = fetch(&config, &RemoteFile::Pdb { name, id: id() });
        assert!(fetched.tried.is_empty() && fetched.path.is_none(), "{name:?}");
    }
}

#[test]
fn only_own_caches_are_kept_small() {
    let own = TestFolder::new("own");
    let users = TestFolder::new("users");
    let server = Server::with(&format!("/{PDB}"), Answer::File(b"right".to_vec()));
    for folder in [&own, &users] {
        write(&folder.0.join("old.pdb/1/old.pdb"), &"x".repeat(2000));
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(100);
        let file = fs::File::options().write(true).open(folder.0.join("old.pdb/1/old.pdb")).unwrap();
        file.set_times(fs::FileTimes::new().set_accessed(long_ago).set_modified(long_ago)).unwrap();
        let config = StoreConfig {
            windows_servers: vec![server.url.clone()],
            windows_cache: Some(folder.0.clone()),
            own_folder: Some(own.0.clone()),
            quota: 1000,
            ..StoreConfig::default()
        };
        assert!(fetch(&config, &pdb()).path.is_some());
    }
    assert_eq!(own.files(), [PDB]);
    assert_eq!(users.files(), [PDB, "old.pdb/1/old.pdb"]);
}
