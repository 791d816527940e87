//! The names of Java's functions, which its profiles list by address behind their stacks.

use super::stacks::NamedFunction;

/// The address and the function of a line such as `0x0000003 com.example.f (Example.java:17)`, `0x4 f (/lib/libx.so)`
/// or `0x5 GC`.
pub(super) fn location(line: &str) -> Option<(u64, NamedFunction<'_>)> {
    let (address, rest) = line.trim().strip_prefix("0x")?.split_once(char::is_whitespace)?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim();
    let place = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    let Some((name, place)) = place else {
        let name = if rest.contains("generated stub/JIT") { "STUB" } else { rest };
        return Some((address, NamedFunction { name, ..NamedFunction::default() }));
    };
    let name = name.trim_end();
    let source = place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<i64>().ok()?)));
    let function = match source {
        Some((file, line)) => {
            NamedFunction { name, file, line: u32::try_from(line).ok().filter(|&line| line > 0) }
        }
        None => NamedFunction { name, file: place.rsplit('/').next().unwrap_or(place), line: None },
    };
    Some((address, function))
}
