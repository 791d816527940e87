//! Options as they were typed, for another program or for a command that the user may type next.

use crate::args::{FilterArgs, SymbolArgs};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use std::ffi::OsString;
use std::path::Path;

/// Options that were typed, to be handed to another program or shown in a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TypedOptions(Vec<TypedOption>);

/// An option as it was typed, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TypedOption {
    id: String,
    /// `--name` or `-Z`.
    flag: String,
    value: Option<OsString>,
    /// Whether the value follows a `=`.
    joined: bool,
    is_path: bool,
}

impl TypedOptions {
    pub(super) fn collect(arguments: impl IntoIterator<Item = Arg>, matches: &ArgMatches) -> Self {
        let typed = |arg: &Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        let found = arguments.into_iter().filter(typed);
        Self(found.flat_map(|arg| TypedOption::of(&arg, matches)).collect())
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.0.iter().any(|option| option.id == id)
    }

    /// The values of an option.
    pub(super) fn values<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a OsString> {
        self.0.iter().filter(move |option| option.id == id).filter_map(|option| option.value.as_ref())
    }

    /// The words of the options with these ids.
    pub(super) fn only(&self, ids: &[&str]) -> Vec<OsString> {
        let options = self.0.iter().filter(|option| ids.contains(&option.id.as_str()));
        options.flat_map(|option| option.argv(None)).collect()
    }

    /// The words; relative paths are those of `folder`, where that is given.
    pub(super) fn argv<'a>(&'a self, folder: Option<&'a Path>) -> impl Iterator<Item = OsString> + 'a {
        self.0.iter().flat_map(move |option| option.argv(folder))
    }
}

impl TypedOption {
    fn of(arg: &Arg, matches: &ArgMatches) -> Vec<Self> {
        let id = arg.get_id().as_str();
        let long = arg.get_long().map(|long| format!("--{long}"));
        let Some(flag) = long.or_else(|| arg.get_short().map(|short| format!("-{short}"))) else {
            return Vec::new();
        };
        let option = |value| Self {
            id: id.to_owned(),
            flag: flag.clone(),
            value,
            joined: arg.is_require_equals_set(),
            is_path: matches!(arg.get_value_hint(), ValueHint::AnyPath),
        };
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            return vec![option(None)];
        }
        let values = matches.get_raw(id).into_iter().flatten();
        values.map(|value| option(Some(value.to_owned()))).collect()
    }

    fn argv(&self, folder: Option<&Path>) -> Vec<OsString> {
        let flag = OsString::from(&self.flag);
        let value = self.value.as_ref().map(|value| match folder {
            // "-" is standard output.
            Some(folder) if self.is_path && value != "-" => folder.join(value).into_os_string(),
            _ => value.clone(),
        });
        // A single dash is a file, the standard output.
        let begins_with_dash =
            |value: &OsString| value.len() > 1 && value.as_encoded_bytes().starts_with(b"-");
        match value {
            Some(value) if self.joined || begins_with_dash(&value) && self.flag.starts_with("--") => {
                let mut word = flag;
                word.push("=");
                word.push(value);
                vec![word]
            }
            value => [Some(flag), value].into_iter().flatten().collect(),
        }
    }
}

/// The options that say what of a profile is read, as they were typed: a further command about the same profile has
/// them, too.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypedReadOptions(TypedOptions);

impl TypedReadOptions {
    /// The words.
    pub(crate) fn argv(&self) -> Vec<OsString> {
        self.0.argv(None).collect()
    }

    fn arguments() -> Vec<Arg> {
        let command = SymbolArgs::augment_args(FilterArgs::augment_args(Command::new("read")));
        command.get_arguments().cloned().collect()
    }
}

impl FromArgMatches for TypedReadOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(TypedOptions::collect(Self::arguments(), matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// It only remembers what other fields define.
impl Args for TypedReadOptions {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
