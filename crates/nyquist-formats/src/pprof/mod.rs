//! pprof's format: a gzip-compressed protobuf message, `profile.proto`.

mod message;
mod read;
mod write;

pub use read::read;
pub use write::write;

/// Labels of samples, by which a profile is taken apart into processes and threads.
mod label {
    pub(super) const PROCESS: &str = "process";
    pub(super) const PID: &str = "pid";
    pub(super) const THREAD: &str = "thread";
    pub(super) const TID: &str = "tid";
}

/// The type of the value that is time of waiting.
const OFF_CPU: &str = "off_cpu";

#[cfg(test)]
mod tests {
    use super::{read, write};
    use crate::test_profile::{profile, stacks_of, waits_of};
    use nyquist_profile::{Frame, Func, Meta, Process, ProfileBuilder, Sample, Source, Thread};

    fn written() -> Vec<u8> {
        let mut out = Vec::new();
        write(&profile(), &crate::as_named, &mut out).unwrap();
        out
    }

    #[test]
    fn what_is_written_is_read_again() {
        let imported = read(&written()).unwrap();
        let (read, written) = (&imported.profile, profile());
        assert_eq!(imported.notes, []);
        assert_eq!(stacks_of(read), stacks_of(&written));
        assert_eq!(waits_of(read), waits_of(&written));
        assert_eq!(read.meta().interval, written.meta().interval);
        assert_eq!(read.meta().start_time, written.meta().start_time);
        // Samples have no times; how long it was recorded is said.
        assert_eq!(read.meta().profiling_end, written.meta().profiling_end);
        let names: Vec<_> = read.threads().iter().map(|thread| (&*thread.tid, &*thread.name)).collect();
        assert_eq!(names, [("77", "app"), ("79", "pool 1")]);
        assert_eq!(read.processes()[0].name, "app");
    }

    #[test]
    fn a_recording_begins_with_its_first_sample_where_nothing_else_is_known() {
        let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let stack = builder.intern_label(None, "f", None);
        for time in [324_000_000_000, 324_037_000_000] {
            builder.add_sample(thread, Sample::new(time, Some(stack), 0));
        }
        builder.meta_mut().profiling_end = Some(324_038_000_000);
        let mut out = Vec::new();
        write(&builder.finish(), &crate::as_named, &mut out).unwrap();
        assert_eq!(read(&out).unwrap().profile.meta().profiling_end, Some(38_000_000));
    }

    #[test]
    fn addresses_lines_inlining_and_libs_survive() {
        let read = read(&written()).unwrap().profile;
        let frame = |name: &str| {
            let found = read.frames().iter().find(|frame| read.func_name(frame.func) == name);
            let frame = found.unwrap();
            let lib = read.func(frame.func).lib.map(|lib| read.lib(lib));
            let lib = lib.map(|lib| (lib.path.clone(), lib.code_id.clone().unwrap_or_default()));
            (frame.address, frame.inline_depth, frame.line, lib)
        };
        let app = Some(("/usr/lib/app".to_owned(), "aabb".to_owned()));
        let libc = Some(("/usr/lib/libc.so.6".to_owned(), "ccdd".to_owned()));
        assert_eq!(frame("main"), (Some(0x1010), 0, Some(17), app.clone()));
        assert_eq!(frame("inlined; x"), (Some(0x1010), 1, Some(3), app));
        assert_eq!(frame("write"), (Some(0x20_0004), 0, None, libc));
        assert_eq!(frame("worker"), (None, 0, None, None));
    }

    #[test]
    fn a_line_in_another_file_than_its_functions_keeps_both() {
        let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let [own, included] = ["/own.c", "/included.inc"].map(|path| {
            let filename = builder.intern_string(path);
            builder.intern_source(Source { filename })
        });
        let name = builder.intern_string("function");
        let func = builder.intern_func(Func { source: Some(own), line: Some(4), ..Func::new(name, None) });
        for (time, source) in [(0, Some(included)), (1_000_000, None)] {
            let frame = builder.intern_frame(Frame { source, line: Some(5), ..Frame::label(func) });
            let stack = builder.intern_stack(None, frame);
            builder.add_sample(thread, Sample { weight: 1, ..Sample::new(time, Some(stack), 0) });
        }
        let mut out = Vec::new();
        write(&builder.finish(), &crate::as_named, &mut out).unwrap();
        let read = read(&out).unwrap().profile;
        let mut places: Vec<_> = (read.frames().iter().filter(|frame| frame.line.is_some()))
            .map(|frame| {
                let source = read.source(read.frame_source(frame).unwrap());
                let begins = read.func(frame.func).line;
                (read.func_name(frame.func), read.string(source.filename), begins, frame.line)
            })
            .collect();
        places.sort_unstable();
        // Where the function begins is said of its own file alone.
        let expected =
            [("function", "/included.inc", None, Some(5)), ("function", "/own.c", Some(4), Some(5))];
        assert_eq!(places, expected);
    }

    #[test]
    fn files_have_the_paths_that_are_given() {
        let mut out = Vec::new();
        let paths = |file: &str| file.strip_prefix("/src/").map(|rest| format!("/elsewhere/{rest}"));
        write(&profile(), &paths, &mut out).unwrap();
        let read = read(&out).unwrap().profile;
        let files = read.sources().iter().map(|source| read.string(source.filename));
        assert!(files.clone().count() > 0 && files.clone().all(|file| file.starts_with("/elsewhere/")));
    }

    #[test]
    fn a_cut_file_gives_what_comes_before() {
        let written = written();
        let plain = crate::gzip::decompress(&written).unwrap().0;
        let mut notes = 0;
        for length in 0..plain.len() {
            if let Ok(imported) = read(&plain[..length]) {
                notes += imported.notes.len();
            }
        }
        assert!(notes > 0);
        assert!(read(b"").is_err());
        assert!(read(b"no protobuf").is_err());
    }
}
