//! The flame graph: on the whole screen of a terminal, or as lines of text.

use super::context::{Report, TREE_ROWS, more};
use super::heading::kind;
use crate::failure::Failure;
use crate::flame_screen::{FlameBoxes, ShownGraph, plain, watch};
use crate::number::counted;
use crate::page;
use crate::text::{Text, one_line};

/// Shows the graph on the screen, if there is one. Returns the exit status; `None` if it must be printed.
pub(super) fn show(report: &Report<'_>) -> Result<Option<u8>, Failure> {
    let has_screen = page::is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    if !has_screen {
        return Ok(None);
    }
    let product = &report.view.profile().meta().product;
    let amount = report.scale.amount(report.scale.total);
    let title = format!("{}  {amount} {}", one_line(product), kind(report.view));
    let (names, screen) = (report.names, report.screen);
    let ended = watch(ShownGraph { view: report.view, title, is_inverted: false, names, screen })?;
    Ok(Some(ended.map_or(0, |signal| 128_u8.saturating_add(signal.number() as u8))))
}

/// The graph as text, callers above what they call.
pub(super) fn text(report: &Report<'_>) -> Text {
    let boxes = FlameBoxes::of(report.view, false, report.names);
    let levels = report.args.depth.map_or_else(|| report.limit(TREE_ROWS), |depth| depth as usize);
    let (lines, left) = plain(&boxes, report.screen, levels);
    let mut text: String = lines.into_iter().map(|line| line + "\n").collect();
    text += &match report.args.depth {
        Some(_) if left > 0 => counted(left as u64, "more level") + "\n",
        _ => more(left, "level", "levels"),
    };
    Text::from(text)
}
