//! Numbers of types and ids that are of another module: where the linker itself has made code (`/LTCG`), a function may be inlined
//! that another object file has. Each module lists what it takes from which others, and what it has for them.

use super::Pdb;
use super::dbi::module_names;
use super::lines::Lines;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The bit of a number that is of another module.
const IMPORTED: u32 = 0x8000_0000;

/// What was read of the modules that others take something from.
#[derive(Default)]
pub(super) struct Imports {
    /// The number of each module, by its name in lower case.
    modules: OnceLock<FxHashMap<Vec<u8>, usize>>,
    /// What numbers of a module are in the program.
    exports: Mutex<FxHashMap<usize, Arc<FxHashMap<u32, u32>>>>,
}

impl Pdb {
    /// The number in the program that a number in a module's records stands for; `lines` are of that module.
    pub(super) fn global(&self, number: u32, lines: &Lines<'_>) -> Option<u32> {
        if number & IMPORTED == 0 {
            return Some(number);
        }
        let (name, local) = lines.imported(number)?;
        let name = self.string(name)?.to_ascii_lowercase();
        let modules = self.imports.modules.get_or_init(|| {
            let names = module_names(&self.msf).into_iter();
            names.map(|name| name.to_ascii_lowercase()).zip(0..).collect()
        });
        self.exports_of(*modules.get(name.as_bytes())?)?.get(&local).copied()
    }

    fn exports_of(&self, number: usize) -> Option<Arc<FxHashMap<u32, u32>>> {
        let lock = || self.imports.exports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&number) {
            return Some(known.clone());
        }
        let module = self.program.modules.get(number)?;
        let stream = self.msf.read(module.stream).ok()?;
        let exports: FxHashMap<u32, u32> = Lines::parse(module.lines(&stream)).exported().collect();
        Some(lock().entry(number).or_insert(Arc::new(exports)).clone())
    }
}
