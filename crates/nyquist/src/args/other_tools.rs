//! Words of perf, samply, cargo-flamegraph and pprof, and what to type here in their place.

/// What to type in place of an option, in these commands.
struct OtherOption {
    commands: &'static [&'static str],
    typed: &'static [&'static str],
    advice: &'static str,
}

const RECORDING: &[&str] = &["record", "top", "stat"];
const READING: &[&str] = &["report", "annotate", "flamegraph", "query", "diff", "export", "script"];

const fn option(
    commands: &'static [&'static str],
    typed: &'static [&'static str],
    advice: &'static str,
) -> OtherOption {
    OtherOption { commands, typed, advice }
}

/// What records kernel code.
const KERNEL_CODE: &str = if cfg!(target_os = "linux") {
    "kernel code is recorded as root: sudo nyquist record"
} else if cfg!(windows) {
    "kernel code is recorded by --backend etw, as an administrator"
} else {
    "kernel code is not recorded on this system"
};

const OPTIONS: &[OtherOption] = &[
    // perf
    option(
        RECORDING,
        &["-g"],
        "callers are always recorded, without -g; --call-graph says how they are found",
    ),
    option(
        &["top"],
        &["-e"],
        "the CPU's cycles or its clock are sampled; `perf record -e` records others, and nyquist reads what it writes",
    ),
    option(
        RECORDING,
        &["-b", "--branch-any", "--branch-filter"],
        "branches are recorded by `perf record -b`; nyquist reads its file",
    ),
    option(RECORDING, &["-G"], "the processes of a control group: --cgroup NAME"),
    option(
        RECORDING,
        &["-D"],
        "recording begins later with --delay 2s; a part of a recording is read by --range 2s-",
    ),
    option(
        RECORDING,
        &["-m", "--mmap-pages"],
        "the size of the kernel's buffers is chosen by what the machine allows",
    ),
    option(READING, &["--stdio", "--tui", "--gtk"], "the report is text in the terminal, without an option"),
    option(
        READING,
        &["--no-children"],
        "functions are ordered by their self time already; --sort total orders by total time",
    ),
    option(READING, &["--children"], "the total time is shown already; --sort total orders by it"),
    option(
        READING,
        &["-g", "--call-graph"],
        "callers and what they call: nyquist report --tree; from the innermost: --inverted",
    ),
    option(
        READING,
        &["-G"],
        "callers and what they call: nyquist report --tree; from the innermost: --inverted",
    ),
    option(READING, &["-n", "--show-nr-samples", "--show-total-period"], "columns are chosen by --columns"),
    option(READING, &["-s", "-F", "--fields"], "columns are chosen by --columns, and the order by --sort"),
    option(READING, &["--comm", "--comms"], "the processes of a name: --process NAME"),
    option(READING, &["--tid"], "the threads of a number or a name: --thread"),
    option(READING, &["--pid", "-p"], "the processes of a number or a name: --process"),
    option(READING, &["--dso", "--dsos"], "the code of a library: --lib NAME"),
    option(
        READING,
        &["--symbols", "--symbol-filter", "-S"],
        "samples with a function in their stack: --focus REGEX",
    ),
    option(READING, &["--percent-limit"], "what is below a share is left out by --percent"),
    option(READING, &["--time"], "a part of the recording: --range 1.2s-3s"),
    // pprof
    option(READING, &["--top"], "functions by self time: nyquist report"),
    option(READING, &["--peek"], "a function with its callers and callees: nyquist query FILE function NAME"),
    option(READING, &["--list"], "the lines of a function: nyquist annotate NAME"),
    option(READING, &["--http", "--web"], "the profile in a browser: nyquist load FILE"),
    option(READING, &["--diff_base", "--base"], "two profiles are compared by nyquist diff BEFORE AFTER"),
    option(READING, &["--cum"], "the order by total time: --sort total"),
    // cargo-flamegraph
    option(&["record", "flamegraph"], &["--root"], KERNEL_CODE),
    option(
        &["record", "flamegraph"],
        &["--open"],
        "nyquist record opens the profile; an SVG is opened by your browser",
    ),
];

/// What to type in place of a command.
const COMMANDS: &[(&[&str], &str)] = &[
    (&["open", "view", "show", "web", "serve", "ui"], "to look at a profile, type: nyquist load FILE"),
    (&["attach"], "to record a running process, type: nyquist record -p PID"),
    (&["run", "profile", "sample", "start"], "to record a program, type: nyquist record PROGRAM"),
    (&["flame", "graph", "svg"], "to draw a flame graph, type: nyquist flamegraph FILE"),
    (&["probe"], "calls of a function are recorded by: nyquist record -e FILE:FUNCTION"),
    (
        &["mem", "c2c", "lock", "sched", "kmem", "trace"],
        "`perf` has this command; nyquist record --off-cpu shows where threads wait",
    ),
    (&["convert"], "to write another format, type: nyquist export; to read one: nyquist import"),
    (&["compare"], "to compare profiles, type: nyquist diff BEFORE AFTER"),
];

/// What to type in place of an option of the innermost command.
pub(super) fn instead_of_option(command: &str, typed: &str) -> Option<&'static str> {
    let fits = |option: &&OtherOption| option.commands.contains(&command) && option.typed.contains(&typed);
    OPTIONS.iter().find(fits).map(|option| option.advice)
}

/// What to type in place of a command.
pub(super) fn instead_of_command(typed: &str) -> Option<&'static str> {
    COMMANDS.iter().find(|(names, _)| names.contains(&typed)).map(|(_, advice)| *advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::{Command, CommandFactory as _};

    fn has_option(command: &Command, typed: &str) -> bool {
        command.get_arguments().any(|arg| match typed.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => typed.len() == 2 && arg.get_short() == typed.chars().nth(1),
        })
    }

    /// Otherwise the advice is never shown, or the option is missing in the table's other commands.
    #[test]
    fn no_row_is_in_the_way_of_an_own_word() {
        let cli = Cli::command();
        for option in OPTIONS {
            for typed in option.typed {
                let commands = option.commands.iter().filter_map(|name| cli.find_subcommand(name));
                let without = commands.filter(|command| !has_option(command, typed)).count();
                assert!(without > 0, "{typed} is an option of all its commands");
            }
        }
        for typed in COMMANDS.iter().flat_map(|(names, _)| *names) {
            assert!(cli.find_subcommand(typed).is_none(), "{typed} is a command");
        }
    }

    #[test]
    fn advice_names_options_that_exist() {
        let cli = Cli::command();
        let options: Vec<_> =
            cli.get_subcommands().flat_map(Command::get_arguments).filter_map(|arg| arg.get_long()).collect();
        let advice =
            OPTIONS.iter().map(|option| option.advice).chain(COMMANDS.iter().map(|(_, advice)| *advice));
        for advice in advice {
            for word in advice.split([' ', ';', ',', ':']).filter_map(|word| word.strip_prefix("--")) {
                assert!(options.contains(&word), "--{word} in: {advice}");
            }
        }
    }
}
