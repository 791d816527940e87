//! Symbol records: functions, and the calls that were inlined into them (Microsoft's `cvinfo.h`, "SYMBOL").

use nyquist_object::Cursor;
use std::ops::Range;

/// A record: its kind and its contents.
#[derive(Clone, Copy)]
pub(super) struct SymbolRecord<'a> {
    pub(super) kind: u16,
    pub(super) bytes: &'a [u8],
}

/// A function or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Procedure<'a> {
    pub(super) section: u16,
    pub(super) offset: u32,
    pub(super) size: u32,
    pub(super) name: ProcedureName<'a>,
}

/// The source of a function's name.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProcedureName<'a> {
    /// A name, and the number of the type among the types.
    Typed(&'a [u8], u32),
    /// A name alone.
    Plain(&'a [u8]),
    /// A part of the function at this place of this section.
    PartOf(u16, u32),
}

/// A call that was inlined.
#[derive(Clone, Copy, Debug)]
pub(super) struct InlineSite<'a> {
    /// The number of the function among the ids.
    pub(super) inlinee: u32,
    pub(super) annotations: &'a [u8],
}

/// The effect of a record on the nesting of scopes.
pub(super) enum ScopeChange<'a> {
    Procedure(Procedure<'a>),
    Inline(InlineSite<'a>),
    /// A scope of another kind, or one that is damaged.
    Other,
    End,
    /// It neither begins nor ends a scope.
    None,
}

fn procedure_scope(procedure: Option<Procedure<'_>>) -> ScopeChange<'_> {
    procedure.map_or(ScopeChange::Other, ScopeChange::Procedure)
}

/// The records of a stream from `at` on.
pub(super) fn records(bytes: &[u8], at: usize) -> impl Iterator<Item = SymbolRecord<'_>> {
    let mut cursor = Cursor::new(bytes, at, true);
    std::iter::from_fn(move || {
        let len = usize::from(cursor.u16()?).checked_sub(2)?;
        let kind = cursor.u16()?;
        let start = cursor.position();
        let bytes = bytes.get(start..start + len)?;
        cursor.seek(start + len);
        Some(SymbolRecord { kind, bytes })
    })
}

impl<'a> SymbolRecord<'a> {
    pub(super) fn scope(self) -> ScopeChange<'a> {
        match self.kind {
            // S_END, S_INLINESITE_END, S_PROC_ID_END
            0x0006 | 0x114e | 0x114f => ScopeChange::End,
            // S_LPROC32, S_GPROC32, and the same with ids and with deferred calls
            0x110f | 0x1110 | 0x1146 | 0x1147 | 0x1155 | 0x1156 => procedure_scope(self.procedure()),
            // S_THUNK32
            0x1102 => procedure_scope(self.thunk()),
            // S_SEPCODE
            0x1132 => procedure_scope(self.separated()),
            // S_INLINESITE, and with the number of calls
            0x114d => self.inline_site(12).map_or(ScopeChange::Other, ScopeChange::Inline),
            0x115d => self.inline_site(16).map_or(ScopeChange::Other, ScopeChange::Inline),
            // S_BLOCK32, S_WITH32
            0x1103 | 0x1104 => ScopeChange::Other,
            _ => ScopeChange::None,
        }
    }

    fn procedure(self) -> Option<Procedure<'a>> {
        let mut cursor = Cursor::new(self.bytes, 12, true);
        let (size, _, _, kind) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let (offset, section, _) = (cursor.u32()?, cursor.u16()?, cursor.u8()?);
        let name = ProcedureName::Typed(cursor.string()?, kind);
        Some(Procedure { section, offset, size, name })
    }

    fn thunk(self) -> Option<Procedure<'a>> {
        let mut cursor = Cursor::new(self.bytes, 12, true);
        let (offset, section, size, _) = (cursor.u32()?, cursor.u16()?, cursor.u16()?, cursor.u8()?);
        let name = ProcedureName::Plain(cursor.string()?);
        Some(Procedure { section, offset, size: size.into(), name })
    }

    fn separated(self) -> Option<Procedure<'a>> {
        let mut cursor = Cursor::new(self.bytes, 8, true);
        let (size, _, offset, of_offset) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let (section, of_section) = (cursor.u16()?, cursor.u16()?);
        Some(Procedure { section, offset, size, name: ProcedureName::PartOf(of_section, of_offset) })
    }

    fn inline_site(self, annotations_at: usize) -> Option<InlineSite<'a>> {
        let inlinee = Cursor::new(self.bytes, 8, true).u32()?;
        Some(InlineSite { inlinee, annotations: self.bytes.get(annotations_at..)? })
    }

    /// The place and the name of a public symbol (S_PUB32) of code.
    pub(super) fn public_function(self) -> Option<(u16, u32, Range<usize>)> {
        if self.kind != 0x110e {
            return None;
        }
        let mut cursor = Cursor::new(self.bytes, 0, true);
        let (flags, offset, section) = (cursor.u32()?, cursor.u32()?, cursor.u16()?);
        let start = cursor.position();
        let name = start..start + cursor.string()?.len();
        (flags & 3 != 0).then_some((section, offset, name))
    }
}
