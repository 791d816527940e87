//! Parses files of a process in `/proc`: `stat`, `io` and `status` (proc(5)).

use crate::linux::proc::after_name;

/// The used fields of a process's `stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessStat {
    /// Whether it is a zombie, which uses nothing any more.
    pub(super) has_ended: bool,
    pub(super) minor_faults: u64,
    /// Those of the children that it has waited for.
    pub(super) child_minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) threads: u64,
    /// When it was born, in hundredths of a second since boot.
    pub(super) born_ticks: u64,
    pub(super) resident_pages: u64,
}

impl ProcessStat {
    /// Parses the text; `None` if it is not that of a process.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        /// The indices of the fields from the state on, which is the third field.
        const MINOR_FAULTS: usize = 10 - 3;
        const CHILD_MINOR_FAULTS: usize = 11 - 3;
        const MAJOR_FAULTS: usize = 12 - 3;
        const THREADS: usize = 20 - 3;
        const BORN: usize = 22 - 3;
        const RESIDENT: usize = 24 - 3;
        let rest = after_name(text)?;
        let mut fields = [0; RESIDENT + 1];
        let mut count = 0;
        // The state is not a number, and small memory counts may be reported as negative numbers.
        for (field, word) in fields.iter_mut().zip(rest.split(u8::is_ascii_whitespace)) {
            *field = number(word).unwrap_or(0);
            count += 1;
        }
        (count == fields.len()).then(|| Self {
            has_ended: matches!(rest.first(), Some(b'Z' | b'X')) && fields[THREADS] <= 1,
            minor_faults: fields[MINOR_FAULTS],
            child_minor_faults: fields[CHILD_MINOR_FAULTS],
            major_faults: fields[MAJOR_FAULTS],
            threads: fields[THREADS],
            born_ticks: fields[BORN],
            resident_pages: fields[RESIDENT],
        })
    }
}

/// The used fields of the `io` of a process or a thread, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessIo {
    /// By system calls that read and write, for any kind of file.
    pub(super) read: u64,
    pub(super) written: u64,
    /// From and to storage.
    pub(super) read_from_storage: u64,
    pub(super) written_to_storage: u64,
}

impl ProcessIo {
    /// Parses the text; `None` if a number is missing.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        Some(Self {
            read: named(text, b"rchar:")?,
            written: named(text, b"wchar:")?,
            read_from_storage: named(text, b"read_bytes:")?,
            written_to_storage: named(text, b"write_bytes:")?,
        })
    }

    pub(super) fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    pub(super) fn less(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    /// Whether none of its numbers is larger than in `other`.
    pub(super) fn is_within(self, other: Self) -> bool {
        self.with(other, u64::min) == self
    }

    fn with(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            read: join(self.read, other.read),
            written: join(self.written, other.written),
            read_from_storage: join(self.read_from_storage, other.read_from_storage),
            written_to_storage: join(self.written_to_storage, other.written_to_storage),
        }
    }
}

/// The context switches of a thread, from its `status`.
pub(super) fn context_switches(status: &[u8]) -> Option<u64> {
    let [voluntary, others] = [&b"voluntary_ctxt_switches:"[..], b"nonvoluntary_ctxt_switches:"];
    named(status, voluntary)?.checked_add(named(status, others)?)
}

/// The number after a name at the beginning of a line.
fn named(text: &[u8], name: &[u8]) -> Option<u64> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))?;
    number(line.trim_ascii())
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "4711 (a) (b c) S 1 4711 4711 0 -1 4194304 1200 77 34 5 10 20 0 0 20 0 9 0 123456 \
        8888888 2500 18446744073709551615 1 1 0 0\n";

    #[test]
    fn a_stat_is_read_whatever_the_name_is() {
        let found = ProcessStat::parse(STAT.as_bytes()).unwrap();
        let expected = ProcessStat {
            has_ended: false,
            minor_faults: 1200,
            child_minor_faults: 77,
            major_faults: 34,
            threads: 9,
            born_ticks: 123_456,
            resident_pages: 2500,
        };
        assert_eq!(found, expected);
        let zombie = |threads: &str| {
            let text = STAT.replace(") S ", ") Z ").replace(" 0 9 0 ", &format!(" 0 {threads} 0 "));
            ProcessStat::parse(text.as_bytes()).unwrap().has_ended
        };
        // A main thread that has ended before the others is a zombie too.
        assert_eq!(["0", "1", "2"].map(zombie), [true, true, false]);
        let negative = STAT.replace(" 2500 ", " -3 ");
        assert_eq!(ProcessStat::parse(negative.as_bytes()).unwrap().resident_pages, 0);
    }

    #[test]
    fn a_text_that_is_cut_says_nothing() {
        for text in ["", "4711", "4711 (a) ", "4711 (a) S 1 2 3", &STAT[..60]] {
            assert_eq!(ProcessStat::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(ProcessIo::parse(b"rchar: 1\nwchar: 2\nread_bytes: 3\n"), None);
        assert_eq!(context_switches(b"voluntary_ctxt_switches:\t5\n"), None);
    }

    #[test]
    fn io_and_switches_are_read_by_their_names() {
        let io = "rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\nread_bytes: 4096\nwrite_bytes: 323932160\ncancelled_write_bytes: 0\n";
        let expected = ProcessIo {
            read: 323_934_931,
            written: 323_929_600,
            read_from_storage: 4096,
            written_to_storage: 323_932_160,
        };
        assert_eq!(ProcessIo::parse(io.as_bytes()), Some(expected));
        let status = "Name:\tvoluntary_ctxt_switches:\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(context_switches(status.as_bytes()), Some(695));
        let most = format!("voluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t1\n", u64::MAX);
        assert_eq!(context_switches(most.as_bytes()), None);
    }
}
