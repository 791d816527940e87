//! PDB files, which map addresses to functions, files, lines and inlined calls.
//!
//! Addresses are grouped by the object file of their code, and only the streams of the needed object files
//! are read.

mod annotations;
mod dbi;
mod imports;
mod lines;
mod msf;
mod symbols;
mod type_names;
mod types;

pub(crate) use msf::{MAGIC, Msf};

use crate::SourceFrame;
use crate::allowance::Allowance;
use crate::debug_answer::DebugAnswer;
use crate::named_range::{NamedRange, up_to_next};
use crate::section_contents::SharedSource;
use dbi::{PdbModule, PdbProgram};
use imports::Imports;
use lines::{Lines, SourceLocation};
use nyquist_object::{DebugId, ObjectError, Svma};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use symbols::{InlineSite, Procedure, ProcedureName, ScopeChange, records};
use type_names::TypeNames;

/// How deeply scopes may nest.
const MAX_DEPTH: usize = 4096;

/// The most inlined calls that are kept of one function. Further ones are left out.
const MAX_SITES: usize = 1 << 16;

/// The debug info of one program, and the base of its image.
pub(crate) struct Pdb {
    msf: Msf,
    program: PdbProgram,
    /// The image base, which is subtracted from requested addresses.
    image_base: u64,
    types: TypeNames,
    strings: OnceLock<Vec<u8>>,
    files: Mutex<FxHashMap<u32, Arc<str>>>,
    imports: Imports,
}

/// The bit that marks an imported number.
const IMPORTED: u32 = 0x8000_0000;

/// The id of a PDB.
pub(crate) fn debug_id(source: SharedSource) -> Result<DebugId, ObjectError> {
    dbi::debug_id(&Msf::open(source)?)
}

/// A function with some of the requested addresses in it.
struct FunctionHit<'a> {
    procedure: Procedure<'a>,
    start: u32,
    /// The indices of its addresses among the requested ones.
    lookups: Range<usize>,
    /// The sites, each with its nesting depth.
    sites: Vec<(usize, InlineSite<'a>)>,
}

/// The requested addresses of one object file in order, their places, and the data that the places refer to.
struct ObjectLookup<'a> {
    lookups: &'a [u32],
    places: Vec<Option<SourceLocation>>,
    lines: Lines<'a>,
}

impl FunctionHit<'_> {
    /// The range of the hit's addresses that are between two offsets in the function.
    fn requested_in(&self, lookups: &[u32], start: u32, end: u32) -> Range<usize> {
        let own = lookups.get(self.lookups.clone()).unwrap_or_default();
        let before =
            |distance: u32| own.partition_point(|address| address.saturating_sub(self.start) < distance);
        before(start)..before(end)
    }
}

impl Pdb {
    /// Reads the PDB's description of the whole program. `image_base` is subtracted from requested addresses.
    pub(crate) fn open(source: SharedSource, image_base: Svma) -> Result<Self, ObjectError> {
        let msf = Msf::open(source)?;
        let program = PdbProgram::read(&msf)?;
        let types = TypeNames::new(&msf);
        Ok(Self {
            msf,
            program,
            image_base: image_base.0,
            types,
            strings: OnceLock::new(),
            files: Mutex::default(),
            imports: Imports::default(),
        })
    }

    /// The object file of the code at an address.
    pub(crate) fn unit_of(&self, address: u64) -> Option<u64> {
        let address = self.source_address(address)?;
        self.program.module_of(address).map(u64::from)
    }

    fn source_address(&self, address: u64) -> Option<u32> {
        self.program.source_address(u32::try_from(address.checked_sub(self.image_base)?).ok()?)
    }

    /// The public symbols: the starts of functions, and the linker's names of them.
    fn public_functions(&self) -> Vec<(u64, Vec<u8>)> {
        let bytes =
            self.program.symbol_stream.and_then(|stream| self.msf.read(stream).ok()).unwrap_or_default();
        let named = |record: symbols::SymbolRecord<'_>| {
            let (section, offset, name) = record.public_function()?;
            let address = self.program.image_address(self.program.address(section, offset)?)?;
            Some((self.image_base.checked_add(address.into())?, record.bytes.get(name)?.to_vec()))
        };
        records(&bytes, 0).filter_map(named).collect()
    }

    /// The public symbols as pieces of code, each up to the next or to the end of its section.
    pub(crate) fn named_ranges(&self) -> Vec<NamedRange> {
        let sections = self.program.sections().map(|section| {
            let [start, end] =
                [section.start, section.end].map(|at| self.image_base.saturating_add(at.into()));
            start..end
        });
        up_to_next(self.public_functions(), &sections.collect::<Vec<_>>())
    }

    /// Answers for `lookups`, which are sorted addresses in the code of one object file, in their order.
    pub(crate) fn look_up(&self, unit: u64, lookups: &[u64], allowance: &mut Allowance) -> Vec<DebugAnswer> {
        let mut found = vec![DebugAnswer::default(); lookups.len()];
        let module = usize::try_from(unit).ok().and_then(|unit| self.program.modules.get(unit));
        let stream = module.and_then(|module| Some((module, self.msf.read(module.stream).ok()?)));
        let Some((module, stream)) = stream else { return found };
        // The order changes if code was moved after linking.
        let mut addresses: Vec<(u32, usize)> = lookups
            .iter()
            .zip(0..)
            .filter_map(|(address, number)| Some((self.source_address(*address)?, number)))
            .collect();
        addresses.sort_unstable();
        let sorted: Vec<u32> = addresses.iter().map(|(address, _)| *address).collect();
        let answers = self.look_up_sorted(module, &stream, &sorted, allowance);
        for (answer, (_, number)) in answers.into_iter().zip(&addresses) {
            if let Some(found) = found.get_mut(*number) {
                *found = answer;
            }
        }
        found
    }

    fn look_up_sorted(
        &self,
        module: &PdbModule,
        stream: &[u8],
        lookups: &[u32],
        allowance: &mut Allowance,
    ) -> Vec<DebugAnswer> {
        let symbols = stream.get(..module.symbols_len as usize).unwrap_or(stream);
        let lines = Lines::parse(module.lines(stream));
        let requested = ObjectLookup { lookups, places: lines.find(&self.program, lookups), lines };
        let mut found = vec![DebugAnswer::default(); lookups.len()];
        for hit in self.hits(symbols, lookups) {
            self.symbolicate_hit(&hit, symbols, &requested, &mut found, allowance);
        }
        let ObjectLookup { places, lines, .. } = requested;
        for (found, place) in found.iter_mut().zip(places) {
            if found.frames.is_empty() && place.is_some_and(SourceLocation::is_real) {
                found.frames.push(self.frame(None, place, &lines));
            }
        }
        found
    }

    /// The functions that contain requested addresses, with the calls that were inlined into them.
    fn hits<'a>(&self, symbols: &'a [u8], lookups: &[u32]) -> Vec<FunctionHit<'a>> {
        let mut hits: Vec<FunctionHit<'a>> = Vec::new();
        // For each open scope, whether it belongs to the last hit, and whether it is an inlined call.
        let mut open: Vec<(bool, bool)> = Vec::new();
        for record in records(symbols, 4) {
            let scope = record.scope();
            if matches!(scope, ScopeChange::None)
                || (open.len() >= MAX_DEPTH && !matches!(scope, ScopeChange::End))
            {
                continue;
            }
            match scope {
                ScopeChange::End => {
                    open.pop();
                }
                ScopeChange::Procedure(procedure) => {
                    let hit = self.hit(procedure, lookups);
                    open.push((hit.is_some(), false));
                    hits.extend(hit);
                }
                ScopeChange::Inline(site) => {
                    let is_hit = open.last().is_some_and(|(is_hit, _)| *is_hit);
                    if let Some(hit) = hits.last_mut().filter(|hit| is_hit && hit.sites.len() < MAX_SITES) {
                        hit.sites.push((open.iter().filter(|(_, is_inline)| *is_inline).count(), site));
                    }
                    open.push((is_hit, true));
                }
                ScopeChange::Other => open.push((open.last().is_some_and(|(is_hit, _)| *is_hit), false)),
                ScopeChange::None => {}
            }
        }
        hits
    }

    fn hit<'a>(&self, procedure: Procedure<'a>, lookups: &[u32]) -> Option<FunctionHit<'a>> {
        let start = self.program.address(procedure.section, procedure.offset)?;
        let end = start.checked_add(procedure.size)?;
        let first = lookups.partition_point(|address| *address < start);
        let after = lookups.partition_point(|address| *address < end);
        (first < after).then(|| FunctionHit { procedure, start, lookups: first..after, sites: Vec::new() })
    }

    /// Answers for the requested addresses in one function.
    fn symbolicate_hit(
        &self,
        hit: &FunctionHit<'_>,
        symbols: &[u8],
        requested: &ObjectLookup<'_>,
        found: &mut [DebugAnswer],
        allowance: &mut Allowance,
    ) {
        let ObjectLookup { places, lines, .. } = requested;
        let name: Option<Arc<str>> = self.procedure_name(&hit.procedure, symbols, lines).map(Arc::from);
        let end = hit.start.saturating_add(hit.procedure.size);
        let range = self.image_range(hit.start..end);
        let mut chains: Vec<Vec<SourceFrame>> = hit
            .lookups
            .clone()
            .map(|number| vec![self.frame(name.clone(), places.get(number).copied().flatten(), lines)])
            .map(|chain| if allowance.admits(&chain) { chain } else { Vec::new() })
            .collect();
        for (depth, site) in &hit.sites {
            self.add_inlined(*depth, site, requested, hit, &mut chains, allowance);
        }
        for (number, mut frames) in hit.lookups.clone().zip(chains) {
            frames.reverse();
            if let Some(found) = found.get_mut(number) {
                *found = DebugAnswer { frames, is_complete: name.is_some(), function: range.clone() };
            }
        }
    }

    fn add_inlined(
        &self,
        depth: usize,
        site: &InlineSite<'_>,
        requested: &ObjectLookup<'_>,
        hit: &FunctionHit<'_>,
        chains: &mut [Vec<SourceFrame>],
        allowance: &mut Allowance,
    ) {
        let ObjectLookup { lookups, lines, .. } = requested;
        let start = lines.inlinee(site.inlinee).unwrap_or_default();
        let mut name = None;
        for line in annotations::run(site.annotations, start) {
            let here = hit.requested_in(lookups, line.start, line.end);
            for chain in chains.get_mut(here).unwrap_or_default() {
                // A nested site is not used for an address that the outer one does not contain.
                if chain.len() == depth + 1 {
                    let read = || self.types.inlinee(&self.msf, self.global_number(site.inlinee, lines)?);
                    let name: &Option<Arc<str>> = name.get_or_insert_with(|| read().map(Arc::from));
                    let frame = self.frame(name.clone(), Some(line.place), lines);
                    chain.extend(allowance.admits(std::slice::from_ref(&frame)).then_some(frame));
                }
            }
        }
    }

    /// The range of code in the image. Its end is not translated, because it may have been moved elsewhere.
    fn image_range(&self, range: Range<u32>) -> Option<Range<Svma>> {
        let start = self.image_base.checked_add(self.program.image_address(range.start)?.into())?;
        Some(Svma(start)..Svma(start.checked_add((range.end - range.start).into())?))
    }

    fn procedure_name(&self, procedure: &Procedure<'_>, symbols: &[u8], lines: &Lines<'_>) -> Option<String> {
        let provided = |name: ProcedureName<'_>| match name {
            ProcedureName::Typed(name, kind) => {
                let kind = self.global_number(kind, lines).unwrap_or(kind);
                Some(self.types.function(&self.msf, &text(name), kind))
            }
            ProcedureName::Plain(name) => Some(text(name)),
            ProcedureName::PartOf(..) => None,
        };
        match procedure.name {
            ProcedureName::PartOf(section, offset) => {
                let whole = records(symbols, 4).find_map(|record| match record.scope() {
                    ScopeChange::Procedure(whole) if (whole.section, whole.offset) == (section, offset) => {
                        Some(whole)
                    }
                    _ => None,
                })?;
                provided(whole.name)
            }
            name => provided(name),
        }
    }

    fn frame(
        &self,
        function: Option<Arc<str>>,
        place: Option<SourceLocation>,
        lines: &Lines<'_>,
    ) -> SourceFrame {
        let place = place.filter(|place| place.is_real());
        let file = place.and_then(|place| self.file(lines.file_name(place.file)?));
        let column = place.map(|place| place.column).filter(|column| *column != 0);
        SourceFrame { function, file, line: place.map(|place| place.line), column, ..SourceFrame::default() }
    }

    fn file(&self, name: u32) -> Option<Arc<str>> {
        let lock = || self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&name) {
            return Some(known.clone());
        }
        let text: Arc<str> = self.string(name)?.into();
        Some(lock().entry(name).or_insert(text).clone())
    }

    /// The number in the program for a number in a module's records. `lines` are those of the module.
    fn global_number(&self, number: u32, lines: &Lines<'_>) -> Option<u32> {
        if number & IMPORTED == 0 {
            return Some(number);
        }
        let (name, local) = lines.imported(number)?;
        self.imports.global(&self.string(name)?, local, &self.msf, &self.program)
    }

    /// One of the program's strings, by its offset.
    fn string(&self, at: u32) -> Option<String> {
        let strings = self.strings.get_or_init(|| {
            let stream = self.program.names_stream;
            stream.and_then(|stream| self.msf.read(stream).ok()).unwrap_or_default()
        });
        // The strings begin after a signature, a version and their length.
        let rest = strings.get(12..)?.get(at as usize..)?;
        Some(text(&rest[..rest.iter().position(|byte| *byte == 0)?]))
    }

    /// Whether the program names a source file.
    pub(crate) fn names_source(&self, unit: u64, is_it: &mut dyn FnMut(&str) -> bool) -> bool {
        let module = usize::try_from(unit).ok().and_then(|unit| self.program.modules.get(unit));
        let Some(stream) = module.and_then(|module| self.msf.read(module.stream).ok()) else { return false };
        let Some(module) = module else { return false };
        let lines = Lines::parse(module.lines(&stream));
        lines.files().any(|name| self.file(name).is_some_and(|named| is_it(&named)))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl std::fmt::Debug for Pdb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pdb").field("program", &self.program).finish_non_exhaustive()
    }
}
