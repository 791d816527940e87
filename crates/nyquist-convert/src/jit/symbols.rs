//! The symbols of a lib's code from its jitdump or perf map.

use crate::event::Timestamp;
use crate::jit::dump::{Code, Dump, Line};
use nyquist_object::{Avma, RelativeAddress};
use nyquist_perf::{CodeNames, PerfMap, PerfMapEntry};
use nyquist_spool::GeneratedCode;
use std::ops::Range;
use std::sync::Arc;

/// The names of code that was generated at run time.
#[derive(Clone, Debug)]
pub struct JitSymbols(Source);

#[derive(Clone, Debug)]
enum Source {
    /// The code of a jitdump, by its offset in the file.
    Dump(Arc<[Code]>),
    /// A perf map, and the base of the lib's relative addresses.
    Map(Arc<CodeNames>, Avma),
    /// The same for plain function names, which were not written by a compiler that ran in the process.
    Plain(Arc<PerfMap>, Avma),
}

/// The code at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JitFunction<'a> {
    /// The name as the compiler wrote it.
    pub(crate) name: &'a str,
    /// Where it begins. `None` if it begins before the lib.
    pub(crate) start: Option<RelativeAddress>,
    /// Its size in bytes.
    pub(crate) size: u32,
    /// The file and the line at the address, if the compiler has noted them.
    pub(crate) line: Option<(&'a str, u32)>,
}

impl JitSymbols {
    pub(crate) fn of_dump(dump: &Dump) -> Self {
        Self(Source::Dump(dump.codes().into()))
    }

    pub(crate) fn of_map(names: Arc<CodeNames>, base: Avma) -> Self {
        Self(Source::Map(names, base))
    }

    /// No names: each address is its own name. `base` is the base of the lib's relative addresses.
    pub(crate) fn none(base: Avma) -> Self {
        Self::plain(Arc::default(), base)
    }

    /// Plain names of functions. `base` is the base of the lib's relative addresses in the map.
    pub(crate) fn plain(map: Arc<PerfMap>, base: Avma) -> Self {
        Self(Source::Plain(map, base))
    }

    /// The used functions of code whose other names are gone. `base` is the base of a lib of plain names.
    pub(crate) fn of_used(mut code: Vec<GeneratedCode>, is_plain: bool, base: Avma) -> Self {
        if is_plain {
            let mut map = PerfMap::default();
            for GeneratedCode { start, size, name, .. } in code {
                let start = base.0.saturating_add(start.into());
                let end = start.saturating_add(size.into());
                map.insert(PerfMapEntry { start, end, name: name.into() });
            }
            return Self::plain(Arc::new(map), base);
        }
        // Those of one function are in sequence, and have a line each.
        code.sort_by_key(|code| (code.start, code.line.as_ref().map(|(address, ..)| *address)));
        let mut codes: Vec<Code> = Vec::new();
        for GeneratedCode { start, size, name, line } in code {
            if codes.last().is_none_or(|last| last.offset != start) {
                let made = Timestamp(0);
                codes.push(Code { name: name.into(), offset: start, size, lines: Vec::new(), made });
            }
            if let (Some(last), Some((address, file, number))) = (codes.last_mut(), line) {
                let offset = address.saturating_sub(start);
                last.lines.push(Line { offset, file: file.into(), number });
            }
        }
        Self(Source::Dump(codes.into()))
    }

    /// The base of the relative addresses of a lib of plain names; 0 for others.
    pub(crate) fn plain_base(&self) -> u64 {
        match &self.0 {
            Source::Plain(_, base) => base.0,
            Source::Dump(_) | Source::Map(..) => 0,
        }
    }

    /// Whether the names are plain function names.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.0, Source::Plain(..))
    }

    /// The address in the process of a relative address of the lib, if that is known.
    pub(crate) fn avma(&self, address: RelativeAddress) -> Option<Avma> {
        match &self.0 {
            Source::Dump(_) => None,
            Source::Map(_, base) | Source::Plain(_, base) => {
                Some(Avma(base.0.checked_add(u64::from(address.0))?))
            }
        }
    }

    /// The code at an address. O(log n).
    pub(crate) fn find(&self, address: RelativeAddress) -> Option<JitFunction<'_>> {
        match &self.0 {
            Source::Dump(codes) => find_in_dump(codes, address),
            Source::Map(names, base) => {
                let code = names.find(base.0.checked_add(u64::from(address.0))?)?;
                Some(at_address(code.start..code.end, code.name, *base))
            }
            Source::Plain(map, base) => {
                let entry = map.find(base.0.checked_add(u64::from(address.0))?)?;
                Some(at_address(entry.start..entry.end, &entry.name, *base))
            }
        }
    }
}

fn at_address(code: Range<u64>, name: &str, base: Avma) -> JitFunction<'_> {
    let start = code.start.checked_sub(base.0).and_then(|start| u32::try_from(start).ok());
    let size = u32::try_from(code.end - code.start).unwrap_or(u32::MAX);
    JitFunction { name, start: start.map(RelativeAddress), size, line: None }
}

fn find_in_dump(codes: &[Code], address: RelativeAddress) -> Option<JitFunction<'_>> {
    let after = codes.partition_point(|code| code.offset <= address.0);
    let code = codes.get(after.checked_sub(1)?)?;
    let offset = address.0 - code.offset;
    if offset >= code.size {
        return None;
    }
    let after = code.lines.partition_point(|line| line.offset <= offset);
    let line = after.checked_sub(1).and_then(|at| code.lines.get(at)).map(|line| (&*line.file, line.number));
    Some(JitFunction { name: &code.name, start: Some(RelativeAddress(code.offset)), size: code.size, line })
}
