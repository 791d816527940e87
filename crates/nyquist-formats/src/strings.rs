//! The table of strings of a file that refers to them by their numbers.

use std::borrow::Cow;

use nyquist_profile::{FrameId, StringId};

use crate::import::{CodePosition, Importer};

/// A line of a function, as in pprof and formats that are based on it. Names and files are the numbers of
/// their strings.
pub(crate) struct FunctionLine {
    pub(crate) name: i64,
    pub(crate) system_name: i64,
    pub(crate) file: i64,
    pub(crate) start_line: i64,
    pub(crate) line: i64,
    pub(crate) column: i64,
}

/// The strings of a file. Each is processed once, because a hostile file may refer to a long one repeatedly.
pub(crate) struct NumberedStrings<'a> {
    pub(crate) texts: Vec<Cow<'a, str>>,
    interned: Vec<Option<StringId>>,
}

impl<'a> NumberedStrings<'a> {
    pub(crate) fn new(table: &'a [Vec<u8>]) -> Self {
        let texts: Vec<_> = table.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
        let interned = vec![None; texts.len()];
        Self { texts, interned }
    }

    /// A text. A missing one is empty.
    pub(crate) fn text(&self, index: i64) -> &str {
        let text = usize::try_from(index).ok().and_then(|index| self.texts.get(index));
        text.map_or("", |text| text)
    }

    /// Its id in the profile. `None` for an empty text.
    pub(crate) fn id(&mut self, index: i64, importer: &mut Importer) -> Option<StringId> {
        let index = usize::try_from(index).ok()?;
        let text = self.texts.get(index).filter(|text| !text.is_empty())?;
        let id = self.interned.get_mut(index)?;
        Some(*id.get_or_insert_with(|| importer.builder().intern_string(text)))
    }

    /// The frame of a line. `depth` is how many functions it is inlined into.
    pub(crate) fn frame(
        &mut self,
        importer: &mut Importer,
        line: &FunctionLine,
        (code, depth): (CodePosition<'_>, usize),
    ) -> FrameId {
        let name = self.id(line.name, importer).or_else(|| self.id(line.system_name, importer));
        let file = self.id(line.file, importer);
        let code = CodePosition {
            start_line: u32::try_from(line.start_line).ok(),
            line: u32::try_from(line.line).ok(),
            column: u32::try_from(line.column).ok(),
            inline_depth: u16::try_from(depth).unwrap_or(u16::MAX),
            ..code
        };
        importer.frame_of(name, file, &code)
    }
}
