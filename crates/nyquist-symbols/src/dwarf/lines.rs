//! Source lines: running line number programs for a sorted list of addresses.

use super::attribute::StringRef;
use super::ranges::UnitView;
use crate::section_contents::SectionContents;
use gimli::constants;
use gimli::{AttributeValue, DebugLineOffset, EndianSlice, RunTimeEndian};
use nyquist_object::Cursor;
use std::borrow::Cow;
use std::sync::Arc;

type SectionSlice<'a> = EndianSlice<'a, RunTimeEndian>;

/// A row of a line table: the place that an instruction was compiled from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineRow {
    address: u64,
    /// The file's number in the table's header.
    pub(crate) file: u64,
    /// The line, or 0 if there is none.
    pub(crate) line: u64,
    /// The column, or 0 if it is not known.
    pub(crate) column: u64,
}

/// A unit's line number program (DWARF 5, 6.2).
pub(crate) struct LineProgram<'a> {
    view: UnitView<'a>,
    header: gimli::LineProgramHeader<SectionSlice<'a>>,
    /// The paths that were needed, by their number. An empty path means that there is none.
    paths: Vec<Option<Arc<str>>>,
}

/// The bytes of the line program that begins at `offset` of `.debug_line`.
pub(crate) fn program_bytes<'a>(
    section: &'a SectionContents,
    offset: u64,
    little_endian: bool,
    scratch: &'a mut Vec<u8>,
) -> Option<&'a [u8]> {
    let mut cursor = Cursor::new(section.head(offset, 12, scratch)?, 0, little_endian);
    let (length, _) = cursor.initial_length()?;
    let end = offset.checked_add(cursor.position() as u64)?.checked_add(length)?;
    section.slice(offset..end, scratch)
}

impl<'a> LineProgram<'a> {
    /// Parses the header of a program. `bytes` begin with it.
    pub(crate) fn parse(view: UnitView<'a>, bytes: &'a [u8]) -> Option<Self> {
        let endian =
            if view.addresses.sections.little_endian { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let address_size = view.unit.header.encoding.address_size;
        let section = gimli::DebugLine::new(bytes, endian);
        let program = section.program(DebugLineOffset(0), address_size, None, None).ok()?;
        let header = program.header().clone();
        let paths = vec![None; header.file_names().len() + 1];
        Some(Self { view, header, paths })
    }

    /// Runs the program for `requested`, which is sorted: the row of each address that a sequence covers. Rows
    /// from before a damaged instruction count.
    pub(crate) fn rows(&self, requested: &[u64]) -> Vec<Option<LineRow>> {
        let mut machine =
            LineStateMachine::new(&self.header, self.view.addresses.sections.little_endian, requested);
        let program = self.header.raw_program_buf();
        let _ = machine.run(program.slice());
        machine.found
    }

    /// The path of file number `index`, absolute if the table and the unit allow it.
    pub(crate) fn path(&mut self, index: u64) -> Option<Arc<str>> {
        let at = usize::try_from(index).ok().filter(|&at| at < self.paths.len())?;
        if self.paths[at].is_none() {
            self.paths[at] = Some(self.build_path(index).unwrap_or_default());
        }
        self.paths[at].clone().filter(|path| !path.is_empty())
    }

    /// Whether the table has a file with the requested path. Paths are made one at a time, because all together
    /// they can be as long as the square of the table's size.
    pub(crate) fn names(&self, is_it: &mut dyn FnMut(&str) -> bool) -> bool {
        let count = self.header.file_names().len() as u64;
        (0..=count).any(|index| self.build_path(index).is_some_and(|named| is_it(&named)))
    }

    fn build_path(&self, index: u64) -> Option<Arc<str>> {
        let file = self.header.file(index)?;
        let mut path = Vec::new();
        // In DWARF 5 directory 0 is in the table. In earlier versions, it is that of the unit.
        if let Some(comp_dir) = self.comp_dir() {
            join(&mut path, &comp_dir);
        }
        if (file.directory_index() != 0 || self.header.version() >= 5)
            && let Some(directory) = file.directory(&self.header)
        {
            join_folder(&mut path, &self.string(directory)?);
        }
        join(&mut path, &self.string(file.path_name())?);
        Some(String::from_utf8_lossy(&path).into())
    }

    fn comp_dir(&self) -> Option<Vec<u8>> {
        let UnitView { file, unit, supplementary, .. } = self.view;
        let supplementary = supplementary.map(|file| &file.sections);
        unit.root_string(&file.sections, supplementary, unit.comp_dir?)
    }

    fn string(&self, value: AttributeValue<SectionSlice<'a>>) -> Option<Cow<'_, [u8]>> {
        let UnitView { unit, addresses, supplementary, .. } = self.view;
        let string = match value {
            AttributeValue::String(string) => return Some(Cow::Borrowed(string.slice())),
            AttributeValue::DebugStrRef(offset) => StringRef::Str(offset.0 as u64),
            AttributeValue::DebugLineStrRef(offset) => StringRef::LineStr(offset.0 as u64),
            AttributeValue::DebugStrRefSup(offset) => StringRef::SupplementaryStr(offset.0 as u64),
            AttributeValue::DebugStrOffsetsIndex(index) => StringRef::Index(index.0 as u64),
            _ => return None,
        };
        let supplementary = supplementary.map(|file| &file.sections);
        addresses.sections.string(&unit.bases, string, &[], supplementary)
    }
}

/// Appends a folder to another one. If both begin with `./`, the second replaces the first. Both were
/// absolute before an option made the compiler write their common prefix as `.` (`-ffile-prefix-map`).
fn join_folder(path: &mut Vec<u8>, next: &[u8]) {
    if path.starts_with(b"./") && next.starts_with(b"./") {
        path.clear();
    }
    join(path, next);
}

/// Appends a path to a folder. An absolute path, also one of Windows, replaces the folder.
fn join(path: &mut Vec<u8>, next: &[u8]) {
    let is_windows = matches!(next, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    if is_windows || next.first().is_some_and(|&byte| byte == b'/' || byte == b'\\') {
        path.clear();
    }
    if next.is_empty() {
        return;
    }
    if path.last().is_some_and(|&byte| byte != b'/' && byte != b'\\') {
        // `.` alone, which Go writes for its units, does not indicate Windows.
        let is_windows = path.contains(&b'\\') && !path.contains(&b'/');
        path.push(if is_windows { b'\\' } else { b'/' });
    }
    path.extend_from_slice(next);
}

/// The state machine of a line number program, which records the rows of requested addresses as it passes them.
struct LineStateMachine<'a> {
    requested: &'a [u64],
    found: Vec<Option<LineRow>>,
    /// The index of the first requested address that the current sequence has not reached, and that address.
    next: usize,
    reaches: u64,
    /// The last row of the current sequence.
    last: Option<LineRow>,
    row: LineRow,
    op_index: u64,
    little_endian: bool,
    address_size: u8,
    min_length: u64,
    max_ops: u64,
    opcode_base: u8,
    /// The advance of each special opcode.
    special: [OpcodeAdvance; 256],
    lengths: &'a [u8],
}

/// The advance of a special opcode, in operations and in lines.
#[derive(Clone, Copy, Default)]
struct OpcodeAdvance {
    operations: u8,
    line: i16,
}

impl<'a> LineStateMachine<'a> {
    fn new(
        header: &'a gimli::LineProgramHeader<SectionSlice<'_>>,
        little_endian: bool,
        requested: &'a [u64],
    ) -> Self {
        let opcode_base = header.opcode_base();
        Self {
            requested,
            found: vec![None; requested.len()],
            next: 0,
            reaches: 0,
            last: None,
            row: Self::FIRST,
            op_index: 0,
            little_endian,
            address_size: header.address_size(),
            min_length: u64::from(header.minimum_instruction_length()),
            max_ops: u64::from(header.maximum_operations_per_instruction()).max(1),
            opcode_base,
            special: specials(header.line_base(), header.line_range().max(1), opcode_base),
            lengths: header.standard_opcode_lengths().slice(),
        }
    }

    const FIRST: LineRow = LineRow { address: 0, file: 1, line: 1, column: 0 };

    fn run(&mut self, program: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(program, 0, self.little_endian);
        while cursor.position() < program.len() {
            let opcode = cursor.u8()?;
            if opcode >= self.opcode_base {
                self.special(opcode);
            } else if opcode == 0 {
                self.extended(&mut cursor)?;
            } else {
                self.standard(constants::DwLns(opcode), &mut cursor)?;
            }
        }
        Some(())
    }

    #[inline]
    fn special(&mut self, opcode: u8) {
        let OpcodeAdvance { operations, line } = self.special[usize::from(opcode)];
        self.advance(u64::from(operations));
        self.row.line = self.row.line.wrapping_add_signed(i64::from(line));
        self.emit();
    }

    fn standard(&mut self, opcode: constants::DwLns, cursor: &mut Cursor<'_>) -> Option<()> {
        match opcode {
            constants::DW_LNS_copy => self.emit(),
            constants::DW_LNS_advance_pc => {
                let operations = cursor.uleb()?;
                self.advance(operations);
            }
            constants::DW_LNS_advance_line => {
                self.row.line = self.row.line.wrapping_add_signed(cursor.sleb()?);
            }
            constants::DW_LNS_set_file => self.row.file = cursor.uleb()?,
            constants::DW_LNS_set_column => self.row.column = cursor.uleb()?,
            constants::DW_LNS_const_add_pc => {
                self.advance(u64::from(self.special[255].operations));
            }
            constants::DW_LNS_fixed_advance_pc => {
                self.row.address = self.row.address.wrapping_add(u64::from(cursor.u16()?));
                self.op_index = 0;
            }
            constants::DW_LNS_set_isa => cursor.skip_leb()?,
            constants::DW_LNS_negate_stmt
            | constants::DW_LNS_set_basic_block
            | constants::DW_LNS_set_prologue_end
            | constants::DW_LNS_set_epilogue_begin => {}
            unknown => {
                let operands = *self.lengths.get(usize::from(unknown.0) - 1)?;
                (0..operands).try_for_each(|_| cursor.skip_leb())?;
            }
        }
        Some(())
    }

    fn extended(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let length = usize::try_from(cursor.uleb()?).ok()?;
        let end = cursor.position().checked_add(length)?;
        if length == 0 {
            return Some(());
        }
        match constants::DwLne(cursor.u8()?) {
            constants::DW_LNE_end_sequence => {
                self.emit();
                self.last = None;
                self.row = Self::FIRST;
                self.op_index = 0;
            }
            constants::DW_LNE_set_address => {
                let size = u8::try_from(length - 1).unwrap_or(self.address_size);
                self.row.address = cursor.sized(size)?;
                self.op_index = 0;
            }
            _ => {}
        }
        cursor.seek(end);
        Some(())
    }

    #[inline]
    fn advance(&mut self, operations: u64) {
        let instructions = if self.max_ops == 1 {
            operations
        } else {
            let operations = self.op_index.wrapping_add(operations);
            self.op_index = operations % self.max_ops;
            operations / self.max_ops
        };
        self.row.address = self.row.address.wrapping_add(instructions.wrapping_mul(self.min_length));
    }

    /// Appends the row to the table. The previous row extends up to here.
    #[inline]
    fn emit(&mut self) {
        let address = self.row.address;
        match self.last {
            Some(last) if last.address <= address => {
                if address > self.reaches {
                    self.note(last, address);
                }
            }
            // The first row of a sequence, or a row that goes back, which only occurs in damaged tables.
            _ => self.go_to(self.requested.partition_point(|&requested| requested < address)),
        }
        self.last = Some(self.row);
    }

    /// Records the row of the requested addresses before `end`.
    fn note(&mut self, row: LineRow, end: u64) {
        let mut next = self.next;
        while self.requested.get(next).is_some_and(|&requested| requested < end) {
            if let Some(found) = self.found.get_mut(next) {
                found.get_or_insert(row);
            }
            next += 1;
        }
        self.go_to(next);
    }

    fn go_to(&mut self, next: usize) {
        self.next = next;
        self.reaches = self.requested.get(next).copied().unwrap_or(u64::MAX);
    }
}

/// The advance of each special opcode (DWARF 5, 6.2.5.1).
fn specials(line_base: i8, line_range: u8, opcode_base: u8) -> [OpcodeAdvance; 256] {
    let mut specials = [OpcodeAdvance::default(); 256];
    for (opcode, advance) in (opcode_base..=255).zip(&mut specials[usize::from(opcode_base)..]) {
        let adjusted = opcode - opcode_base;
        advance.operations = adjusted / line_range;
        advance.line = i16::from(line_base) + i16::from(adjusted % line_range);
    }
    specials
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_new_beginning_is_not_joined() {
        let check = |parts: [&str; 2], expected: &str| {
            let mut path = parts[0].as_bytes().to_vec();
            join_folder(&mut path, parts[1].as_bytes());
            join(&mut path, b"a.c");
            assert_eq!(String::from_utf8_lossy(&path), expected);
        };
        check(["./nptl", "./nptl"], "./nptl/a.c");
        check(["./nptl", "./misc/../sysdeps/unix"], "./misc/../sysdeps/unix/a.c");
        check(["./nptl", "../sysdeps/nptl"], "./nptl/../sysdeps/nptl/a.c");
        check(["/build/nptl", "./sub"], "/build/nptl/./sub/a.c");
        check(["./nptl", "/usr/include"], "/usr/include/a.c");
    }

    #[test]
    fn folders_and_files_make_a_path_of_their_system() {
        let check = |parts: &[&str], expected: &str| {
            let mut path = Vec::new();
            for part in parts {
                join(&mut path, part.as_bytes());
            }
            assert_eq!(String::from_utf8_lossy(&path), expected);
        };
        check(&["/src", "core", "a.c"], "/src/core/a.c");
        check(&["/src", "/usr/include", "a.h"], "/usr/include/a.h");
        check(&["C:\\src", "core", "a.c"], "C:\\src\\core\\a.c");
        check(&["/cross", "C:/src", "a.c"], "C:/src/a.c");
        check(&[".", "<autogenerated>"], "./<autogenerated>");
        check(&["", "a.c"], "a.c");
    }
}
