//! What the agent gives up when it takes too much, and what it takes up again.

use super::budget::Excess;
use super::kinds::AllocationValues;
use crate::args::{AgentArgs, EventArgs};
use nyquist_record::linux::allocations::MAX_HASHED_RATE;
use std::fmt;

/// What is done about the use of memory and of CPU time. Each begins the recording anew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Relief {
    /// Nothing is given up but what the recording has in memory: so many bytes.
    Memory(u64),
    /// Something is given up, because so many per cent of a CPU are too much.
    GivesUp(GivenUp, f64),
    /// The rate is raised.
    HigherRate(u32),
}

/// What is no longer recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GivenUp {
    Waiting,
    Events,
    Allocations,
    /// The samples beyond this rate.
    Rate(u32),
}

impl Relief {
    /// What is due, with samples at this rate now. Waiting is recorded at each switch of threads, an event and an
    /// allocation whenever they occur, so no rate makes these cheaper.
    pub(super) fn due(
        excess: Option<Excess>,
        args: &AgentArgs,
        rate: u32,
        has_room: impl FnOnce() -> bool,
    ) -> Option<Self> {
        match excess {
            Some(Excess::Memory(bytes)) => Some(Self::Memory(bytes)),
            Some(Excess::Cpu(share)) => {
                GivenUp::first(args, rate).map(|given_up| Self::GivesUp(given_up, share))
            }
            None if rate < args.rate && has_room() => Some(Self::HigherRate((rate * 2).min(args.rate))),
            None => None,
        }
    }

    /// Changes what is recorded.
    pub(super) fn apply(self, args: &mut AgentArgs, rate: &mut u32) {
        match self {
            Self::Memory(_) => {}
            Self::GivesUp(GivenUp::Waiting, _) => args.off_cpu = false,
            Self::GivesUp(GivenUp::Events, _) => args.events = EventArgs::default(),
            Self::GivesUp(GivenUp::Allocations, _) => args.alloc = false,
            Self::GivesUp(GivenUp::Rate(new), _) | Self::HigherRate(new) => *rate = new,
        }
    }
}

impl GivenUp {
    /// What is given up first.
    fn first(args: &AgentArgs, rate: u32) -> Option<Self> {
        if args.off_cpu {
            Some(Self::Waiting)
        } else if !args.events.requested.is_empty() {
            Some(Self::Events)
        } else if args.alloc {
            Some(Self::Allocations)
        } else {
            (rate > 1).then(|| Self::Rate((rate / 2).max(1)))
        }
    }
}

impl fmt::Display for Relief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(bytes) => write!(f, "it has {} MB of memory and records anew", bytes >> 20),
            Self::GivesUp(given_up, share) => {
                write!(f, "it takes {share:.1} % of a CPU, which is too much: {given_up} from now on")
            }
            Self::HigherRate(rate) => {
                write!(f, "{rate} samples a second from now on: there is room for them")
            }
        }
    }
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => f.write_str("waiting is not recorded"),
            Self::Events => f.write_str("no events are recorded"),
            Self::Allocations => f.write_str("no allocations are recorded"),
            Self::Rate(rate) => write!(f, "{rate} samples a second"),
        }
    }
}

/// What becomes of allocations when the recording begins anew, with a converter that knows no block and no stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllocationsAnew {
    /// They are recorded no more: they name stacks that were copied once.
    End,
    /// They are recorded, and only what is allocated is sent.
    Allocated,
    /// The same, which has been said before.
    AllocatedAsBefore,
}

impl AllocationsAnew {
    /// What becomes of allocations of which one in `distance` bytes is sampled.
    pub(super) fn of(distance: u64, sent: AllocationValues) -> Self {
        match sent {
            _ if distance <= MAX_HASHED_RATE => Self::End,
            AllocationValues::All => Self::Allocated,
            AllocationValues::Allocated => Self::AllocatedAsBefore,
        }
    }

    /// What is said of it.
    pub(super) fn sentence(self) -> Option<&'static str> {
        match self {
            Self::End => Some(
                "it records anew, so the stacks that were copied once are not known: no allocations are recorded \
                 from now on",
            ),
            Self::Allocated => Some(
                "it records anew, so what is allocated and not freed is not known: only allocations are sent from \
                 now on",
            ),
            Self::AllocatedAsBefore => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser as _;

    fn args(options: &[&str]) -> AgentArgs {
        let words = ["nyquist", "agent"].iter().chain(options).chain(&["--", "app"]);
        let Ok(Cli { command: Command::Agent(args) }) = Cli::try_parse_from(words) else {
            panic!("{options:?}")
        };
        *args
    }

    const TOO_MUCH: Option<Excess> = Some(Excess::Cpu(7.25));

    #[test]
    fn what_no_rate_makes_cheaper_is_given_up_first() {
        let mut args = args(&["--alloc", "--off-cpu", "-e", "page-faults", "-c", "100", "--rate", "5"]);
        let (mut rate, mut printed) = (args.rate, Vec::new());
        while let Some(relief) = Relief::due(TOO_MUCH, &args, rate, || false) {
            relief.apply(&mut args, &mut rate);
            printed.push(relief.to_string());
            let left = (args.off_cpu, args.events.requested.len(), args.alloc, rate);
            let expected = [
                (false, 1, true, 5),
                (false, 0, true, 5),
                (false, 0, false, 5),
                (false, 0, false, 2),
                (false, 0, false, 1),
            ];
            assert_eq!(left, expected[printed.len() - 1]);
        }
        let because = "it takes 7.2 % of a CPU, which is too much: ";
        let expected = [
            "waiting is not recorded",
            "no events are recorded",
            "no allocations are recorded",
            "2 samples a second",
            "1 samples a second",
        ];
        assert_eq!(printed, expected.map(|what| format!("{because}{what} from now on")));
    }

    #[test]
    fn too_much_memory_gives_up_no_kind() {
        let mut args = args(&["--alloc", "--off-cpu", "-e", "page-faults", "-c", "100"]);
        let mut rate = 3;
        let relief = Relief::due(Some(Excess::Memory(300 << 20)), &args, rate, || true).unwrap();
        relief.apply(&mut args, &mut rate);
        assert_eq!(relief.to_string(), "it has 300 MB of memory and records anew");
        let left = (args.off_cpu, args.events.requested.len(), args.alloc, rate);
        assert_eq!(left, (true, 1, true, 3));
    }

    /// What was given up for good is not, and allocations beside a lower rate are none.
    #[test]
    fn the_rate_rises_again_where_there_is_room() {
        let mut args = args(&["--rate", "19"]);
        let mut rate = 4;
        let mut rates = Vec::new();
        while let Some(relief) = Relief::due(None, &args, rate, || true) {
            relief.apply(&mut args, &mut rate);
            rates.push(relief.to_string());
        }
        assert_eq!((rate, rates.len()), (19, 3));
        assert_eq!(rates[0], "8 samples a second from now on: there is room for them");
        assert_eq!(Relief::due(None, &args, 4, || false), None);
    }

    #[test]
    fn a_new_recording_sends_only_what_it_knows() {
        use AllocationValues::{All, Allocated};
        let sampled = MAX_HASHED_RATE + 1;
        for (distance, sent, expected) in [
            (1, All, AllocationsAnew::End),
            (MAX_HASHED_RATE, Allocated, AllocationsAnew::End),
            (sampled, All, AllocationsAnew::Allocated),
            (sampled, Allocated, AllocationsAnew::AllocatedAsBefore),
        ] {
            assert_eq!(AllocationsAnew::of(distance, sent), expected, "{distance}, {sent:?}");
        }
        let sentences = [AllocationsAnew::End, AllocationsAnew::Allocated].map(|it| it.sentence().unwrap());
        assert!(sentences[0].ends_with("no allocations are recorded from now on"));
        assert!(sentences[1].ends_with("only allocations are sent from now on"));
        assert_eq!(AllocationsAnew::AllocatedAsBefore.sentence(), None);
    }
}
