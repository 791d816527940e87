//! Describes the events of a recording in the form of a perf.data file.

use std::io;

use nyquist_perf::file::WrittenEvent;
use nyquist_perf::{AttrFlags, EventAttr, ReadFormat, SampleType};

use super::attr::{CommonAttr, Reach, SamplingParameters, Trigger, sampling, sideband, totals};
use super::events::{OpenedEvents, Role};
use super::outcome::PerfOutcome;
use crate::linux::sys::event::perf_event_attr;

/// The parameters with which the events were opened.
#[derive(Debug)]
pub(crate) struct EventParameters {
    pub(crate) common: CommonAttr,
    pub(crate) outcome: PerfOutcome,
}

impl EventParameters {
    /// The events, with the ids of all that were opened. Queries the kernel for each.
    pub(crate) fn events(&self, events: &OpenedEvents) -> io::Result<Vec<WrittenEvent>> {
        let mut written = Vec::new();
        let sidebands = [Role::Sideband, Role::LazySideband];
        for role in [Role::Sampling, Role::Totals].into_iter().chain(sidebands) {
            let numbers = events.ids(role)?;
            if numbers.is_empty() {
                continue;
            }
            let cpu = |id: u64| {
                events.counters().iter().find(|counter| counter.id == id).map(|counter| counter.cpu)
            };
            let ids = numbers.into_iter().map(|id| (id, cpu(id).filter(|_| role == Role::Totals))).collect();
            let attr = self.attr(role);
            let name = attr.generic_name().unwrap_or("cycles").to_owned();
            written.push(WrittenEvent { attr, name, ids });
        }
        Ok(written)
    }

    fn attr(&self, role: Role) -> EventAttr {
        let Self { common, outcome } = self;
        // How the events were enabled is irrelevant for readers of the file.
        let reach = match common.reach {
            Reach::Thread { .. } => Reach::Thread { from_exec: false },
            reach @ (Reach::OneThread | Reach::Cpu) => reach,
        };
        let common = CommonAttr { reach, ..*common };
        file_attr(&match role {
            Role::Sampling => {
                let rate = SamplingParameters {
                    rate_hz: outcome.rate_hz,
                    stack_bytes: outcome.stack_bytes,
                    wake_at: 1,
                    unit: None,
                };
                (sampling(common, rate), sample_period(common, outcome.rate_hz))
            }
            Role::Totals => (totals(common, 1), 0),
            // They are not stored in files.
            Role::Sideband | Role::LazySideband | Role::Separator | Role::Additional(_) => {
                (sideband(common, 1), 0)
            }
        })
    }
}

/// The period, or the frequency, of the sampling event.
fn sample_period(common: CommonAttr, rate_hz: u32) -> u64 {
    match common.features.trigger {
        Trigger::Cycles => u64::from(rate_hz),
        Trigger::CpuClock => super::attr::period_ns(rate_hz),
    }
}

fn file_attr((attr, sample_period): &(perf_event_attr, u64)) -> EventAttr {
    EventAttr {
        kind: attr.type_,
        config: attr.config,
        sample_period: *sample_period,
        sample_type: SampleType(attr.sample_type),
        read_format: ReadFormat(attr.read_format),
        flags: AttrFlags(attr._bitfield_1.get(0, 64)),
        branch_sample_type: attr.branch_sample_type,
        sample_regs_user: attr.sample_regs_user,
        sample_stack_user: attr.sample_stack_user,
        clock: attr.clockid,
        sample_regs_intr: attr.sample_regs_intr,
        sample_max_stack: attr.sample_max_stack,
        ..EventAttr::default()
    }
}
