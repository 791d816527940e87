//! Lists of CPUs in the kernel's format, as the command line takes them, too.

/// More CPUs than any kernel supports (8,192), so that an invalid list stays small.
const MAX_CPUS: u32 = 1 << 16;

/// Parses a list of CPUs in the kernel's format: `0-3,8,10-11`; `None` if it is invalid. The result is
/// ascending without duplicates, in any case.
pub fn parse_cpu_list(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// Formats a list as the kernel does; `cpus` are ascending.
#[cfg(target_os = "linux")]
pub(crate) fn format_cpu_list(cpus: &[u32]) -> String {
    let ranges =
        cpus.chunk_by(|cpu, next| cpu + 1 == *next).filter_map(|range| Some((range.first()?, range.last()?)));
    let texts =
        ranges.map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::parse_cpu_list;

    #[cfg(target_os = "linux")]
    #[test]
    fn lists_of_cpus_are_written_as_they_are_read() {
        for list in ["0", "0-3", "0-1,4,6-7"] {
            assert_eq!(super::format_cpu_list(&parse_cpu_list(list).unwrap()), list);
        }
    }

    #[test]
    fn lists_of_cpus_are_read() {
        let check = |list, expected: Option<&[u32]>| {
            assert_eq!(parse_cpu_list(list).as_deref(), expected, "{list}");
        };
        check("0\n", Some(&[0]));
        check("0-3\n", Some(&[0, 1, 2, 3]));
        check("0-1,4,6-7", Some(&[0, 1, 4, 6, 7]));
        check("5,0-2,1,5", Some(&[0, 1, 2, 5]));
        check("", None);
        check("3-1", None);
        check("0-4294967295", None);
        check("a", None);
    }
}
