//! Values with a leading dash after an option that takes a value. The parser treats them as options.

use clap::builder::ValueParser;
use clap::error::{ContextKind, Error, ErrorKind};
use clap::{Arg, Command};
use std::ffi::OsString;

/// What a word that was taken for an option is about.
pub(super) enum DashedValue {
    /// The option before it does not take such a value: the error of it.
    Invalid(Box<Error>),
    /// How the option before it would take it.
    Typed(String),
}

/// What the unknown option in `error` is, if the option before it takes a value. `words` are those behind the name of
/// `command`, and `innermost` is the command among them.
pub(super) fn dashed_value(
    error: &Error,
    command: &Command,
    innermost: &Command,
    argv: &[OsString],
) -> Option<DashedValue> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let unknown = error.get(ContextKind::InvalidArg)?.to_string();
    let texts: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    let is_unknown = |word: &str| word == unknown || (unknown.len() == 2 && word.starts_with(&unknown));
    let options = texts.iter().take_while(|word| *word != "--").count();
    let (at, option) = (1..options).find_map(|at| {
        let option = innermost.get_arguments().find(|arg| is_spelled(arg, &texts[at - 1]))?;
        is_unknown(&texts[at]).then_some((at, option))
    })?;
    let (name, value) = (&texts[at - 1], &texts[at]);
    // In joined form, they are parsed correctly.
    let joined = argv[..at - 1].iter().chain(&argv[at..]).cloned();
    let mut joined: Vec<_> = std::iter::once(command.get_name().into()).chain(joined).collect();
    joined[at] = format!("{name}={value}").into();
    match command.clone().try_get_matches_from(joined) {
        Err(error) if error.kind() == ErrorKind::ValueValidation => {
            Some(DashedValue::Invalid(Box::new(error)))
        }
        _ => {
            let is_path = option.get_value_parser().type_id() == ValueParser::path_buf().type_id();
            let typed = if is_path { format!("{name} ./{value}") } else { format!("{name}={value}") };
            Some(DashedValue::Typed(format!("to give '{value}' to '{name}', type: {typed}")))
        }
    }
}

/// Whether a word is an option that takes a value.
fn is_spelled(arg: &Arg, word: &str) -> bool {
    let long = word.strip_prefix("--").is_some_and(|name| arg.get_long() == Some(name));
    let short = word
        .strip_prefix('-')
        .is_some_and(|name| arg.get_short().is_some_and(|short| name.chars().eq(std::iter::once(short))));
    arg.get_action().takes_values() && (long || short)
}
