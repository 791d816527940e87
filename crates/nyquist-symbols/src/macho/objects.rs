//! DWARF that was left in the object files. An address of the image is translated to an address in the object
//! file that its function came from, and is looked up there.

use super::debug_map::{DebugMap, ObjectPath};
use super::images::{MachOImage, images};
use super::symbols::NameReader;
use crate::debug_answer::DebugAnswer;
use crate::dwarf::{Dwarf, DwarfFile, Scratch, SplitFiles};
use crate::find::{AttemptOutcome, open_source};
use crate::section_contents::SharedSource;
use nyquist_object::macho::{self, SourceRange};
use nyquist_object::{Architecture, Archive, ByteSource as _, FileSource, Svma};
use nyquist_resources::Budget;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How many object files are held open. Others are opened again for each look-up, because a process has a
/// limit of open files.
const MAX_HELD: usize = 256;

/// The object files of one image.
pub(crate) struct ObjectFiles {
    map: DebugMap,
    /// Additional folders to search for object files.
    folders: Vec<PathBuf>,
    architecture: Architecture,
    budget: Option<Budget>,
    held: Vec<OnceLock<Option<Arc<ObjectFile>>>>,
    held_count: AtomicUsize,
    archives: Mutex<FxHashMap<PathBuf, Option<Arc<OpenArchive>>>>,
}

/// An archive of object files, and its table of contents.
struct OpenArchive {
    source: SharedSource,
    archive: Archive,
}

/// An object file with debug info.
struct ObjectFile {
    dwarf: Dwarf,
    /// The address of each function, by its linker's name. `None` if several functions have the same name.
    functions: FxHashMap<Vec<u8>, Option<u64>>,
}

/// A requested address in an object file.
struct TranslatedAddress {
    unit: u64,
    address: u64,
    /// Its index among the requested addresses.
    number: usize,
    /// The offset that has to be added to an address in the object file.
    shift: u64,
}

impl ObjectFiles {
    /// Reads the list of an image's object files. `None` if the image does not have it.
    pub(super) fn of(image: &MachOImage, folders: Vec<PathBuf>) -> Option<Self> {
        let map = DebugMap::read(image)?;
        let held = (0..map.len()).map(|_| OnceLock::new()).collect();
        let (held_count, archives) = (AtomicUsize::new(0), Mutex::default());
        let (architecture, budget) = (image.architecture(), image.source().budget().cloned());
        Some(Self { map, folders, architecture, budget, held, held_count, archives })
    }

    /// The number of the object file that the function at an address came from.
    pub(crate) fn unit_of(&self, address: u64) -> Option<u64> {
        self.map.find(address).map(|function| function.object.into())
    }

    /// Answers for `requested`, which are sorted addresses of functions from one object file, in their order.
    pub(crate) fn look_up(&self, object: u64, requested: &[u64], scratch: &mut Scratch) -> Vec<DebugAnswer> {
        let mut found = vec![DebugAnswer::default(); requested.len()];
        let Some(file) = self.object(object) else { return found };
        let translate = |(number, &address): (usize, &u64)| self.translate(&file, number, address);
        let mut translated: Vec<_> = requested.iter().enumerate().filter_map(translate).collect();
        translated.sort_unstable_by_key(|requested| (requested.unit, requested.address));
        for of_unit in translated.chunk_by(|one, next| one.unit == next.unit) {
            let Some(unit) = of_unit.first().map(|first| first.unit) else { continue };
            let addresses: Vec<u64> = of_unit.iter().map(|requested| requested.address).collect();
            let answers = file.dwarf.look_up(unit, &addresses, scratch);
            for (requested, answer) in of_unit.iter().zip(answers) {
                if let Some(found) = found.get_mut(requested.number) {
                    let function = answer.function.as_ref().map(|range| shifted(range, requested.shift));
                    *found = DebugAnswer { function, ..answer };
                }
            }
        }
        found
    }

    fn translate(&self, file: &ObjectFile, number: usize, address: u64) -> Option<TranslatedAddress> {
        let function = self.map.find(address)?;
        let start = (*file.functions.get(&self.map.name(function)?)?)?;
        let shift = function.start.wrapping_sub(start);
        let address = address.wrapping_sub(shift);
        Some(TranslatedAddress { unit: file.dwarf.unit_of(address)?, address, number, shift })
    }

    /// Whether an object file names a source file.
    pub(crate) fn names_source(&self, object: u64, is_it: &mut dyn FnMut(&str) -> bool) -> bool {
        self.object(object)
            .is_some_and(|file| file.dwarf.units().any(|unit| file.dwarf.names_source(unit, is_it)))
    }

    fn object(&self, number: u64) -> Option<Arc<ObjectFile>> {
        let number = usize::try_from(number).ok()?;
        let lock = self.held.get(number)?;
        if let Some(held) = lock.get() {
            return held.clone();
        }
        let opened = self.open(number);
        if self.held_count.fetch_add(1, Ordering::Relaxed) < MAX_HELD {
            return lock.get_or_init(|| opened).clone();
        }
        opened
    }

    fn open(&self, number: usize) -> Option<Arc<ObjectFile>> {
        let path = self.map.object(number)?;
        let known = self.map.first_name(number)?;
        let open = |source| ObjectFile::open(&source, self.architecture);
        // Members of an archive may have the same name. The right one has the functions.
        let is_right = |file: &ObjectFile| file.functions.contains_key(&known);
        self.sources(&path).into_iter().filter_map(open).find(is_right).map(Arc::new)
    }

    /// The file, or all members with this name and time.
    fn sources(&self, path: &ObjectPath) -> Vec<SharedSource> {
        let Some(member) = &path.member else {
            return self.file(path).into_iter().collect();
        };
        let Some(open) = self.archive(path) else { return Vec::new() };
        let members = open.archive.members().iter();
        let members = members.filter(|found| {
            found.name == *member && path.modified.is_none_or(|modified| modified == found.modified)
        });
        let range = |member: &nyquist_object::ArchiveMember| {
            Arc::new(SourceRange::new(open.source.clone(), member.offset, member.size)) as SharedSource
        };
        members.map(range).collect()
    }

    /// The file, or the archive.
    fn file(&self, path: &ObjectPath) -> Option<SharedSource> {
        let is_used = |_: &Path, outcome: &AttemptOutcome| *outcome == AttemptOutcome::Used;
        Some(find_object(path, &self.folders, self.budget.as_ref(), is_used)?)
    }

    fn archive(&self, path: &ObjectPath) -> Option<Arc<OpenArchive>> {
        let mut archives = self.archives.lock().unwrap_or_else(PoisonError::into_inner);
        let open = || {
            let source = self.file(path)?;
            let archive = Archive::read(&source).ok()?;
            Some(Arc::new(OpenArchive { source, archive }))
        };
        archives.entry(path.file.clone()).or_insert_with(open).clone()
    }
}

/// Opens the file of an object: at its original path, and then in each folder by its path and by its name.
/// `tried` receives the result for each place, and returns whether the file is used. The time of a member is
/// not that of its archive.
pub(crate) fn find_object(
    object: &ObjectPath,
    folders: &[PathBuf],
    budget: Option<&Budget>,
    mut tried: impl FnMut(&Path, &AttemptOutcome) -> bool,
) -> Option<Arc<FileSource>> {
    let below = object.file.strip_prefix("/").unwrap_or(&object.file);
    let name = Path::new(object.file.file_name()?);
    let elsewhere = folders.iter().flat_map(|folder| [folder.join(below), folder.join(name)]);
    let places = Some(object.file.clone()).filter(|path| path.is_absolute()).into_iter().chain(elsewhere);
    for place in places {
        let opened = open_source(&place, budget);
        let outcome = match &opened {
            Ok(source) if object.member.is_none() => check_time(source, object.modified),
            Ok(_) => AttemptOutcome::Used,
            Err(outcome) => outcome.clone(),
        };
        if tried(&place, &outcome) {
            return opened.ok();
        }
    }
    None
}

fn check_time(source: &FileSource, requested: Option<u64>) -> AttemptOutcome {
    let Some(requested) = requested else { return AttemptOutcome::Used };
    let seconds = source.facts().ok().and_then(|facts| u64::try_from(facts.modified.0).ok());
    if seconds == Some(requested) {
        AttemptOutcome::Used
    } else {
        AttemptOutcome::OtherIdentity("it was modified".to_owned())
    }
}

impl ObjectFile {
    fn open(source: &SharedSource, architecture: Architecture) -> Option<Self> {
        let mut images = images(source).ok()?.into_iter();
        let image = images.find(|image| image.architecture() == architecture)?;
        let main = DwarfFile::open_macho(&image)?;
        let functions = functions(&image)?;
        Some(Self { dwarf: Dwarf::new(main, None, SplitFiles::default(), 0), functions })
    }
}

/// The address of each function of an object file. `None` without a symbol table.
fn functions(image: &MachOImage) -> Option<FxHashMap<Vec<u8>, Option<u64>>> {
    let mut names = NameReader::of(image)?;
    let mut functions = FxHashMap::default();
    for symbol in image.symbols().ok()? {
        if !symbol.section_of(image.sections()).is_some_and(macho::MachOSection::is_code) {
            continue;
        }
        let Some(name) = names.read(symbol.name) else { continue };
        match functions.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(Some(symbol.value));
            }
            Entry::Occupied(mut entry) if *entry.get() != Some(symbol.value) => {
                entry.insert(None);
            }
            Entry::Occupied(_) => {}
        }
    }
    Some(functions)
}

fn shifted(range: &Range<Svma>, shift: u64) -> Range<Svma> {
    Svma(range.start.0.wrapping_add(shift))..Svma(range.end.0.wrapping_add(shift))
}

impl std::fmt::Debug for ObjectFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectFiles").field("map", &self.map).finish_non_exhaustive()
    }
}
