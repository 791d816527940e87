//! The recording and the selected part of it, in a few lines or as members of a JSON object.

use crate::number::{counted, grouped, is_visible_percent, percent, time_span};
use crate::scale::Scale;
use nyquist_analysis::{ProfileSummary, SampleState, View};
use nyquist_profile::Unit;

/// The recording, in two to four lines.
pub(crate) fn heading(view: &View<'_>) -> String {
    let summary = view.summary();
    let scale = Scale::of(view);
    let kind = kind(view);
    let amount = match scale.unit {
        Unit::Time => format!(
            "{} of {kind} in {}",
            time_span(summary.total.weight.saturating_mul(summary.interval_ns)),
            time_span(summary.duration_ns)
        ),
        // Units other than time are not included.
        Unit::Bytes | Unit::Count => format!("{} ({kind})", scale.amount(summary.total.weight)),
    };
    let mut lines = vec![format!(
        "{}{amount}, {}",
        name_before(&view.profile().meta().product),
        count_of_threads(&summary)
    )];
    if view.selection().state == SampleState::OnCpu {
        lines.extend(view.impossible_time(&summary).map(|it| it.sentence(time_span)));
        if summary.has_kernel_share(&view.profile().meta().measure) {
            lines.push(shares(&summary, scale));
        }
    }
    if summary.lost_samples > 0 {
        lines.push(format!("{} lost", counted(summary.lost_samples, "sample")));
    }
    if summary.truncated.weight > 0 {
        let share = percent(scale.share(summary.truncated.weight));
        lines.push(format!("{share} in stacks that do not reach their root"));
    }
    lines.join("\n") + "\n"
}

/// The kind of samples that are counted: CPU time, or the profile's own unit, and waiting.
pub(crate) fn kind(view: &View<'_>) -> String {
    let name = crate::text::one_line(&view.profile().meta().measure.name);
    match view.selection().state {
        SampleState::OnCpu => name.to_string(),
        SampleState::OffCpu => "waiting".to_owned(),
        SampleState::Both => format!("{name} and waiting"),
    }
}

/// The name of the recorded program, if it is known, with a colon.
fn name_before(product: &str) -> String {
    if product.is_empty() { String::new() } else { format!("{}: ", crate::text::one_line(product)) }
}

/// The shares of user code, the kernel, and unknown code in the CPU time.
pub(crate) fn shares(summary: &ProfileSummary, scale: Scale) -> String {
    let share = |weight: u64| percent(scale.share(weight));
    let mut shares = vec![
        format!("user {}", share(summary.user.weight)),
        format!("kernel {}", share(summary.kernel.weight)),
    ];
    if summary.kernel_not_permitted.weight > 0 {
        shares[1].push_str(" (not permitted to sample)");
    }
    if is_visible_percent(scale.share(summary.not_sampled.weight)) {
        shares.push(format!("not sampled {}", share(summary.not_sampled.weight)));
    }
    shares.join(", ")
}

fn count_of_threads(summary: &ProfileSummary) -> String {
    let processes = match summary.processes {
        1 => "1 process".to_owned(),
        count => format!("{} processes", grouped(count as u64)),
    };
    format!("{} in {processes}", counted(summary.threads as u64, "thread"))
}
