//! The names of system calls. `UPDATE_CALLS=1 cargo test -p nyquist-record call_names` adds those of the C headers that
//! are installed to `calls.txt` of this architecture.

use super::calls;

/// The name of the system call with a number. Linear in the number of calls.
pub(crate) fn name(number: i64) -> Option<&'static str> {
    all(calls::NAMES).find(|(known, _)| *known == number).map(|(_, name)| name)
}

fn all(text: &str) -> impl Iterator<Item = (i64, &str)> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(number, name)| Some((number.parse().ok()?, name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::env;
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    /// The definitions of the installed headers; `None` without a C compiler.
    fn of_headers() -> Option<Vec<(i64, String)>> {
        let header = "#include <sys/syscall.h>\n";
        let file = env::temp_dir().join(format!("nyquist-calls-{}.c", std::process::id()));
        fs::write(&file, header).ok()?;
        let output = Command::new("cc").args(["-E", "-dM"]).arg(&file).output();
        let _ = fs::remove_file(&file);
        let text = String::from_utf8(output.ok().filter(|output| output.status.success())?.stdout).ok()?;
        let definition = |line: &str| {
            let (name, number) = line.strip_prefix("#define __NR_")?.split_once(' ')?;
            let is_call = !["syscalls", "arch_specific_syscall"].contains(&name);
            Some((number.parse().ok().filter(|_| is_call)?, name.to_owned()))
        };
        Some(text.lines().filter_map(definition).collect())
    }

    #[test]
    fn call_names_are_those_of_the_headers() {
        let Some(defined) = of_headers() else { return };
        if env::var_os("UPDATE_CALLS").is_some() {
            let mut calls: BTreeMap<_, _> =
                all(calls::NAMES).map(|(number, name)| (number, name.to_owned())).collect();
            calls.extend(defined);
            let mut text = String::new();
            for (number, name) in calls {
                writeln!(text, "{number} {name}").unwrap();
            }
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/linux/arch");
            fs::write(folder.join(env::consts::ARCH).join("calls.txt"), text).unwrap();
            return;
        }
        for (number, defined) in defined {
            assert_eq!(name(number), Some(defined.as_str()), "UPDATE_CALLS=1 adds it");
        }
    }

    #[test]
    fn each_number_has_one_name() {
        let numbers: Vec<_> = all(calls::NAMES).map(|(number, _)| number).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.len() > 300, "{}", numbers.len());
        assert_eq!(name(libc::SYS_mq_timedreceive), Some("mq_timedreceive"));
        assert_eq!(name(-1), None);
    }
}
