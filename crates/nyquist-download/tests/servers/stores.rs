//! Symbol servers and stores.

use crate::server::{Answer, Server};
use crate::{Folder, check};
use nyquist_download::{Downloads, StoreConfig, SymbolStores, Unobserved, parse_symbol_path};
use nyquist_object::DebugId;
use nyquist_symbols::{Fetch as _, Fetched, RemoteFile};
use std::fs;
use std::path::Path;
use std::sync::Arc;

const PDB: &str = "app.pdb/0123456789ABCDEF0123456789ABCDEF1/app.pdb";
const SYM: &str = "libx.so/0123456789ABCDEF0123456789ABCDEF1/libx.so.sym";

fn id() -> DebugId {
    DebugId::from_breakpad("0123456789ABCDEF0123456789ABCDEF1").unwrap()
}

fn fetch(config: &StoreConfig, file: &RemoteFile<'_>) -> Fetched {
    let stores = SymbolStores::new(config);
    Downloads::new(None, stores, Arc::new(Unobserved)).unwrap().fetch(file, &check)
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
    let folder = Folder::new("srv");
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
fn what_cache_names_holds_for_the_servers_after_it() {
    let folder = Folder::new("cache");
    let server = Server::with(&format!("/{PDB}"), Answer::File(b"right pdb".to_vec()));
    let path = format!("cache*{};srv*{}", folder.0.display(), server.url);
    let config = StoreConfig { symbol_path: parse_symbol_path(&path), ..StoreConfig::default() };
    assert_eq!(fetch(&config, &pdb()).path, Some(folder.0.join(PDB)));
}

#[test]
fn folders_are_looked_into_in_all_three_layouts() {
    let check = |name: &str, two_tiers: bool| {
        let folder = Folder::new("layout");
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
fn programs_are_found_by_their_time_stamp_and_size() {
    let folder = Folder::new("pe");
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
    let folder = Folder::new("breakpad");
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
fn wrong_and_missing_files_leave_nothing_and_remove_nothing() {
    let folder = Folder::new("wrong");
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

#[test]
fn a_compressed_file_is_said_to_be_one() {
    let folder = Folder::new("compressed");
    write(&folder.0.join(PDB).with_extension("pd_"), "MSCF");
    let config =
        StoreConfig { symbol_path: parse_symbol_path(folder.0.to_str().unwrap()), ..StoreConfig::default() };
    let fetched = fetch(&config, &pdb());
    assert!(fetched.tried.last().unwrap().1.to_string().contains("compressed"), "{fetched:?}");
}

#[test]
fn a_name_that_leads_elsewhere_is_asked_of_nobody() {
    let folder = Folder::new("names");
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
    let own = Folder::new("own");
    let users = Folder::new("users");
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
