//! Checks that the cache changes the cost of answers, but never the answers.

use nyquist_object::{Elf, FileSource, RelativeAddress};
use nyquist_symbols::{AddressInfo, AnswerCache, Finder, ModuleRequest, SearchPaths, Symbol};
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;

/// A folder that is removed at the end of the test.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nyquist-answers-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn cache(&self) -> Arc<AnswerCache> {
        Arc::new(AnswerCache::new(self.0.join("a/b")))
    }

    /// The only file of answers.
    fn file(&self) -> PathBuf {
        let files = self.files("answers");
        let [file] = &files[..] else { panic!("{files:?}") };
        file.clone()
    }

    /// The files of the cache with this extension.
    fn files(&self, extension: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(self.0.join("a/b")).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|of_path| of_path == extension)).collect()
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn finder(cache: Option<Arc<AnswerCache>>) -> Finder {
    let finder = Finder::new(SearchPaths::default());
    match cache {
        Some(cache) => finder.with_cache(cache),
        None => finder,
    }
}

fn answers(path: &Path, addresses: &[RelativeAddress], cache: Option<Arc<AnswerCache>>) -> Vec<AddressInfo> {
    let finder = finder(cache);
    let request = ModuleRequest { path: path.to_owned(), ..ModuleRequest::default() };
    let module = finder.open(&finder.find(&request)).unwrap();
    module.symbolicate(addresses, NonZeroUsize::MIN, &AtomicBool::new(false))
}

/// Addresses all over a file's code, and some outside of it, in no order.
fn addresses(path: &Path, count: u32) -> Option<Vec<RelativeAddress>> {
    let elf = Elf::open(FileSource::new(File::open(path).ok()?)).ok()?;
    let text = elf.section(".text").filter(|text| text.size > 0)?;
    let start = u32::try_from(text.address.offset_from(elf.image_base())?).ok()?;
    let size = u32::try_from(text.size).ok()?;
    let spread = |n: u32| (u64::from(n) * 2_654_435_761 % u64::from(size)) as u32;
    let inside = (0..count).map(|n| RelativeAddress(start.wrapping_add(spread(n))));
    Some(inside.chain([RelativeAddress(0), RelativeAddress(u32::MAX)]).collect())
}

fn own() -> (PathBuf, Vec<RelativeAddress>) {
    let path = std::env::current_exe().unwrap();
    let addresses = addresses(&path, 500).unwrap();
    (path, addresses)
}

#[test]
fn answers_are_the_same_with_and_without() {
    let folder = TestFolder::new("same");
    let listed = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/bin"].map(fs::read_dir);
    let files = listed.into_iter().flatten().flatten().flatten().map(|entry| entry.path());
    let files = files.filter(|path| path.is_file()).filter_map(|path| Some((addresses(&path, 200)?, path)));
    let mut files: Vec<_> = files.take(60).collect();
    let (path, addresses) = own();
    files.push((addresses, path));
    for (addresses, path) in files {
        let without = answers(&path, &addresses, None);
        assert_eq!(answers(&path, &addresses, Some(folder.cache())), without, "first, {}", path.display());
        assert_eq!(answers(&path, &addresses, Some(folder.cache())), without, "again, {}", path.display());
        let beside: Vec<_> = addresses.iter().map(|address| RelativeAddress(address.0 ^ 5)).collect();
        let without = answers(&path, &beside, None);
        assert_eq!(answers(&path, &beside, Some(folder.cache())), without, "beside, {}", path.display());
    }
}

#[test]
fn without_debug_info_one_answer_is_a_function() {
    let folder = TestFolder::new("functions");
    let (source, path) = (folder.0.join("two.c"), folder.0.join("two.so"));
    let body = "(volatile int *at) { for (int i = 0; i < 9; i++) *at += i * *at; }";
    fs::write(&source, format!("void one{body}\nvoid other{body}\n")).unwrap();
    let compiler = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&path, &source]).status();
    assert!(compiler.unwrap().success());
    let elf = Elf::open(FileSource::new(File::open(&path).unwrap())).unwrap();
    let text = elf.section(".text").unwrap();
    let start = text.address.offset_from(elf.image_base()).unwrap() as u32;
    let all: Vec<_> = (start..start + text.size as u32).map(RelativeAddress).collect();
    let all = answers(&path, &all, None);
    let of = |name| all.iter().flat_map(|info| &info.symbol).find(|symbol| &*symbol.name == name).unwrap();
    let [one, other] = ["one", "other"].map(of);
    let last = |symbol: &Symbol| RelativeAddress(symbol.address.0 + symbol.size.unwrap() - 1);
    answers(&path, &[last(one)], Some(folder.cache()));
    let size = || fs::metadata(folder.file()).unwrap().len();
    let before = size();
    let within: Vec<_> = (one.address.0..=last(one).0).map(RelativeAddress).collect();
    let found = answers(&path, &within, Some(folder.cache()));
    assert!(found.iter().all(|info| info.symbol.as_ref() == Some(one)), "{found:?}");
    assert_eq!(size(), before, "nothing was looked up");
    let found = answers(&path, &[last(other)], Some(folder.cache()));
    assert_eq!(found[0].symbol.as_ref(), Some(other));
    assert!(size() > before);
}

#[test]
fn known_addresses_are_kept_and_new_ones_added() {
    let folder = TestFolder::new("added");
    let (path, all) = own();
    let (some, rest) = all.split_at(100);
    answers(&path, some, Some(folder.cache()));
    let size = |file: &Path| fs::metadata(file).unwrap().len();
    let before = size(&folder.file());
    answers(&path, some, Some(folder.cache()));
    assert_eq!(size(&folder.file()), before, "nothing was looked up");
    assert_eq!(answers(&path, &all, Some(folder.cache())), answers(&path, &all, None));
    assert!(size(&folder.file()) > before);
    let modules = folder.cache().modules().unwrap();
    let mut distinct = all.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(modules[0].path.as_deref(), Some(&*path));
    assert_eq!(modules[0].answers, distinct.len());
    let (_, of_tables) = folder.cache().table_files().unwrap();
    assert_eq!(folder.cache().clear().unwrap(), modules[0].bytes + of_tables);
    assert!(folder.cache().modules().unwrap().is_empty());
    assert!(!rest.is_empty());
}

/// A changed answer in the cache must be returned. This is the only way to check that the cache was used.
#[test]
fn a_single_lookup_asks_the_cache_too() {
    let folder = TestFolder::new("single");
    let (path, addresses) = own();
    let expected = answers(&path, &addresses, Some(folder.cache()));
    let finder = finder(Some(folder.cache()));
    let request = ModuleRequest { path, ..ModuleRequest::default() };
    let module = finder.open(&finder.find(&request)).unwrap();
    for (address, expected) in addresses.iter().zip(expected) {
        assert_eq!(module.lookup(*address), expected);
    }
}

#[test]
fn a_file_that_was_written_to_is_another_module() {
    let folder = TestFolder::new("changed");
    let (own, addresses) = own();
    let copy = folder.0.join("copy");
    fs::copy(own, &copy).unwrap();
    answers(&copy, &addresses, Some(folder.cache()));
    let first = folder.file();
    let now = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    File::options().write(true).open(&copy).unwrap().set_modified(now).unwrap();
    answers(&copy, &addresses, Some(folder.cache()));
    assert_eq!(folder.cache().modules().unwrap().len(), 2);
    assert!(first.exists());
}

#[test]
fn files_changing_while_read_leave_nothing() {
    let folder = TestFolder::new("meanwhile");
    let (own, addresses) = own();
    let copy = folder.0.join("copy");
    fs::copy(own, &copy).unwrap();
    let finder = finder(Some(folder.cache()));
    let request = ModuleRequest { path: copy.clone(), ..ModuleRequest::default() };
    let module = finder.open(&finder.find(&request)).unwrap();
    File::options().write(true).open(&copy).unwrap().set_len(100).unwrap();
    module.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
    assert!(folder.cache().modules().unwrap().is_empty());
}

#[test]
fn what_was_cancelled_is_looked_up_the_next_time() {
    let folder = TestFolder::new("cancelled");
    let (path, addresses) = own();
    let finder = finder(Some(folder.cache()));
    let request = ModuleRequest { path: path.clone(), ..ModuleRequest::default() };
    let module = finder.open(&finder.find(&request)).unwrap();
    module.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(true));
    assert_eq!(answers(&path, &addresses, Some(folder.cache())), answers(&path, &addresses, None));
}

#[test]
fn damage_is_repaired_and_costs_no_answer() {
    let folder = TestFolder::new("damage");
    let (path, addresses) = own();
    let expected = answers(&path, &addresses, None);
    answers(&path, &addresses[..200], Some(folder.cache()));
    answers(&path, &addresses[..300], Some(folder.cache()));
    let whole = fs::read(folder.file()).unwrap();
    let cut = whole[..whole.len() - 7].to_vec();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for bytes in [cut, flipped, b"something else".to_vec(), Vec::new(), vec![0; 5000]] {
        fs::write(folder.file(), &bytes).unwrap();
        assert_eq!(answers(&path, &addresses, Some(folder.cache())), expected);
        let size = fs::metadata(folder.file()).unwrap().len();
        assert_eq!(answers(&path, &addresses, Some(folder.cache())), expected);
        assert_eq!(fs::metadata(folder.file()).unwrap().len(), size, "it was whole again");
    }
}

#[test]
fn many_at_once_lose_nothing() {
    let folder = TestFolder::new("many");
    let (path, addresses) = own();
    let expected = answers(&path, &addresses, None);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(part) =
                    addresses.chunks(20).nth(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    answers(&path, part, Some(folder.cache()));
                }
            });
        }
    });
    let before = fs::metadata(folder.file()).unwrap().len();
    assert_eq!(answers(&path, &addresses, Some(folder.cache())), expected);
    assert_eq!(fs::metadata(folder.file()).unwrap().len(), before, "all were kept");
}

#[test]
fn what_was_not_used_for_longest_makes_room() {
    let folder = TestFolder::new("quota");
    let (own, addresses) = own();
    let copies = ["one", "two", "three"].map(|name| folder.0.join(name));
    for copy in &copies {
        fs::copy(&own, copy).unwrap();
    }
    answers(&copies[0], &addresses, Some(folder.cache()));
    let first = folder.file();
    let size = fs::metadata(&first).unwrap().len();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(50);
    File::open(&first).unwrap().set_modified(long_ago).unwrap();
    answers(&copies[1], &addresses, Some(folder.cache()));
    let small = || Arc::new(AnswerCache::new(folder.0.join("a/b")).with_quota(size * 5 / 2));
    answers(&copies[2], &addresses, Some(small()));
    assert!(!first.exists(), "the oldest went");
    assert_eq!(small().modules().unwrap().len(), 2);
}

#[test]
fn a_folder_that_cannot_be_is_no_error() {
    let folder = TestFolder::new("no-folder");
    let (path, addresses) = own();
    fs::write(folder.0.join("a"), "a file").unwrap();
    let cache = folder.cache();
    assert_eq!(answers(&path, &addresses, Some(cache.clone())), answers(&path, &addresses, None));
    assert!(cache.problem().unwrap().contains("a/b"), "{:?}", cache.problem());
}

#[test]
fn a_link_in_the_place_of_a_file_is_not_followed() {
    let folder = TestFolder::new("link");
    let (path, addresses) = own();
    answers(&path, &addresses, Some(folder.cache()));
    let file = folder.file();
    let victim = folder.0.join("victim");
    fs::write(&victim, "precious").unwrap();
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&victim, &file).unwrap();
    let cache = folder.cache();
    answers(&path, &addresses, Some(cache.clone()));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(cache.problem().is_some());
}

/// A library with compressed debug info, and an address in each of two functions.
fn compressed(folder: &TestFolder) -> (PathBuf, [RelativeAddress; 2]) {
    let (source, path) = (folder.0.join("two.c"), folder.0.join("two.so"));
    let body = "(volatile int *at) { for (int i = 0; i < 9; i++) *at += i * *at; }";
    fs::write(&source, format!("void one{body}\nvoid other{body}\n")).unwrap();
    let flags = ["-shared", "-fPIC", "-g", "-gz=zlib", "-o"];
    assert!(Command::new("cc").args(flags).args([&path, &source]).status().unwrap().success());
    let elf = Elf::open(FileSource::new(File::open(&path).unwrap())).unwrap();
    assert!(elf.section(".debug_info").is_some_and(|info| elf.is_compressed(info)), "it is compressed");
    let text = elf.section(".text").unwrap();
    let start = text.address.offset_from(elf.image_base()).unwrap() as u32;
    let all: Vec<_> = (start..start + text.size as u32).map(RelativeAddress).collect();
    let all = answers(&path, &all, None);
    let start_of = |name| {
        let symbols = all.iter().flat_map(|info| &info.symbol);
        symbols.into_iter().find(|symbol| &*symbol.name == name).unwrap().address
    };
    (path, ["one", "other"].map(start_of))
}

/// The files of inflated sections in the cache.
fn inflated(folder: &TestFolder) -> Vec<PathBuf> {
    folder.files("sections")
}

fn line_of(info: &AddressInfo) -> Option<u32> {
    info.frames.last().and_then(|frame| frame.line)
}

#[test]
fn what_was_inflated_once_is_read_as_it_was_then() {
    let folder = TestFolder::new("inflated");
    let (path, [one, other]) = compressed(&folder);
    let expected = answers(&path, &[one, other], None);
    assert_eq!([&expected[0], &expected[1]].map(line_of), [Some(1), Some(2)]);
    assert_eq!(answers(&path, &[one], Some(folder.cache())), expected[..1]);
    let [file] = &inflated(&folder)[..] else { panic!("{:?}", inflated(&folder)) };
    let whole = fs::read(file).unwrap();
    assert_eq!(folder.cache().inflated_files().unwrap(), (1, whole.len() as u64));
    assert_eq!(folder.cache().modules().unwrap().len(), 1, "it is no module of its own");

    // The cached sections are used. The only way to check this is to change them.
    let ask = |address| answers(&path, &[address], Some(folder.cache())).pop().unwrap();
    let name = b"two.c\0";
    let mut other_name = whole.clone();
    let places: Vec<_> = (0..whole.len() - name.len()).filter(|at| whole[*at..].starts_with(name)).collect();
    assert!(!places.is_empty());
    for at in places {
        other_name[at] = b'T';
    }
    fs::write(file, &other_name).unwrap();
    let read = ask(RelativeAddress(other.0 + 1));
    assert!(read.frames[0].file.as_deref().is_some_and(|file| file.ends_with("Two.c")), "{read:?}");

    // An incomplete file is made again.
    fs::write(file, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(ask(other), expected[1]);
    assert_eq!(fs::read(file).unwrap(), whole);
}

#[test]
fn stale_inflated_sections_are_not_read() {
    let folder = TestFolder::new("inflated-other");
    let (path, [one, other]) = compressed(&folder);
    answers(&path, &[one], Some(folder.cache()));
    File::open(&path).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(answers(&path, &[other], Some(folder.cache())), answers(&path, &[other], None));
    assert_eq!(inflated(&folder).len(), 2);
    folder.cache().clear().unwrap();
    assert!(inflated(&folder).is_empty());
}

#[test]
fn inflated_sections_without_room_are_not_kept() {
    let folder = TestFolder::new("inflated-large");
    let (path, [one, _]) = compressed(&folder);
    let small = Arc::new(AnswerCache::new(folder.0.join("a/b")).with_quota(400));
    assert_eq!(answers(&path, &[one], Some(small)), answers(&path, &[one], None));
    assert!(inflated(&folder).is_empty());
}

/// Modules that share a supplementary file do this.
#[test]
fn many_inflating_one_file_at_once_keep_it_whole() {
    let folder = TestFolder::new("inflated-at-once");
    let (path, [one, other]) = compressed(&folder);
    let expected = answers(&path, &[one, other], None);
    for round in 0..20 {
        let cache = folder.cache();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(answers(&path, &[one, other], Some(cache.clone())), expected));
            }
        });
        assert_eq!(cache.problem(), None, "round {round}");
        assert_eq!(inflated(&folder).len(), 1, "round {round}");
        cache.clear().unwrap();
    }
}

/// A library without debug info, with enough symbols that their table is cached. Its functions have 8 bytes
/// each. Every tenth has a second name, and every hundredth a label in it.
fn large(folder: &TestFolder) -> (PathBuf, Vec<RelativeAddress>) {
    let (source, path) = (folder.0.join("large.s"), folder.0.join("large.so"));
    let mut text = String::from(".text\n");
    for n in 0..20_000 {
        let label = if n % 100 == 0 { format!("label{n}:\n") } else { String::new() };
        let names = [Some(format!("f{n}")), (n % 10 == 0).then(|| format!("_f{n}"))];
        let lines = |form: &dyn Fn(&str) -> String| names.iter().flatten().map(|name| form(name)).collect();
        let starts: String = lines(&|name| format!(".type {name}, @function\n{name}:\n"));
        let ends: String = lines(&|name| format!(".size {name}, 8\n"));
        text.extend([&starts, ".skip 4, 0x90\n", &label, ".skip 4, 0x90\n", &ends]);
    }
    fs::write(&source, text).unwrap();
    let flags = ["-shared", "-nostdlib", "-o"];
    assert!(Command::new("cc").args(flags).args([&path, &source]).status().unwrap().success());
    let elf = Elf::open(FileSource::new(File::open(&path).unwrap())).unwrap();
    let start = elf.section(".text").unwrap().address.offset_from(elf.image_base()).unwrap() as u32;
    (path, (0..20_000).map(|n| RelativeAddress(start + 8 * n)).collect())
}

/// The files of function tables in the cache.
fn tables(folder: &TestFolder) -> Vec<PathBuf> {
    folder.files("functions")
}

/// Fills a file's symbol table with zeros, without changing its modification time.
fn erase_symbols(path: &Path) {
    let elf = Elf::open(FileSource::new(File::open(path).unwrap())).unwrap();
    let symbols = elf.section(".symtab").unwrap();
    let file = File::options().write(true).open(path).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(&vec![0; symbols.size as usize], symbols.offset.0).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn a_large_symbol_table_is_kept_the_second_time() {
    let folder = TestFolder::new("table");
    let (path, all) = large(&folder);
    let expected = answers(&path, &all, None);
    assert_eq!(expected[77].symbol.as_ref().map(|symbol| &*symbol.name), Some("f77"));
    let ask = |n: usize| {
        let requested: Vec<_> = all.iter().skip(n).step_by(199).copied().collect();
        let found = answers(&path, &requested, Some(folder.cache()));
        assert!(found.iter().eq(expected.iter().skip(n).step_by(199)), "{n}");
    };
    ask(0);
    assert!(tables(&folder).is_empty(), "it may be the only time");
    ask(0);
    assert!(tables(&folder).is_empty(), "all was known");
    ask(1);
    let [file] = &tables(&folder)[..] else { panic!("{:?}", tables(&folder)) };
    let whole = fs::read(file).unwrap();
    assert_eq!(folder.cache().table_files().unwrap(), (1, whole.len() as u64));
    assert_eq!(folder.cache().modules().unwrap().len(), 1, "it is no module of its own");

    // Damage changes no answer, and the next reader that needs the table repairs it.
    let [mut of_head, mut of_block] = [whole.clone(), whole.clone()];
    of_head[30] ^= 1;
    of_block[20_000..].iter_mut().for_each(|byte| *byte ^= 1);
    for (n, damaged) in [&of_head[..], &of_block, &whole[..5000]].into_iter().enumerate() {
        fs::write(file, damaged).unwrap();
        ask(2 + 2 * n);
        ask(3 + 2 * n);
        assert!(fs::read(file).unwrap() == whole, "{n}");
    }

    // The only way to check that the symbols are not read is to erase them.
    erase_symbols(&path);
    ask(10);
    let single = finder(Some(folder.cache()));
    let module = single.open(&single.find(&ModuleRequest { path: path.clone(), ..ModuleRequest::default() }));
    assert_eq!(module.unwrap().lookup(all[4321]), expected[4321]);
    fs::remove_file(file).unwrap();
    let requested = [all[500]];
    assert!(answers(&path, &requested, Some(folder.cache()))[0].symbol.is_none());
}

#[test]
fn a_stale_function_table_is_not_read() {
    let folder = TestFolder::new("table-other");
    let (path, all) = large(&folder);
    answers(&path, &all[..10], Some(folder.cache()));
    answers(&path, &all[10..20], Some(folder.cache()));
    assert_eq!(tables(&folder).len(), 1);
    erase_symbols(&path);
    File::open(&path).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let found = answers(&path, &all[..20], Some(folder.cache()));
    assert!(found.iter().all(|info| info.symbol.is_none()), "there are no symbols any more");
    folder.cache().clear().unwrap();
    assert!(tables(&folder).is_empty());
}

#[test]
fn a_function_table_without_room_is_not_kept() {
    let folder = TestFolder::new("table-large");
    let (path, all) = large(&folder);
    let small = || Some(Arc::new(AnswerCache::new(folder.0.join("a/b")).with_quota(1 << 20)));
    for some in [&all[..10], &all[10..20]] {
        assert_eq!(answers(&path, some, small()), answers(&path, some, None));
    }
    let finder = finder(Some(folder.cache()));
    let module = finder.open(&finder.find(&ModuleRequest { path: path.clone(), ..Default::default() }));
    let file = File::open(&path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    module.unwrap().symbolicate(&all[20..30], NonZeroUsize::MIN, &AtomicBool::new(false));
    assert!(tables(&folder).is_empty());
}

#[test]
fn many_keep_one_function_table_whole_at_once() {
    let folder = TestFolder::new("table-at-once");
    let (path, all) = large(&folder);
    let expected = answers(&path, &all[..200], None);
    answers(&path, &all[200..210], Some(folder.cache()));
    let cache = folder.cache();
    for round in 0..5 {
        thread::scope(|scope| {
            for part in 0..4 {
                let (part, cache) = (40 * part + 8 * round..40 * part + 8 * round + 8, &cache);
                let (path, all, expected) = (&path, &all, &expected);
                scope.spawn(move || {
                    assert_eq!(answers(path, &all[part.clone()], Some(cache.clone())), expected[part]);
                });
            }
        });
        assert_eq!(cache.problem(), None, "round {round}");
        let [file] = &tables(&folder)[..] else { panic!("round {round}: {:?}", tables(&folder)) };
        fs::remove_file(file).unwrap();
    }
    let files = fs::read_dir(folder.0.join("a/b")).unwrap();
    assert_eq!(files.count(), 1, "nothing half written is left");
}

#[test]
fn the_least_recently_used_table_makes_room() {
    let folder = TestFolder::new("table-oldest");
    let (path, all) = large(&folder);
    answers(&path, &all[..10], Some(folder.cache()));
    answers(&path, &all[10..20], Some(folder.cache()));
    let [file] = &tables(&folder)[..] else { panic!("{:?}", tables(&folder)) };
    File::open(file).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let small = AnswerCache::new(folder.0.join("a/b")).with_quota(100_000);
    answers(&path, &all[20..30], Some(Arc::new(small)));
    assert!(!file.exists());
    assert_eq!(folder.cache().modules().unwrap().len(), 1, "the answers stay");
}
