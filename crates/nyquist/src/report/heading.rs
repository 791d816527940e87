//! What was recorded and what of it is asked about, in a few lines or as members of a JSON object.

use crate::number::{counted, grouped, percent};
use crate::scale::Scale;
use nyquist_analysis::{SampleState, Summary, View};
use serde_json::{Value, json};

/// What was recorded, in two to four lines.
pub(crate) fn heading(view: &View<'_>) -> String {
    let summary = view.summary();
    let scale = Scale::of_summary(&summary);
    let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
    let kind = match view.selection().state {
        SampleState::OnCpu => "CPU time",
        SampleState::OffCpu => "waiting",
        SampleState::Both => "CPU time and waiting",
    };
    let mut lines = vec![format!(
        "{}{:.2} s of {kind} in {:.2} s, {}",
        name_before(&view.profile().meta().product),
        seconds(summary.total.weight.saturating_mul(summary.interval_ns)),
        seconds(summary.duration_ns),
        count_of_threads(&summary)
    )];
    if view.selection().state == SampleState::OnCpu {
        lines.push(shares(&summary, scale));
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

/// The name of what was recorded, if it is known, with a colon.
fn name_before(product: &str) -> String {
    if product.is_empty() { String::new() } else { format!("{}: ", crate::text::one_line(product)) }
}

/// How the CPU time is shared between user code, the kernel, and what is not known.
pub(crate) fn shares(summary: &Summary, scale: Scale) -> String {
    let share = |weight: u64| percent(scale.share(weight));
    let mut shares = vec![
        format!("user {}", share(summary.user.weight)),
        format!("kernel {}", share(summary.kernel.weight)),
    ];
    if summary.kernel_not_permitted.weight > 0 {
        shares[1].push_str(" (not permitted to sample)");
    }
    if summary.not_sampled.weight > 0 {
        shares.push(format!("not sampled {}", share(summary.not_sampled.weight)));
    }
    shares.join(", ")
}

fn count_of_threads(summary: &Summary) -> String {
    let processes = match summary.processes {
        1 => "1 process".to_owned(),
        count => format!("{} processes", grouped(count as u64)),
    };
    format!("{} in {processes}", counted(summary.threads as u64, "thread"))
}

/// The members that the JSON of every view has.
pub(crate) fn summary_json(view: &View<'_>) -> Value {
    let summary = view.summary();
    json!({
        "profile": view.profile().meta().product,
        "interval_ns": summary.interval_ns,
        "duration_ns": summary.duration_ns,
        "cpu_ns": summary.cpu_ns,
        "samples": summary.samples,
        "lost_samples": summary.lost_samples,
        "weight": summary.total.weight,
        "user_weight": summary.user.weight,
        "kernel_weight": summary.kernel.weight,
        "kernel_not_permitted_weight": summary.kernel_not_permitted.weight,
        "not_sampled_weight": summary.not_sampled.weight,
        "truncated_weight": summary.truncated.weight,
        "process_count": summary.processes,
        "thread_count": summary.threads,
    })
}
