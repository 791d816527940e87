//! A made-up Go program: an ELF file with the function tables of any version of Go, for tests and fuzzing.
//!
//! `main.main` is at [`TEXT`], with 0x100 bytes. It begins with line 10 of `/src/main.go`. From 0x40 on it is
//! line 50 of `/src/inner.go`, in `main.inner`, which is inlined into `main.outer`. From 0x60 on it is line
//! 30, in `main.outer`, which is inlined into line 10. From 0x80 on it is line 11. `main.(*T).other`, 0x100
//! bytes after it, is line 7 of `/src/inner.go`.

/// The relative address of the code.
pub const TEXT: u32 = 0x1000;

const BASE: u64 = 0x40_0000;
const MODULE_DATA: usize = 0x2000;
const CALLS: usize = 0x2800;
const TABLE: usize = 0x3000;
const END: usize = 0x4000;

/// The version of the tables, by the first minor version of Go 1 that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// One run of bytes.
    Two,
    /// Parts at separate places.
    Sixteen,
    /// Addresses relative to the start of the code.
    Eighteen,
    /// Shorter descriptions of inlined calls.
    Twenty,
}

/// Where the tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a separate section.
    Section,
    /// In a file without sections.
    Segment,
    /// In the middle of another section, with all pointers filled by relocations.
    Relocated,
}

/// The whole file.
pub fn build(version: Version, place: Place) -> Vec<u8> {
    let mut image = Image { bytes: vec![0; END], place, relocations: Vec::new() };
    image.bytes[TEXT as usize..TEXT as usize + 0x300].fill(0x90);
    let parts = image.tables(version);
    image.inlined_calls(version);
    image.module_data(version, parts);
    image.sections();
    image.bytes
}

/// Where the parts of the tables begin: names, units, files, values, list.
type Parts = [u64; 5];

struct Image {
    bytes: Vec<u8>,
    place: Place,
    relocations: Vec<(u64, u64)>,
}

/// The names of functions, and where each begins.
const NAMES: &[u8] = b"main.main\0main.outer\0main.inner\0main.(*T).other\0";
const OUTER: u32 = 10;
const INNER: u32 = 21;
const OTHER: u32 = 32;
const FILES: &[u8] = b"/src/main.go\0/src/inner.go\0";

impl Image {
    fn put(&mut self, at: usize, bytes: &[u8]) -> usize {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        at + bytes.len()
    }

    fn number(&mut self, at: usize, number: u32) -> usize {
        self.put(at, &number.to_le_bytes())
    }

    fn word(&mut self, at: usize, word: u64) -> usize {
        self.put(at, &word.to_le_bytes())
    }

    /// A pointer, which a relocation fills if this is requested.
    fn pointer(&mut self, at: usize, target: u64) -> usize {
        if self.place == Place::Relocated {
            self.relocations.push((BASE + at as u64, target));
            return at + 8;
        }
        self.word(at, target)
    }

    fn tables(&mut self, version: Version) -> Parts {
        let magic: u32 = match version {
            Version::Two => 0xffff_fffb,
            Version::Sixteen => 0xffff_fffa,
            Version::Eighteen => 0xffff_fff0,
            Version::Twenty => 0xffff_fff1,
        };
        let at = self.number(TABLE, magic);
        let at = self.put(at, &[0, 0, 1, 8]);
        let at = self.word(at, 2);
        if version == Version::Two { self.old_tables(at) } else { self.new_tables(version, at) }
    }

    /// The tables of Go 1.2: the list comes first, then everything else in any order.
    fn old_tables(&mut self, list: usize) -> Parts {
        let files_at = list + 5 * 8 + 4;
        let names_at = files_at + 3 * 4;
        let paths_at = names_at + NAMES.len();
        let values_at = paths_at + FILES.len();
        let (values, places) = values(1);
        let records_at = (values_at + values.len()).next_multiple_of(8);
        let from_start = |at: usize| (at - TABLE) as u32;
        self.number(list + 5 * 8, from_start(files_at));
        for (index, number) in [3, from_start(paths_at), from_start(paths_at) + 13].into_iter().enumerate() {
            self.number(files_at + index * 4, number);
        }
        self.put(names_at, NAMES);
        self.put(paths_at, FILES);
        self.put(values_at, &values);
        let mut record = records_at;
        for (index, name) in [0, OTHER].into_iter().enumerate() {
            let start = BASE + u64::from(TEXT) + index as u64 * 0x100;
            let at = self.pointer(list + index * 16, start);
            self.word(at, from_start(record).into());
            let at = self.pointer(record, start);
            let [files, lines, _] = places[index].map(|place| from_start(values_at) + place);
            let fields = [from_start(names_at) + name, 0, 0, 0, files, lines, 0, 0];
            record = fields.into_iter().fold(at, |at, field| self.number(at, field)).next_multiple_of(8);
        }
        self.pointer(list + 32, BASE + u64::from(TEXT) + 0x200);
        [0; 5]
    }

    fn new_tables(&mut self, version: Version, at: usize) -> Parts {
        let at = self.word(at, 2);
        let at = if version >= Version::Eighteen { self.pointer(at, BASE + u64::from(TEXT)) } else { at };
        let names_at = at + 5 * 8;
        let units_at = names_at + NAMES.len();
        let files_at = units_at + 4 * 4;
        let values_at = files_at + FILES.len();
        let (values, places) = values(0);
        let list_at = (values_at + values.len()).next_multiple_of(8);
        let parts = [names_at, units_at, files_at, values_at, list_at].map(|part| (part - TABLE) as u64);
        parts.into_iter().fold(at, |at, part| self.word(at, part));
        self.put(names_at, NAMES);
        // The second unit has one file, and one that is not named anywhere.
        for (index, position) in [0, 13, u32::MAX, 13].into_iter().enumerate() {
            self.number(units_at + index * 4, position);
        }
        self.put(files_at, FILES);
        self.put(values_at, &values);
        self.list(version, list_at, places);
        parts
    }

    fn list(&mut self, version: Version, list_at: usize, places: [[u32; 3]; 2]) {
        let field = if version >= Version::Eighteen { 4 } else { 8 };
        let mut record = (list_at + 5 * field).next_multiple_of(8);
        for (index, name) in [0, OTHER].into_iter().enumerate() {
            let (entry, offset) = (list_at + index * 2 * field, (record - list_at) as u32);
            let start = index as u32 * 0x100;
            let place = places[index];
            let at = if field == 4 {
                self.number(entry + 4, offset);
                self.number(entry, start);
                self.number(record, start)
            } else {
                self.word(entry + 8, offset.into());
                self.pointer(entry, BASE + u64::from(TEXT + start));
                self.pointer(record, BASE + u64::from(TEXT + start))
            };
            record = self.rest_of_record(version, at, name, (index as u32) * 3, place);
        }
        if field == 4 {
            self.number(list_at + 16, 0x200);
        } else {
            self.pointer(list_at + 32, BASE + u64::from(TEXT) + 0x200);
        }
    }

    /// Writes the part of a record after its address, and returns where the next one begins.
    fn rest_of_record(
        &mut self,
        version: Version,
        at: usize,
        name: u32,
        unit: u32,
        [files, lines, inlined]: [u32; 3],
    ) -> usize {
        let mut fields = vec![name, 0, 0, 0, files, lines, 3, unit];
        if version >= Version::Twenty {
            fields.push(9);
        }
        let at = fields.into_iter().fold(at, |at, field| self.number(at, field));
        let at = self.put(at, &[0, 0, 0, 4]);
        let at = [0, 0, inlined].into_iter().fold(at, |at, table| self.number(at, table));
        if version >= Version::Eighteen {
            let calls = if inlined == 0 { u32::MAX } else { 0x10 };
            let at = [u32::MAX; 3].into_iter().fold(at, |at, data| self.number(at, data));
            return self.number(at, calls).next_multiple_of(8);
        }
        let at = at.next_multiple_of(8) + 3 * 8;
        if inlined != 0 { self.pointer(at, BASE + CALLS as u64) } else { at + 8 }
    }

    fn inlined_calls(&mut self, version: Version) {
        // The outer call is in line 10 of `main.main`, and the inner call in line 30 of the outer function.
        let mut at = CALLS;
        for (name, place) in [(OUTER, 0x20), (INNER, 0x70)] {
            at = match version {
                Version::Two => at,
                Version::Sixteen | Version::Eighteen => {
                    [0, 0, 0, name, place].into_iter().fold(at, |at, field| self.number(at, field))
                }
                Version::Twenty => {
                    [0, name, place, 9].into_iter().fold(at, |at, field| self.number(at, field))
                }
            };
        }
    }

    fn module_data(&mut self, version: Version, [names, units, files, values, list]: Parts) {
        let table = BASE + TABLE as u64;
        let pointers = [(0, 0), (1, names), (4, units), (7, files), (10, values), (13, list)]
            .map(|(at, part)| (at, table + part));
        let code = (22, BASE + u64::from(TEXT));
        let data = (if version >= Version::Twenty { 40 } else { 38 }, BASE + CALLS as u64 - 0x10);
        for (number, target) in pointers.into_iter().chain([code, data]) {
            self.pointer(MODULE_DATA + number * 8, target);
        }
    }

    /// The headers of the file, its two segments and its sections.
    fn sections(&mut self) {
        let names = b"\0.gopclntab\0.go.buildinfo\0.data.rel.ro\0.rela.dyn\0.shstrtab\0";
        let relocations_at = END;
        for (at, target) in std::mem::take(&mut self.relocations) {
            self.bytes.extend([at, 8, target].map(u64::to_le_bytes).as_flattened());
        }
        let names_at = self.bytes.len();
        self.bytes.extend(names);
        let headers_at = self.bytes.len();
        let strings = (49_u32, 3_u32, names_at, names.len());
        let sections = match self.place {
            Place::Section => vec![(0, 0, 0, 0), (1, 1, TABLE, END - TABLE), strings],
            Place::Segment => Vec::new(),
            Place::Relocated => vec![
                (0, 0, 0, 0),
                (12, 1, MODULE_DATA, 8),
                (26, 1, MODULE_DATA, END - MODULE_DATA),
                (39, 4, relocations_at, names_at - relocations_at),
                strings,
            ],
        };
        for &(name, kind, offset, size) in &sections {
            self.bytes.extend([name, kind].map(u32::to_le_bytes).as_flattened());
            let fields = [2, BASE + offset as u64, offset as u64, size as u64, 0, 1, 0];
            self.bytes.extend(fields.map(u64::to_le_bytes).as_flattened());
        }
        self.file_header(headers_at as u64, sections.len() as u16);
        self.segment(64, 5, 0, MODULE_DATA);
        self.segment(120, 6, MODULE_DATA, END - MODULE_DATA);
    }

    fn file_header(&mut self, sections_at: u64, sections: u16) {
        self.put(0, b"\x7fELF\x02\x01\x01\0");
        self.put(16, &[3, 0, 62, 0, 1, 0, 0, 0]);
        self.word(32, 64);
        self.word(40, if sections > 0 { sections_at } else { 0 });
        let counts = [64, 56, 2, 64, sections, sections.saturating_sub(1)];
        self.put(52, counts.map(u16::to_le_bytes).as_flattened());
    }

    fn segment(&mut self, header: usize, flags: u32, offset: usize, size: usize) {
        let at = self.number(header, 1);
        let at = self.number(at, flags);
        let address = BASE + offset as u64;
        let fields = [offset as u64, address, address, size as u64, size as u64, 0x1000];
        self.put(at, fields.map(u64::to_le_bytes).as_flattened());
    }
}

/// The tables of values, and the offsets in them of the files, lines and inlined calls of each function.
/// `first` is the number of the first file.
fn values(first: i32) -> (Vec<u8>, [[u32; 3]; 2]) {
    let mut bytes = vec![0];
    let mut table = |pairs: &[(u32, i32)]| {
        let at = bytes.len() as u32;
        let mut last = -1;
        for &(size, value) in pairs {
            let difference = value - last;
            leb(&mut bytes, (difference << 1 ^ difference >> 31) as u32);
            leb(&mut bytes, size);
            last = value;
        }
        bytes.push(0);
        at
    };
    let main = [
        table(&[(0x40, first), (0x20, first + 1), (0xa0, first)]),
        table(&[(0x40, 10), (0x20, 50), (0x20, 30), (0x80, 11)]),
        table(&[(0x40, -1), (0x20, 1), (0x20, 0), (0x80, -1)]),
    ];
    let other = [table(&[(0x100, if first == 0 { 0 } else { 2 })]), table(&[(0x100, 7)]), 0];
    (bytes, [main, other])
}

fn leb(to: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}
