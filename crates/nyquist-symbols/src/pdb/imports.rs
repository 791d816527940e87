//! Numbers of types and ids of another module. If the linker itself has generated code (`/LTCG`), a function
//! of another object file may be inlined. Each module lists what it imports from which others, and what it
//! exports.

use super::dbi::{PdbProgram, module_names};
use super::lines::Lines;
use super::msf::Msf;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The data that was read of modules from which others import.
#[derive(Default)]
pub(super) struct Imports {
    /// The number of each module, by its name in lower case.
    modules: OnceLock<FxHashMap<Vec<u8>, usize>>,
    /// The mapping of a module's numbers to those of the program.
    exports: Mutex<FxHashMap<usize, Arc<FxHashMap<u32, u32>>>>,
}

impl Imports {
    /// The number in the program that another module, `name`, exports under the number `local`.
    pub(super) fn global(&self, name: &str, local: u32, msf: &Msf, program: &PdbProgram) -> Option<u32> {
        let modules = self.modules.get_or_init(|| {
            let names = module_names(msf).into_iter();
            names.map(|name| name.to_ascii_lowercase()).zip(0..).collect()
        });
        let number = *modules.get(name.to_ascii_lowercase().as_bytes())?;
        self.exports_of(number, msf, program)?.get(&local).copied()
    }

    fn exports_of(&self, number: usize, msf: &Msf, program: &PdbProgram) -> Option<Arc<FxHashMap<u32, u32>>> {
        let lock = || self.exports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&number) {
            return Some(known.clone());
        }
        let module = program.modules.get(number)?;
        let stream = msf.read(module.stream).ok()?;
        let exports: FxHashMap<u32, u32> = Lines::parse(module.lines(&stream)).exported().collect();
        Some(lock().entry(number).or_insert(Arc::new(exports)).clone())
    }
}
