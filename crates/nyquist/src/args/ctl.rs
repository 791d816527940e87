//! The arguments of `nyquist ctl`.

use crate::args::Verbosity;
use clap::{Args, ValueEnum};

/// `nyquist ctl`
#[derive(Debug, Args)]
#[command(override_usage = "nyquist ctl [OPTIONS] [PID] start|stop|save|status")]
#[command(after_help = "Examples:
  nyquist record --start-paused -- ./server &    A recording that waits
  nyquist ctl start                              It records from now on
  nyquist ctl stop                               It pauses
  nyquist ctl save                               Save what it has so far; it goes on
  nyquist ctl 4711 status                        One of several recordings, by its own or the recorded process's number

Recordings obey that were started with --last, --delay, --start-paused or --ctl, by the same user or root.")]
pub(crate) struct CtlArgs {
    /// The number of the recording process, or of a process that it records, if there are several; then what to do:
    /// start, stop, save, status
    #[arg(value_name = "[PID] ACTION", num_args = 1..=2, required = true)]
    pub(crate) argv: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}

/// What to do with a running recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CtlAction {
    /// Record
    Start,
    /// Pause
    Stop,
    /// Save what there is so far
    Save,
    /// Say what it does
    Status,
}

impl CtlAction {
    /// Its word.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Save => "save",
            Self::Status => "status",
        }
    }
}

impl CtlArgs {
    /// The process, if one was named, and the action.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn parsed(&self) -> Result<(Option<u32>, CtlAction), String> {
        let (action, pid) = match self.argv.as_slice() {
            [action] => (action, None),
            [pid, action] => (action, Some(pid)),
            _ => return Err("what to do is one of start, stop, save and status".to_owned()),
        };
        let pid = pid.map(|pid| pid.parse().map_err(|_| format!("`{pid}` is not the number of a process")));
        let action = CtlAction::from_str(action, false);
        let action = action.map_err(|_| {
            format!("`{}` is none of start, stop, save and status", self.argv.last().map_or("", |word| word))
        });
        Ok((pid.transpose()?, action?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_precede_the_action() {
        let parse = |argv: &[&str]| {
            let argv = argv.iter().map(|word| (*word).to_owned()).collect();
            CtlArgs { argv, json: false, verbosity: Verbosity::default() }.parsed()
        };
        assert_eq!(parse(&["save"]), Ok((None, CtlAction::Save)));
        assert_eq!(parse(&["4711", "stop"]), Ok((Some(4711), CtlAction::Stop)));
        assert_eq!(parse(&["x", "stop"]).unwrap_err(), "`x` is not the number of a process");
        assert_eq!(parse(&["4711"]).unwrap_err(), "`4711` is none of start, stop, save and status");
    }
}
