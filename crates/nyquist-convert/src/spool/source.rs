//! Sources of names in spools, and back.

use crate::jit::symbols::JitSymbols;
use crate::modules::lib_source::LibSource;
use nyquist_object::Avma;
use nyquist_perf::PerfMap;
use nyquist_spool::{GeneratedCode, NameSource};
use nyquist_symbols::ModuleRequest;
use nyquist_system::OsStrExt as _;
use std::ffi::OsStr;
use std::sync::Arc;

/// The largest image that is kept in a spool, in bytes.
const MAX_IMAGE: usize = 2 << 20;

/// What a spool keeps of a source of names. Open files and the folders of processes are gone when it is read.
pub(crate) fn stored(source: &LibSource) -> NameSource {
    match source {
        LibSource::File(request) => NameSource::File {
            path: request.path.as_os_str().as_bytes().to_vec(),
            debug_name: request.debug_name.clone(),
            id: request.id.clone(),
        },
        LibSource::Image(image) if image.len() <= MAX_IMAGE => NameSource::Image(image.to_vec()),
        LibSource::Kernel { base, .. } => NameSource::Kernel { base: base.0 },
        LibSource::Jit(symbols) => {
            NameSource::Generated { is_plain: symbols.is_plain(), base: symbols.plain_base() }
        }
        LibSource::Image(_) | LibSource::Unknown => NameSource::Unknown,
    }
}

/// The source of names of a recovered lib. `same_boot` says whether the machine was not restarted since: addresses of
/// the kernel have no meaning otherwise.
pub(crate) fn recovered(source: NameSource, code: Vec<GeneratedCode>, same_boot: bool) -> LibSource {
    match source {
        NameSource::File { path, debug_name, id } => LibSource::File(ModuleRequest {
            path: OsStr::from_bytes(&path).into(),
            debug_name,
            id,
            ..ModuleRequest::default()
        }),
        NameSource::Image(image) => LibSource::Image(Arc::new(image)),
        NameSource::Kernel { base } if same_boot => {
            LibSource::Kernel { base: Avma(base), gone: Arc::new(PerfMap::default()) }
        }
        NameSource::Generated { is_plain, base } => {
            LibSource::Jit(JitSymbols::of_used(code, is_plain, Avma(base)))
        }
        NameSource::Kernel { .. } | NameSource::Unknown => LibSource::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_object::RelativeAddress;

    #[test]
    fn unnamed_code_keeps_its_addresses() {
        let base = Avma(0x7f_8000_0000);
        let retained = stored(&LibSource::Jit(JitSymbols::none(base)));
        let LibSource::Jit(symbols) = recovered(retained, Vec::new(), true) else {
            panic!("no generated code")
        };
        assert_eq!(symbols.avma(RelativeAddress(0x10)), Some(Avma(0x7f_8000_0010)));
    }
}
