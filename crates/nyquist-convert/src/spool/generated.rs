//! The names of code that was generated at run time: those that were used are looked up while recording, because the
//! files that have them may be gone later.

use crate::jit::symbols::{JitFunction, JitSymbols};
use nyquist_object::RelativeAddress;
use nyquist_profile::LibId;
use nyquist_spool::{Batch, GeneratedCode};
use rustc_hash::{FxHashMap, FxHashSet};
use std::time::{Duration, Instant};

/// The most addresses without a name that are looked up again.
const MAX_UNNAMED: usize = 1 << 16;

/// The pause between look-ups, as a multiple of what the last one has cost, so that they take at most a fiftieth of a
/// CPU.
const PAUSE: u32 = 50;

/// The used addresses of generated code that were not looked up yet, or had no name.
#[derive(Debug, Default)]
pub(crate) struct UsedCode {
    libs: FxHashMap<LibId, UsedAddresses>,
    /// Not before then is anything looked up again.
    next: Option<Instant>,
}

/// The used addresses of a lib.
#[derive(Debug, Default)]
struct UsedAddresses {
    waiting: Vec<u32>,
    written: FxHashSet<u32>,
}

impl UsedCode {
    /// A lib turns out to have generated code.
    pub(crate) fn add_lib(&mut self, lib: LibId) {
        self.libs.entry(lib).or_default();
    }

    /// Notes a used address, if it is in generated code.
    pub(crate) fn note(&mut self, lib: LibId, address: u32) {
        if let Some(used) = self.libs.get_mut(&lib)
            && used.waiting.len() < MAX_UNNAMED
        {
            used.waiting.push(address);
        }
    }

    /// Whether it is time to look up.
    pub(crate) fn is_due(&self) -> bool {
        self.next.is_none_or(|next| Instant::now() >= next)
    }

    /// Looks up the addresses that wait, and adds their code to a batch.
    pub(crate) fn look_up(&mut self, symbols: impl Fn(LibId) -> Option<JitSymbols>, batch: &mut Batch) {
        let began = Instant::now();
        for (lib, used) in &mut self.libs {
            if let Some(symbols) = (!used.waiting.is_empty()).then(|| symbols(*lib)).flatten() {
                used.look_up(*lib, &symbols, batch);
            }
        }
        let pause = began.elapsed().saturating_mul(PAUSE);
        self.next = Some(Instant::now() + pause.min(Duration::from_mins(1)));
    }
}

impl UsedAddresses {
    fn look_up(&mut self, lib: LibId, symbols: &JitSymbols, batch: &mut Batch) {
        let Self { waiting, written } = self;
        waiting.retain(|address| {
            let Some(function) = symbols.find(RelativeAddress(*address)) else { return true };
            let code = stored(*address, &function);
            // A line is that of one address.
            let key = if code.line.is_some() { *address } else { code.start };
            if written.insert(key) {
                code.add_to(batch, lib.index());
            }
            false
        });
    }
}

fn stored(address: u32, function: &JitFunction<'_>) -> GeneratedCode {
    GeneratedCode {
        start: function.start.map_or(address, |start| start.0),
        size: function.size,
        name: function.name.to_owned(),
        line: function.line.map(|(file, line)| (address, file.to_owned(), line)),
    }
}
