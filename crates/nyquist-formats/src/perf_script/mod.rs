//! The text that `perf script` prints (man page perf-script(1)): for each sample a head line, its stack, and
//! a blank line.

mod line;
mod read;
mod stack;
mod write;

pub(crate) use line::{is_header, is_short_header};
pub use read::read_value;
pub use write::{write, write_sample};

/// Perf's event for time of waiting (`perf record --off-cpu`).
const OFF_CPU_EVENT: &str = "offcpu-time";
/// The text in place of a lib if the function is inlined into the one in the next line.
const INLINED: &str = "inlined";
/// The text for an unknown function or lib.
const UNKNOWN: &str = "[unknown]";

#[cfg(test)]
mod tests {
    use super::{read_value, write};
    use crate::test_profile::{profile, stacks_of, waits_of};

    fn written() -> String {
        let mut out = Vec::new();
        write(&profile(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn samples_are_written_as_perf_prints_them() {
        let text = written();
        let expected = "app 77/77 0.001000000: 4000000 cpu-clock: \n\
            \t          200004 write+0x4 (/usr/lib/libc.so.6)\n\
            \t            1010 inlined; x (inlined)\n\
            \t            1010 main+0x0 (/usr/lib/app)\n\n";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("\npool 1 77/79 0.002000000: 1000000 cpu-clock: \n"), "{text}");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let imported = read_value(written().as_bytes(), None).unwrap();
        let (read, written) = (&imported.profile, profile());
        assert_eq!(imported.notes, []);
        assert_eq!(stacks_of(read), stacks_of(&written));
        assert_eq!(waits_of(read), waits_of(&written));
        for (read, written) in read.threads().iter().zip(written.threads()) {
            assert_eq!((&read.name, &read.tid), (&written.name, &written.tid));
            let times = |samples: &nyquist_profile::Samples| -> Vec<_> {
                samples.iter().map(|sample| (sample.time, sample.weight, sample.off_cpu)).collect()
            };
            assert_eq!(times(&read.samples), times(&written.samples));
        }
        let main = read.frames().iter().find(|frame| read.func_name(frame.func) == "main").unwrap();
        assert_eq!(main.address, Some(0x1010));
        assert_eq!(read.func(main.func).lib.map(|lib| &*read.lib(lib).path), Some("/usr/lib/app"));
        let inlined = read.frames().iter().find(|frame| frame.inline_depth == 1).unwrap();
        assert_eq!(read.func_name(inlined.func), "inlined; x");
    }
}
