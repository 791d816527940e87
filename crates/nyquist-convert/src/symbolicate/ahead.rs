//! Looks up names while a recording is still being converted, on a thread that would otherwise wait.

use super::{OpenedLib, Symbolicator};
use crate::build::seen_addresses::AddressReceiver;
use crate::modules::lib_source::LibSource;
use nyquist_object::RelativeAddress;
use nyquist_profile::LibId;

/// Addresses that have occurred and were not looked up yet.
#[derive(Debug, Default)]
struct PendingAddresses {
    /// By the lib's number.
    libs: Vec<Vec<RelativeAddress>>,
    count: usize,
}

impl PendingAddresses {
    fn add(&mut self, addresses: Vec<(LibId, RelativeAddress)>) {
        self.count += addresses.len();
        for (lib, address) in addresses {
            if self.libs.len() <= lib.index() {
                self.libs.resize(lib.index() + 1, Vec::new());
            }
            self.libs[lib.index()].push(address);
        }
    }

    /// Removes and returns those of each lib.
    fn take(&mut self) -> impl Iterator<Item = (LibId, Vec<RelativeAddress>)> {
        self.count = 0;
        (0..).map(LibId::from_index).zip(std::mem::take(&mut self.libs))
    }
}

impl Symbolicator<'_> {
    /// Looks up the addresses of a conversion until it is over, if that costs no more now than later. If
    /// files may be fetched from servers, nothing is done ahead, because a thread that waits for a server can
    /// do nothing else.
    pub fn listen(&mut self, receiver: AddressReceiver) {
        if self.symbols.finder.asks_servers() {
            return;
        }
        let AddressReceiver(addresses) = receiver;
        let mut waiting = PendingAddresses::default();
        while let Ok(seen) = addresses.recv() {
            for seen in std::iter::once(seen).chain(addresses.try_iter()) {
                self.open_ahead(&seen.libs);
                waiting.add(seen.addresses);
            }
            // Answers are sorted again each time, so this must not happen often.
            if waiting.count >= self.answers.count() / 4 {
                self.look_up_early(&mut waiting);
            }
        }
    }

    fn open_ahead(&mut self, libs: &[(LibId, LibSource)]) {
        for (lib, source) in libs {
            if let LibSource::Kernel { .. } = source {
                self.read_kernel();
            } else if !self.modules.contains_key(lib) {
                let opened = OpenedLib::from(source, self.symbols.finder);
                self.take_module(*lib, opened);
            }
        }
    }

    fn look_up_early(&mut self, waiting: &mut PendingAddresses) {
        for (lib, mut addresses) in waiting.take() {
            let opened = self.modules.get(&lib);
            let Some(module) = opened.and_then(|opened| opened.module.as_ref()) else { continue };
            addresses.sort_unstable();
            let addresses = self.answers.unknown_of(lib, addresses.into_iter());
            let answers = module.symbolicate_ahead(&addresses);
            self.answers.add_early(lib, &addresses, answers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Progress, Symbols};
    use super::*;
    use crate::build::seen_addresses::{AT_ONCE, AddressSender};
    use nyquist_object::{Elf, FileSource};
    use nyquist_profile::{Frame, Func, Lib, Meta, Process, ProfileBuilder, Sample, Thread};
    use nyquist_symbols::{AnswerCache, Finder, KernelError, ModuleRequest, SearchPaths};
    use std::fs::{self, File};
    use std::num::NonZeroUsize;
    use std::path::Path;
    use std::sync::Arc;

    /// This program without its debug info, and addresses in its code.
    fn program(path: &Path) -> Vec<RelativeAddress> {
        let mut bytes = fs::read(std::env::current_exe().unwrap()).unwrap();
        let name = b".debug_info";
        let is_name = |place: &usize| bytes[*place..].starts_with(name);
        let places: Vec<_> = (0..bytes.len()).filter(is_name).collect();
        for place in places {
            bytes[place + 1] = b'x';
        }
        fs::write(path, bytes).unwrap();
        let elf = Elf::open(FileSource::new(File::open(path).unwrap())).unwrap();
        let text = elf.section(".text").unwrap();
        let first = RelativeAddress::from_svma(text.address, elf.image_base()).unwrap();
        (0..2 * AT_ONCE as u32).map(|place| RelativeAddress(first.0 + 48 * place)).collect()
    }

    fn builder() -> ProfileBuilder {
        let mut builder = ProfileBuilder::new(Meta::default());
        builder.add_lib(Lib { name: "program".into(), ..Lib::default() });
        let process = builder.add_process(Process::default());
        builder.add_thread(Thread::new(process, "1", "main"));
        builder
    }

    fn add_samples(builder: &mut ProfileBuilder, addresses: &[RelativeAddress]) {
        let thread = nyquist_profile::ThreadIndex::from_index(0);
        for address in addresses {
            let name = builder.intern_string(&format!("{:#x}", address.0));
            let lib = Some(LibId::from_index(0));
            let func = builder.append_func(Func::new(name, lib));
            let frame = builder.append_frame(Frame { address: Some(address.0), ..Frame::label(func) });
            let stack = builder.intern_stack(None, frame);
            builder.add_sample(thread, Sample::new(u64::from(address.0), Some(stack), 1));
        }
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    fn looking_up_ahead_finds_the_same_as_later() {
        let folder = std::env::temp_dir().join(format!("nyquist-ahead-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("program");
        let addresses = program(&path);
        let source = LibSource::File(ModuleRequest { path, ..ModuleRequest::default() });
        let sources = [(LibId::from_index(0), source)];
        let later = Finder::new(SearchPaths::default());
        let cache = Arc::new(AnswerCache::new(folder.join("cache")));
        let ahead = Finder::new(SearchPaths::default()).with_cache(cache.clone());
        let check = |finder, is_notified: bool, early: usize| {
            let kernel = |_: &Finder| Err(KernelError::Empty);
            let mut symbolicator = Symbolicator::new(Symbols { finder, kernel, threads: NonZeroUsize::MIN });
            let (mut sender, receiver) = AddressSender::new();
            let mut builder = builder();
            let (first, second) = addresses.split_at(AT_ONCE);
            for part in [first, &second[..AT_ONCE - 1], &second[AT_ONCE - 1..]] {
                add_samples(&mut builder, part);
                if is_notified {
                    sender.send(builder.profile(), |lib| Some(sources[lib.index()].1.clone()));
                }
            }
            drop(sender);
            symbolicator.listen(receiver);
            assert_eq!(symbolicator.answers.count(), early);
            symbolicator.symbolicate(builder.finish(), &sources, &Progress::default()).profile
        };
        let expected = check(&later, false, 0);
        let all = addresses.len();
        let first = check(&ahead, true, all);
        // All addresses of one function have the same answer.
        let retained = cache.modules().unwrap()[0].answers;
        let functions = expected.native_symbols().len();
        let outside = expected.frames().iter().filter(|frame| frame.native_symbol.is_none()).count();
        assert!(functions + outside < all / 2);
        assert_eq!(retained, functions + outside);
        // Now all answers come from the cache, and none is added.
        let profiles = [first, check(&ahead, true, all)];
        assert_eq!(cache.modules().unwrap()[0].answers, retained);
        fs::remove_dir_all(&folder).unwrap();
        assert!(expected.strings().iter().any(|name| name.contains("nyquist_convert::")));
        assert!(profiles.iter().all(|profile| *profile == expected));
    }
}
