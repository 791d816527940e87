//! Answers that came with a profile, for modules whose files are missing on this machine or have less
//! information.

use crate::{AddressInfo, ModuleRequest};
use nyquist_object::{DebugId, RelativeAddress};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Answers for addresses of modules, from a file.
#[derive(Clone, Debug, Default)]
pub struct ProvidedAnswers {
    file: PathBuf,
    modules: FxHashMap<(String, DebugId), Arc<ProvidedModule>>,
}

/// Answers for addresses of one module.
#[derive(Debug, Default)]
pub struct ProvidedModule {
    file: PathBuf,
    /// Ascending, each once.
    addresses: Vec<RelativeAddress>,
    infos: Vec<Arc<AddressInfo>>,
}

impl ProvidedAnswers {
    /// An empty set of answers from this file.
    pub fn of_file(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), modules: FxHashMap::default() }
    }

    /// Adds the answers for addresses of the module whose debug info has this name and this id. If a module
    /// is added several times, the first answers stay.
    pub fn add(
        &mut self,
        debug_name: &str,
        debug_id: DebugId,
        answers: impl IntoIterator<Item = (RelativeAddress, Arc<AddressInfo>)>,
    ) {
        self.modules.entry((debug_name.to_owned(), debug_id)).or_insert_with(|| {
            let mut answers: Vec<_> = answers.into_iter().collect();
            answers.sort_by_key(|(address, _)| *address);
            answers.dedup_by_key(|(address, _)| *address);
            let (addresses, infos) = answers.into_iter().unzip();
            Arc::new(ProvidedModule { file: self.file.clone(), addresses, infos })
        });
    }

    /// The answers of a module, by the name and the id of its debug info, because a name alone is no
    /// identity.
    pub(crate) fn of(&self, request: &ModuleRequest) -> Option<Arc<ProvidedModule>> {
        let debug_id = request.debug_id.filter(|id| id.breakpad().contains(|digit| digit != '0'))?;
        self.modules.get(&(request.debug_name.clone(), debug_id)).cloned()
    }
}

impl ProvidedModule {
    /// The file that states them.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The answer to an address.
    pub(crate) fn find(&self, address: RelativeAddress) -> Option<&Arc<AddressInfo>> {
        self.addresses.binary_search(&address).ok().map(|place| &self.infos[place])
    }

    /// Whether an answer names the source file for which `is_it` returns true.
    pub(crate) fn names_source(&self, is_it: impl Fn(&str) -> bool) -> bool {
        let mut frames = self.infos.iter().flat_map(|info| &info.frames);
        frames.any(|frame| frame.file.as_deref().is_some_and(&is_it))
    }
}
