//! What a trace says of itself before its records: sections of lines, and a binary header.

use rustc_hash::FxHashMap;

use crate::le_cursor::LeCursor;

/// The first bytes of the binary header.
const MAGIC: &[u8] = b"SLOW";

/// The bits of a streamed trace's version, beside the version itself.
const STREAMING: u16 = 0xf0;

/// The clocks of the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TraceClock {
    ThreadCpu,
    #[default]
    Wall,
    /// Both, the CPU time first.
    Dual,
}

/// The sections of lines.
#[derive(Debug, Default)]
pub(super) struct Sections {
    pub(super) clock: Option<TraceClock>,
    pub(super) pid: Option<u32>,
    /// The name of each thread.
    pub(super) threads: FxHashMap<u16, String>,
    pub(super) methods: FxHashMap<u32, MethodName>,
}

/// A method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MethodName {
    /// With its class, as `java.lang.String.concat`.
    pub(super) name: String,
    pub(super) file: String,
}

/// The binary header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BinaryHeader {
    pub(super) version: u16,
    pub(super) is_streamed: bool,
    /// Where the records begin, from the header on.
    pub(super) length: usize,
    /// The size of a record. It is stated from version 3 on.
    pub(super) record_size: usize,
}

/// Whether a file begins as a trace.
pub(crate) fn is_trace(start: &[u8]) -> bool {
    BinaryHeader::of(start).is_some_and(|header| (1..=9).contains(&header.version))
        || start.starts_with(b"*version\n")
            && start.get(9..).is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
}

impl BinaryHeader {
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let mut cursor = LeCursor::new(bytes);
        if cursor.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let (version, length) = (cursor.u16()?, usize::from(cursor.u16()?));
        let _start = cursor.u64()?;
        let is_streamed = version & STREAMING == STREAMING;
        let version = if is_streamed { version & !STREAMING } else { version };
        let declared = if version >= 3 { usize::from(cursor.u16()?) } else { 0 };
        let record_size = match version {
            1 => 9,
            2 => 10,
            _ => declared.max(10),
        };
        Some(Self { version, is_streamed, length: length.max(cursor.at()), record_size })
    }
}

impl Sections {
    /// Splits a file into its sections of lines and what follows them, if they end.
    pub(super) fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        const END: &[u8] = b"\n*end\n";
        let at = bytes.windows(END.len()).position(|window| window == END)?;
        let (text, rest) = bytes.split_at(at + END.len());
        let mut sections = Self::default();
        sections.add(text);
        Some((sections, rest))
    }

    /// Adds the lines of a text.
    pub(super) fn add(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let mut section = "";
        for line in text.lines() {
            match (section, line.strip_prefix('*')) {
                (_, Some(name)) => section = name,
                ("version", None) => self.add_fact(line),
                ("threads", None) => self.add_thread(line),
                ("methods", None) => {
                    self.add_method(line);
                }
                _ => {}
            }
        }
    }

    fn add_fact(&mut self, line: &str) {
        match line.split_once('=') {
            Some(("clock", clock)) => {
                self.clock = Some(match clock {
                    "thread-cpu" => TraceClock::ThreadCpu,
                    "dual" => TraceClock::Dual,
                    _ => TraceClock::Wall,
                });
            }
            Some(("pid", pid)) => self.pid = pid.parse().ok(),
            _ => {}
        }
    }

    fn add_thread(&mut self, line: &str) {
        if let Some((id, name)) = line.split_once('\t')
            && let Ok(id) = id.parse()
        {
            self.threads.insert(id, name.to_owned());
        }
    }

    /// Adds a method of a line such as `0x10  java.lang.String  concat  (I)V  String.java`, with tabs.
    pub(super) fn add_method(&mut self, line: &str) -> Option<()> {
        let mut fields = line.trim_end().split('\t');
        let id = u32::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok()?;
        let (class, method) = (fields.next()?, fields.next().unwrap_or_default());
        let (_signature, file) = (fields.next(), fields.next().unwrap_or_default());
        let name = if method.is_empty() { class.to_owned() } else { format!("{class}.{method}") };
        self.methods.insert(id, MethodName { name, file: file.to_owned() });
        Some(())
    }
}
