//! Makes Mach-O files byte by byte.

/// Where `__TEXT` is in an image.
pub(crate) const TEXT: u64 = 0x1_0000_0000;

pub(crate) const ARM64: u32 = 0x0100_000c;
pub(crate) const X86_64: u32 = 0x0100_0007;

/// Kinds of files.
pub(crate) const OBJECT: u32 = 1;
pub(crate) const EXECUTABLE: u32 = 2;
pub(crate) const DEBUG_SYMBOLS: u32 = 10;

/// Types of symbols: local ones, global ones, and those for debuggers.
pub(crate) const LOCAL: u8 = 0x0e;
pub(crate) const EXTERNAL: u8 = 0x0f;
pub(crate) const FUN: u8 = 0x24;
pub(crate) const SO: u8 = 0x64;
pub(crate) const OSO: u8 = 0x66;

/// A symbol: its name, its type, the number of its section, its value.
pub(crate) type Symbol<'a> = (&'a str, u8, u8, u64);

/// The contents of a file.
pub(crate) struct Image<'a> {
    pub(crate) cpu: u32,
    pub(crate) kind: u32,
    pub(crate) uuid: Option<[u8; 16]>,
    /// Where the code begins, and its bytes.
    pub(crate) code: (u64, u64),
    /// Sections of `__DWARF`.
    pub(crate) dwarf: Vec<(&'static str, Vec<u8>)>,
    pub(crate) symbols: Vec<Symbol<'a>>,
    /// The distances of functions from each other, the first from `__TEXT`.
    pub(crate) starts: Vec<u8>,
    pub(crate) exports: Vec<u8>,
}

impl Default for Image<'_> {
    fn default() -> Self {
        Self {
            cpu: ARM64,
            kind: EXECUTABLE,
            uuid: None,
            code: (TEXT + 0x1000, 0x100),
            dwarf: Vec::new(),
            symbols: Vec::new(),
            starts: Vec::new(),
            exports: Vec::new(),
        }
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_le_bytes()).collect()
}

fn name(text: &str) -> Vec<u8> {
    let mut name = text.as_bytes().to_vec();
    name.resize(16, 0);
    name
}

fn command(number: u32, fields: &[u8]) -> Vec<u8> {
    [&words(&[number, fields.len() as u32 + 8]), fields].concat()
}

fn section(segment: &str, text: &str, place: (u64, u64), offset: u64, flags: u32) -> Vec<u8> {
    let head = [name(text), name(segment), longs(&[place.0, place.1])].concat();
    [head, words(&[offset as u32, 0, 0, 0, flags, 0, 0, 0])].concat()
}

fn segment(text: &str, place: (u64, u64), bytes: (u64, u64), sections: &[Vec<u8>]) -> Vec<u8> {
    let head = [name(text), longs(&[place.0, place.1, bytes.0, bytes.1])].concat();
    command(0x19, &[head, words(&[5, 5, sections.len() as u32, 0]), sections.concat()].concat())
}

impl Image<'_> {
    /// The bytes of the file: the code is at 0x1000, everything else from 0x2000 on.
    pub(crate) fn build(&self) -> Vec<u8> {
        let mut body = vec![0x90; 0x2000];
        let mut add = |bytes: &[u8]| {
            let at = body.len() as u64;
            body.extend_from_slice(bytes);
            (at, bytes.len() as u64)
        };
        let is_object = self.kind == OBJECT;
        let text = if is_object { (0, 0x1_0000) } else { (TEXT, 0x2000) };
        let in_file = if self.kind == DEBUG_SYMBOLS { (0, 0) } else { (0, 0x2000) };
        let code = section("__TEXT", "__text", self.code, 0x1000, 0x8000_0400);
        let mut commands = vec![segment(if is_object { "" } else { "__TEXT" }, text, in_file, &[code])];
        let sections: Vec<_> = self.dwarf.iter().map(|(name, bytes)| (*name, add(bytes))).collect();
        let start = sections.first().map_or(0, |(_, (at, _))| *at);
        let size = sections.iter().map(|(_, (_, size))| size).sum();
        let dwarf = sections
            .iter()
            .map(|(name, (at, size))| section("__DWARF", name, (*at, *size), *at, 0x0200_0000));
        commands.push(segment("__DWARF", (0, size), (start, size), &dwarf.collect::<Vec<_>>()));
        let mut strings = vec![0, 0];
        let symbols = self.symbols.iter().flat_map(|&(name, kind, section, value)| {
            let at = if name.is_empty() { 1 } else { strings.len() as u32 };
            strings.extend_from_slice(name.as_bytes());
            strings.push(0);
            [words(&[at]), vec![kind, section, 0, 0], longs(&[value])].concat()
        });
        let symbols: Vec<u8> = symbols.collect();
        let (symbols_at, strings_at) = (add(&symbols), add(&strings));
        let place = |(at, size): (u64, u64)| [at as u32, size as u32];
        let table =
            [symbols_at.0 as u32, self.symbols.len() as u32, strings_at.0 as u32, strings_at.1 as u32];
        commands.push(command(0x2, &words(&table)));
        commands.push(command(0x26, &words(&place(add(&self.starts)))));
        commands.push(command(0x8000_0033, &words(&place(add(&self.exports)))));
        commands.extend(self.uuid.map(|uuid| command(0x1b, &uuid)));
        let count = commands.len() as u32;
        let commands = commands.concat();
        let header = words(&[0xfeed_facf, self.cpu, 0, self.kind, count, commands.len() as u32, 0, 0]);
        let head = [header, commands].concat();
        body[..head.len()].copy_from_slice(&head);
        body
    }
}

/// A universal file.
pub(crate) fn universal(files: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes =
        [0xcafe_babe_u32, files.len() as u32].iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
    let mut at = 0x1000;
    for (cpu, file) in files {
        bytes.extend([*cpu, 0, at, file.len() as u32, 12].iter().flat_map(|word| word.to_be_bytes()));
        at += (file.len() as u32).next_multiple_of(0x1000);
    }
    for (_, file) in files {
        bytes.resize(bytes.len().next_multiple_of(0x1000), 0);
        bytes.extend_from_slice(file);
    }
    bytes
}

/// A function in debug info: its name, its start, its size, its line.
pub(crate) type Function<'a> = (&'a str, u64, u64, u8);

/// Debug info (DWARF 4) of one unit, `/src/FILE`: each function is one row of the line table.
pub(crate) fn dwarf(file: &str, functions: &[Function<'_>]) -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: &str| [text.as_bytes(), b"\0"].concat();
    let abbreviations = [
        &[1, 0x11, 1, 0x03, 0x08, 0x1b, 0x08, 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0][..],
        &[2, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, 0],
    ];
    let first = functions.iter().map(|function| function.1).min().unwrap_or(0);
    let end = functions.iter().map(|function| function.1 + function.2).max().unwrap_or(0);
    let mut info = [vec![4, 0], words(&[0]), vec![8, 1], text(file), text("/src"), words(&[0])].concat();
    info.extend(longs(&[first, end - first]));
    let mut lines = Vec::new();
    for &(name, start, size, line) in functions {
        info.push(2);
        info.extend([text(name), longs(&[start, size])].concat());
        lines.extend([&[0, 9, 2], &longs(&[start])[..]].concat());
        assert!(line < 64 && size < 128, "each has to be one byte");
        lines.extend([3, line - 1, 1, 2, size as u8, 0, 1, 1]);
    }
    info.push(0);
    let tables =
        [&[1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0][..], &text(file), &[0, 0, 0, 0]]
            .concat();
    let lines = [vec![4, 0], words(&[tables.len() as u32]), tables, lines].concat();
    let with_length = |bytes: Vec<u8>| [words(&[bytes.len() as u32]), bytes].concat();
    vec![
        ("__debug_abbrev", abbreviations.concat()),
        ("__debug_info", with_length(info)),
        ("__debug_line", with_length(lines)),
    ]
}
