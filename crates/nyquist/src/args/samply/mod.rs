//! samply's command line, for scripts and tools that call samply. It is used if this program is called under
//! the name `samply`.

mod argv;
mod definition;

use crate::args::usage_error::refused;
use crate::args::{Cli, Verbosity};
use crate::failure::Failure;
use crate::printer::Printer;
use clap::error::ContextKind;
use clap::{CommandFactory as _, Parser as _};
use definition::SamplyCli;
use std::ffi::OsString;
use std::path::Path;

/// Whether a program that was called like this was called as samply.
pub(crate) fn is_samply(called_as: &OsString) -> bool {
    Path::new(called_as).file_name().is_some_and(|name| name == "samply")
}

/// Reads samply's words as nyquist's. For options that cannot be followed there is an error or a message.
pub(crate) fn parse(argv: impl Iterator<Item = OsString>) -> Result<Cli, Failure> {
    let typed: Vec<_> = argv.collect();
    let refused = |error| refused(&error, &SamplyCli::command(), &typed[1..]);
    let samply = SamplyCli::try_parse_from(&typed).map_err(refused)?;
    let argv = samply.command.argv(Printer::new(Verbosity::default()))?;
    Cli::try_parse_from(argv).map_err(|mut error| {
        // The syntax of nyquist's arguments differs from samply's.
        error.remove(ContextKind::Usage);
        refused(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, Ui};
    use nyquist_profile::firefox::FormatVersion;

    fn parsed(line: &str) -> Result<Command, Failure> {
        let argv = std::iter::once("samply").chain(line.split_whitespace());
        parse(argv.map(OsString::from)).map(|cli| cli.command)
    }

    fn record(line: &str) -> crate::args::RecordArgs {
        match parsed(line).unwrap() {
            Command::Record(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        SamplyCli::command().debug_assert();
    }

    #[test]
    fn only_the_name_counts() {
        let check = |path: &str, expected| assert_eq!(is_samply(&path.into()), expected, "{path}");
        check("samply", true);
        check("/opt/bin/samply", true);
        check("/samply/nyquist", false);
        check("cargo-samply", false);
    }

    #[test]
    fn defaults_are_samplys() {
        let args = record("record ls -l");
        assert_eq!(args.profile_version, FormatVersion::V49);
        assert_eq!((args.rate, args.runs.iteration_count), (1000, 1));
        assert!(args.serve && !args.save_only && !args.presentation.server.no_open);
        assert_eq!(args.presentation.server.ui, Ui::Firefox);
        assert_eq!(args.output, Path::new("profile.json.gz"));
        assert_eq!(args.command, ["ls", "-l"]);
        assert_eq!(args.presentation.server.port, None);
    }

    #[test]
    fn wrappers_are_understood() {
        assert!(record("record -a -d 3").target.all_cpus);
        let hotpath = record("record --pid 77 --save-only -o /tmp/hp.json.gz");
        assert_eq!(hotpath.target.pid, [77]);
        assert!(hotpath.save_only && !hotpath.serve);
        assert_eq!(hotpath.output, Path::new("/tmp/hp.json.gz"));
        let cargo_samply = record("record -- target/samply/app -s -p 3");
        assert_eq!(cargo_samply.command, ["target/samply/app", "-s", "-p", "3"]);
    }

    #[test]
    fn options_keep_their_meaning() {
        let args = record(
            "record -r 500.4 -d 1.5 -i --iteration-count 3 --include-args=2 --reuse-threads --per-cpu-threads \
             --main-thread-only --fold-recursive-prefix --cswitch-markers --jit-markers --unlink-aux-files --unstable-presymbolicate -n -P 3005 \
             --profile-name -x --symbol-dir /a:b -v A=1 ./app",
        );
        assert_eq!((args.rate, args.runs.iteration_count, args.runs.ignore_exit_code), (500, 3, true));
        assert_eq!(args.duration.unwrap().as_millis(), 1500);
        let shape = args.shape;
        assert_eq!(shape.include_args, 2);
        let rows = shape.rows;
        assert!(rows.reuse_threads && rows.per_cpu_threads && rows.main_thread_only);
        assert!(rows.fold_recursive_prefix && shape.unlink_aux_files);
        assert!(rows.cswitch_markers && rows.jit_markers);
        assert_eq!(args.profile_name.unwrap(), "-x");
        assert_eq!(args.presentation.server.port, Some(3005));
        assert!(args.presentation.server.no_open && args.presentation.verbosity.verbose);
        assert_eq!(args.command, ["A=1", "./app"]);
    }

    #[test]
    fn recordings_of_perf_are_imported() {
        let command =
            parsed("import -s --pid 3 --reuse-threads --include-args=2 -o p.json.gz perf.data").unwrap();
        let Command::Import(args) = command else { panic!("{command:?}") };
        assert_eq!(
            (args.file.as_path(), args.output.as_path()),
            (Path::new("perf.data"), Path::new("p.json.gz"))
        );
        assert_eq!(args.recording.pid, [3]);
        assert!(args.recording.rows.reuse_threads && args.save_only);
        assert_eq!(args.profile_version, FormatVersion::V49);
    }

    #[test]
    fn what_cannot_be_done_says_so() {
        for (line, word) in [("setup", "macOS"), ("load -P 4000+ x", "4000+")] {
            assert!(parsed(line).unwrap_err().message.contains(word), "{line}");
        }
    }

    #[test]
    fn errors_are_in_samplys_words() {
        let check = |line: &str, expected: &str, command: &str| {
            let failure = parsed(line).unwrap_err();
            assert_eq!((&*failure.message, failure.status), (expected, 2), "{line}");
            let help = format!("`{command} --help` lists the options and what they take");
            assert_eq!(failure.hints.last(), Some(&help), "{line}");
            assert!(!failure.hints.iter().any(|hint| hint.contains("nyquist")), "{line}");
        };
        check("record", "'<COMMAND>...' is missing", "samply record");
        check(
            "record -r x ls",
            "invalid value 'x' for '--rate <RATE>': not a number, such as 1.5",
            "samply record",
        );
        check("load --nonsense x", "there is no option '--nonsense'", "samply load");
        check("record -g ls", "there is no option '-g'", "samply record");
        check("record -a -p 1", "'--all' cannot be used with '--pid <PID>'", "samply record");
    }
}
