//! Handmade tables of each version, byte order and size of pointers.

use super::{FuncHeader, ListEntry, PcValue, PcValueReader, TableHeader, Version};

/// A form of tables.
#[derive(Clone, Copy, Debug)]
struct TableForm {
    version: Version,
    little_endian: bool,
    pointer_size: u8,
}

impl TableForm {
    fn all() -> impl Iterator<Item = Self> {
        let versions = [Version::Two, Version::Sixteen, Version::Eighteen, Version::Twenty];
        let forms = [(true, 8), (true, 4), (false, 8), (false, 4)];
        versions.into_iter().flat_map(move |version| {
            forms.map(|(little_endian, pointer_size)| Self { version, little_endian, pointer_size })
        })
    }

    fn number(self, size: u8, number: u64) -> Vec<u8> {
        let size = usize::from(size);
        let (little, big) = (number.to_le_bytes(), number.to_be_bytes());
        if self.little_endian { little[..size].to_vec() } else { big[8 - size..].to_vec() }
    }

    fn numbers(self, size: u8, numbers: &[u64]) -> Vec<u8> {
        numbers.iter().flat_map(|&number| self.number(size, number)).collect()
    }

    /// A table of two functions, without names and values: the header, then the list.
    fn table(self) -> Vec<u8> {
        let magic = match self.version {
            Version::Two => 0xffff_fffb,
            Version::Sixteen => 0xffff_fffa,
            Version::Eighteen => 0xffff_fff0,
            Version::Twenty => 0xffff_fff1,
        };
        let pointer = self.pointer_size;
        let mut table = [self.number(4, magic), vec![0, 0, 4, pointer]].concat();
        let words = match self.version {
            Version::Two => vec![2],
            Version::Sixteen => vec![2, 7, 10, 20, 30, 40, 8 + 7 * u64::from(pointer)],
            _ => vec![2, 7, 0x1000, 10, 20, 30, 40, 8 + 8 * u64::from(pointer)],
        };
        table.extend(self.numbers(pointer, &words));
        let size = if self.version >= Version::Eighteen { 4 } else { pointer };
        table.extend(self.numbers(size, &[0x10, 0x50, 0x20, 0x60, 0x90]));
        table.extend(self.number(4, 5));
        table
    }
}

#[test]
fn headers_and_lists_of_all_forms_are_read() {
    for form in TableForm::all() {
        let table = form.table();
        let header = TableHeader::parse(&table).unwrap_or_else(|| panic!("{form:?}"));
        let found = (header.version, header.little_endian, header.pointer_size, header.quantum);
        assert_eq!(found, (form.version, form.little_endian, form.pointer_size, 4));
        assert_eq!(header.functions, 2, "{form:?}");
        let parts = [header.text, header.names, header.units, header.files, header.values];
        let expected = match form.version {
            Version::Two => [0, 0, 0, 5, 0],
            Version::Sixteen => [0, 10, 20, 30, 40],
            _ => [0x1000, 10, 20, 30, 40],
        };
        assert_eq!(parts, expected, "{form:?}");
        let end = header.list + header.list_size().unwrap();
        let entries: Vec<_> = header.entries(&table[header.list as usize..end as usize]).collect();
        let base = if form.version == Version::Two { 0 } else { header.list };
        let entry = |start, record: Option<u64>| ListEntry { start, record: record.map(|at| at + base) };
        assert_eq!(
            entries,
            [entry(0x10, Some(0x50)), entry(0x20, Some(0x60)), entry(0x90, None)],
            "{form:?}"
        );
    }
}

#[test]
fn tables_cut_or_claiming_too_much_are_none() {
    for form in TableForm::all() {
        let table = form.table();
        let needed = if form.version == Version::Two { table.len() } else { table.len() - 4 };
        for len in 0..needed {
            assert!(TableHeader::parse(&table[..len]).is_none(), "{form:?} {len}");
        }
        let mut many = table.clone();
        many[8..8 + usize::from(form.pointer_size)].fill(0xff);
        assert!(TableHeader::parse(&many).is_none(), "{form:?}");
        many[8..8 + usize::from(form.pointer_size)].fill(0);
        assert!(TableHeader::parse(&many).is_none(), "{form:?}: no function");
        for (at, wrong) in [(4, 1), (6, 3), (7, 2), (0, 0)] {
            let mut other = table.clone();
            other[at] = wrong;
            assert!(TableHeader::parse(&other).is_none(), "{form:?} {at}");
        }
    }
}

#[test]
fn records_of_all_forms_are_read() {
    for form in TableForm::all() {
        let header = TableHeader::parse(&form.table()).unwrap();
        let start = if form.version >= Version::Eighteen { 4 } else { form.pointer_size };
        let mut bytes = form.number(start, 0x10);
        bytes.extend(form.numbers(4, &[1, 2, 3, 4, 5, 6, 7, 8]));
        if form.version == Version::Twenty {
            bytes.extend(form.number(4, 9));
        }
        bytes.extend([0, 3, 0, 11]);
        let record = FuncHeader::parse(&bytes, &header).unwrap();
        assert_eq!((record.name, record.depths, record.files, record.lines), (1, 4, 5, 6), "{form:?}");
        let details = record.details.map(|details| {
            assert!(details.is_top && details.writes_stack_pointer, "{form:?}");
            (details.unit, details.tables, details.data, details.size)
        });
        let expected = (form.version != Version::Two).then_some((8, 7, 11, bytes.len() as u64));
        assert_eq!(details, expected, "{form:?}");
        let short = if form.version == Version::Two { usize::from(start) + 28 } else { bytes.len() };
        assert!((0..short).all(|len| FuncHeader::parse(&bytes[..len], &header).is_none()), "{form:?}");
    }
}

#[test]
fn values_hold_from_one_instruction_to_the_next() {
    let value = |start, end, value| PcValue { start, end, value };
    // -1 + 6 for 4 instructions, 5 - 3 for 2, 2 + 100 for 300.
    let mut values = PcValueReader::new(&[12, 4, 5, 2, 200, 1, 172, 2, 0, 9, 9], 4);
    let found: Vec<_> = values.by_ref().collect();
    assert_eq!(found, [value(0, 16, 5), value(16, 24, 2), value(24, 1224, 102)]);
    assert!(values.is_whole());
    // The first difference may be 0.
    assert_eq!(
        PcValueReader::new(&[0, 4, 2, 4, 0], 1).collect::<Vec<_>>(),
        [value(0, 4, -1), value(4, 8, 0)]
    );
    // An entry without progress ends the list; the end of the bytes does, too, but then the list is not
    // whole.
    let mut still = PcValueReader::new(&[2, 0, 2, 0], 1);
    assert_eq!((still.next(), still.is_whole()), (None, true));
    let mut cut = PcValueReader::new(&[2, 4, 2], 1);
    assert_eq!((cut.by_ref().count(), cut.is_whole()), (1, false));
    assert_eq!(PcValueReader::new(&[0xff; 40], 1).next(), None);
}
