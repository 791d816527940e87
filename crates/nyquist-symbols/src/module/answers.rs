//! Answers for addresses: those that came with the profile, cached ones, and looked-up ones.

use super::ModuleSymbols;
use super::functions::ModuleFunctions;
use crate::AddressInfo;
use crate::cache::{Extent, push_unless_covered};
use crate::debug_info::DebugInfo;
use crate::dwarf::Scratch;
use nyquist_object::RelativeAddress;
use std::sync::Arc;

impl ModuleSymbols {
    /// Answers for one address.
    pub fn lookup(&self, address: RelativeAddress) -> AddressInfo {
        if let Some(known) = self.available_answers(&[address]).pop().flatten() {
            return Arc::unwrap_or_clone(known);
        }
        let svma = address.to_svma(self.image_base);
        let unit = self.unit_of(svma);
        let found = unit.map(|unit| self.look_up(unit, &[svma.0], &mut Scratch::default()));
        let functions = self.functions();
        functions.address_info(functions.around(svma), found.and_then(|mut found| found.pop()))
    }

    /// The available answers to `requested`, which are sorted, without a look-up: those that came with the
    /// profile, and cached ones.
    pub(crate) fn available_answers(&self, requested: &[RelativeAddress]) -> Vec<Option<Arc<AddressInfo>>> {
        let mut known = match &self.cached {
            Some(cached) => cached.find(requested),
            None => vec![None; requested.len()],
        };
        if let Some(provided) = self.used_answers() {
            for (known, address) in known.iter_mut().zip(requested) {
                if let Some(info) = provided.find(*address) {
                    *known = Some(Arc::clone(info));
                }
            }
        }
        known
    }

    /// Stores answers, whose addresses ascend, in the cache. Answers of units in `.dwo` files are not stored,
    /// because these files may appear, change or disappear.
    pub fn keep<'a>(&self, answers: impl Iterator<Item = (RelativeAddress, &'a AddressInfo)>) {
        let functions = self.tables.get().map(|_| self.functions());
        self.keep_answers(answers, functions.as_ref());
    }

    /// As [`ModuleSymbols::keep`], given the functions that were used because there was no debug info.
    pub(crate) fn keep_answers<'a>(
        &self,
        answers: impl Iterator<Item = (RelativeAddress, &'a AddressInfo)>,
        functions: Option<&ModuleFunctions<'_>>,
    ) {
        // Debug info that was never opened is not the source of any answer.
        let opened = self.image.opened_debug_info();
        let reads_others =
            opened.is_some_and(|info| info.as_ref().is_some_and(DebugInfo::reads_single_files));
        let Some(cached) = self.cached.as_ref().filter(|_| !reads_others) else { return };
        let functions = functions.filter(|_| opened.is_some_and(Option::is_none));
        let mut all = Vec::new();
        for (address, info) in answers {
            let extent = functions.and_then(|functions| functions.extent(address));
            push_unless_covered(&mut all, extent.unwrap_or(Extent::of(address)), info);
        }
        cached.keep(&all);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::module::image::Image;
    use crate::{AnswerCache, Finder, ModuleRequest, SearchPaths};
    use std::sync::atomic::AtomicBool;

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn kept_answers_need_no_debug_info() {
        let folder = std::env::temp_dir().join(format!("nyquist-kept-{}", std::process::id()));
        let finder = Finder::new(SearchPaths::default()).with_cache(Arc::new(AnswerCache::new(&folder)));
        let path = std::env::current_exe().unwrap();
        let found = finder.find(&ModuleRequest { path, ..ModuleRequest::default() });
        let ask = || {
            let module = finder.open(&found).unwrap();
            let Image::Elf(files) = &module.image else { panic!("the test program is an ELF file") };
            let text = files.binary().and_then(|elf| elf.section(".text")).unwrap().address;
            let address = RelativeAddress::from_svma(text, module.image_base).unwrap();
            let answers = module.symbolicate(&[address], NonZeroUsize::MIN, &AtomicBool::new(false));
            (answers, module.image.opened_debug_info().is_some())
        };
        let [(first, first_opened), (second, second_opened)] = [ask(), ask()];
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(first, second);
        assert_eq!([first_opened, second_opened], [true, false]);
    }
}
