//! Invalid command lines: the parser's errors as one sentence and hints, like all failures.

use super::dashed_value::{DashedValue, dashed_value};
use super::other_tools::{instead_of_command, instead_of_option};
use crate::failure::Failure;
use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use std::error::Error as _;
use std::ffi::OsString;
use std::net::AddrParseError;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

/// The status of a command that was not understood.
pub(crate) const NOT_UNDERSTOOD: u8 = 2;

/// The failure of the words behind the command's name. Requested help and versions are printed, and
/// end this program.
pub(crate) fn refused(error: &Error, command: &Command, argv: &[OsString]) -> Failure {
    if is_answer(error.kind()) {
        error.exit();
    }
    let path = named(command, argv);
    let inner = innermost(command, &path);
    let meant = meant_option(error, inner).map(|meant| format!("similar: the option '{meant}'"));
    let meant = meant.or_else(|| instead(error, inner.get_name()).map(str::to_owned));
    let (message, hints) = match dashed_value(error, command, inner, argv) {
        Some(DashedValue::Invalid(error)) => (sentence(&error), Vec::new()),
        Some(DashedValue::Typed(hint)) if meant.is_none() => (sentence(error), vec![hint]),
        _ => (sentence(error), meant.map_or_else(|| hints(error, &path), |meant| vec![meant])),
    };
    let failure = Failure::new(message).status(NOT_UNDERSTOOD);
    hints.into_iter().fold(failure, Failure::hint).hint(help_hint(error.kind(), &path))
}

/// Whether the parser's output was requested, and is no error.
fn is_answer(kind: ErrorKind) -> bool {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    matches!(kind, DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion)
}

/// The given value, its option, and the possible values.
fn sentence(error: &Error) -> String {
    let arg = text(error, ContextKind::InvalidArg);
    let value = text(error, ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::InvalidValue if value.is_empty() => {
            format!("'{arg}' needs a value{}", possible_values(error))
        }
        ErrorKind::InvalidValue => format!("invalid value '{value}' for '{arg}'{}", possible_values(error)),
        ErrorKind::ValueValidation => format!("invalid value '{value}' for '{arg}': {}", reason(error)),
        ErrorKind::UnknownArgument if arg.starts_with('-') => format!("there is no option '{arg}'"),
        ErrorKind::UnknownArgument => format!("'{arg}' is one argument too many"),
        ErrorKind::TooManyValues => format!("'{arg}' takes no value, and '{value}' is given"),
        ErrorKind::ArgumentConflict => conflict(error, &arg),
        ErrorKind::MissingRequiredArgument => missing(error),
        ErrorKind::InvalidSubcommand => {
            format!("there is no command '{}'", text(error, ContextKind::InvalidSubcommand))
        }
        _ => first_line(error),
    }
}

/// The parser's context of this kind, as text. It is empty if there is none.
fn text(error: &Error, kind: ContextKind) -> String {
    error.get(kind).map(ToString::to_string).unwrap_or_default()
}

/// The parser's context of this kind, as a list.
fn texts(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        Some(ContextValue::StyledStrs(texts)) => texts.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

/// All values that an option takes, where it takes a few.
fn possible_values(error: &Error) -> String {
    match &*texts(error, ContextKind::ValidValue) {
        [] => String::new(),
        values => format!(" (possible values: {})", values.join(", ")),
    }
}

/// Why a value was not taken. The standard library's errors of numbers are about their digits, and do not say
/// which value is expected.
fn reason(error: &Error) -> String {
    match error.source() {
        Some(source) if is_too_large(source) => "too large a number".to_owned(),
        Some(source) if source.is::<ParseIntError>() => "not a whole number from 0 on, such as 10".to_owned(),
        Some(source) if source.is::<ParseFloatError>() => "not a number, such as 1.5".to_owned(),
        Some(source) if source.is::<AddrParseError>() => "not an IP address, such as 127.0.0.1".to_owned(),
        Some(source) => source.to_string(),
        None => first_line(error),
    }
}

fn is_too_large(source: &(dyn std::error::Error + 'static)) -> bool {
    let number = source.downcast_ref::<ParseIntError>();
    number.is_some_and(|number| *number.kind() == IntErrorKind::PosOverflow)
}

fn conflict(error: &Error, arg: &str) -> String {
    let others = texts(error, ContextKind::PriorArg);
    if others.iter().all(|other| other == arg) {
        return format!("'{arg}' is given more than once");
    }
    format!("'{arg}' cannot be used with {}", quoted(&others))
}

fn missing(error: &Error) -> String {
    let args = texts(error, ContextKind::InvalidArg);
    let verb = if args.len() == 1 { "is" } else { "are" };
    format!("{} {verb} missing", quoted(&args))
}

fn quoted(args: &[String]) -> String {
    args.iter().map(|arg| format!("'{arg}'")).collect::<Vec<_>>().join(" and ")
}

/// The parser's own words, for all other errors.
fn first_line(error: &Error) -> String {
    let text = error.render().to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// Other words for options, which are not alike enough to be found by their letters.
const OTHER_WORDS: [(&str, &[&str]); 8] = [
    ("--rate", &["--frequency", "--freq", "--hz", "--sample-rate", "--sampling-rate"]),
    ("--output", &["--output-file", "--outfile", "--out-file", "--out", "--file", "--save-to"]),
    ("--duration", &["--time", "--seconds", "--timeout", "--for"]),
    ("--all-cpus", &["--all", "--system", "--system-wide"]),
    ("--pid", &["--process", "--attach", "--pids"]),
    ("--no-open", &["--no-browser"]),
    ("--save-only", &["--no-serve", "--no-server"]),
    ("--call-graph", &["--unwind", "--stacks"]),
];

/// The option that was meant by an unknown option of a command.
fn meant_option(error: &Error, command: &Command) -> Option<&'static str> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let typed = text(error, ContextKind::InvalidArg);
    let (meant, _) = OTHER_WORDS.iter().find(|(_, others)| others.contains(&&*typed))?;
    let has = |name: &str| command.get_arguments().any(|arg| arg.get_long() == name.strip_prefix("--"));
    has(meant).then_some(*meant)
}

/// The innermost command of a path of names, the first of which is the outermost.
fn innermost<'c>(command: &'c Command, path: &[&str]) -> &'c Command {
    path.iter().skip(1).fold(command, |command, name| command.find_subcommand(name).unwrap_or(command))
}

/// Whether the words behind the options are another program's, so that an option among them is no value.
fn runs_a_program(path: &[&str]) -> bool {
    matches!(path, [.., "nyquist", "record" | "top" | "stat"])
}

/// Suggestions, and the usage if an argument is missing or one too many.
fn hints(error: &Error, path: &[&str]) -> Vec<String> {
    let similar = |kind, what: &str| {
        let mut found = texts(error, kind);
        // The last one is the most similar, and commands are few.
        if kind == ContextKind::SuggestedSubcommand {
            found.drain(..found.len().saturating_sub(1));
        }
        (!found.is_empty()).then(|| format!("similar: {what} {}", quoted(&found)))
    };
    let meant = [
        similar(ContextKind::SuggestedSubcommand, "the command"),
        similar(ContextKind::SuggestedArg, "the option"),
        similar(ContextKind::SuggestedValue, "the value"),
    ];
    let others = if runs_a_program(path) { Vec::new() } else { texts(error, ContextKind::Suggested) };
    let meant = meant.into_iter().flatten().chain(others);
    meant.chain(if is_about_form(error) { usage(error) } else { Vec::new() }).collect()
}

fn is_about_form(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::MissingRequiredArgument => true,
        ErrorKind::UnknownArgument => !text(error, ContextKind::InvalidArg).starts_with('-'),
        _ => false,
    }
}

/// Each form that the words can have.
fn usage(error: &Error) -> Vec<String> {
    let usage = text(error, ContextKind::Usage);
    let forms = usage.trim_start_matches("Usage:").lines().map(str::trim).filter(|form| !form.is_empty());
    forms.map(|form| format!("usage: {form}")).collect()
}

/// What to type in place of a word of another tool.
fn instead(error: &Error, command: &str) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::UnknownArgument => instead_of_option(command, &text(error, ContextKind::InvalidArg)),
        ErrorKind::InvalidSubcommand => instead_of_command(&text(error, ContextKind::InvalidSubcommand)),
        _ => None,
    }
}

/// The names of the commands that the words name, from the outermost to the innermost.
fn named<'command>(command: &'command Command, argv: &[OsString]) -> Vec<&'command str> {
    let mut path = vec![command.get_bin_name().unwrap_or(command.get_name())];
    let mut innermost = command;
    let names = argv.iter().filter(|word| !word.as_encoded_bytes().starts_with(b"-"));
    for inner in names.map_while(|word| word.to_str()) {
        let Some(inner) = innermost.find_subcommand(inner) else { break };
        path.push(inner.get_name());
        innermost = inner;
    }
    path
}

/// Where to read on: the help of the innermost command that the words name.
fn help_hint(kind: ErrorKind, path: &[&str]) -> String {
    let what = match kind {
        ErrorKind::InvalidSubcommand => "the commands",
        _ => "the options and what they take",
    };
    format!("`{} --help` lists {what}", path.join(" "))
}
