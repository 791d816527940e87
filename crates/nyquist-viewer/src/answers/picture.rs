//! `flamegraph.svg`: the flame graph of the selection as a picture.

use nyquist_analysis::{FlameBox, FlameGraph, FlameOptions, short_name};
use nyquist_formats::flame::{Color, FlameColors, FlamePicture, FlamePictureBox, write_svg};
use nyquist_profile::{CategoryId, Unit};
use nyquist_server::{ViewerError, ViewerResponse};

use super::context::QueryContext;
use super::graphs::before_weight;
use crate::errors::{bad_request, internal};

/// The width of the picture in pixels, before a browser fits it to its window.
const PIXELS: u32 = 1200;

/// The minimum width of drawn boxes, in pixels, as on the page. Narrower ones would be most of the file.
const MIN_WIDTH: f64 = 0.5;

/// The meaning of the colours of boxes.
#[derive(Clone, Copy)]
enum Colors {
    Module,
    Lib,
    Category,
    Change,
}

/// A change of the whole by this share has the strongest colour.
const STRONGEST: f64 = 0.1;

/// Returns the picture.
pub(crate) fn svg(context: &QueryContext<'_, '_>) -> Result<ViewerResponse, ViewerError> {
    let mut body = Vec::new();
    write_svg(&picture(context)?, &mut body).map_err(|_| internal())?;
    Ok(ViewerResponse { content_type: "image/svg+xml", file_name: Some("flamegraph.svg"), body })
}

fn picture(context: &QueryContext<'_, '_>) -> Result<FlamePicture, ViewerError> {
    let colors = match context.parameters.get("color") {
        None | Some("module") => Colors::Module,
        Some("lib") => Colors::Lib,
        Some("category") => Colors::Category,
        Some("change") => Colors::Change,
        Some(_) => return Err(bad_request("color takes module, lib, category or change")),
    };
    let inverted = context.parameters.is_set("inverted");
    let min_share = MIN_WIDTH / f64::from(PIXELS);
    let graph = context.view.flame_graph(&FlameOptions { inverted, min_share, ..FlameOptions::default() });
    let before = match colors {
        Colors::Change => Some(BoxesBefore::new(context, &graph, inverted)?),
        _ => None,
    };
    let boxes = graph.boxes.iter().enumerate().map(|(index, one)| {
        let change = before.as_ref().map(|before| before.change(index, one));
        let share = one.width as f64 / graph.width.max(1) as f64;
        let remark = change.as_ref().map_or("", |(_, remark)| remark);
        FlamePictureBox {
            depth: one.depth,
            start: one.start as f64,
            width: one.width as f64,
            name: short_name(one.name).into_owned(),
            details: details(context, one, share, remark),
            color: change.as_ref().map_or_else(
                || color(context, one, colors),
                |(change, _)| FlameColors::of_change(change / STRONGEST),
            ),
        }
    });
    let meta = context.view.profile().meta();
    let whole = amount(context, graph.width);
    Ok(FlamePicture {
        title: meta.product.clone(),
        subtitle: format!("{whole} ({})", meta.measure.name),
        width: graph.width as f64,
        boxes: boxes.collect(),
        // An inverted graph has the functions with self time at the top.
        hangs: inverted || context.parameters.is_set("icicle"),
        pixels: PIXELS,
        share_of: Some(format!("of {}", meta.measure.name)),
        time_from: None,
    })
}

/// The same boxes in the other run of a comparison.
struct BoxesBefore<'q> {
    shares: Vec<f64>,
    /// The wholes of both runs, in intervals of the shown one.
    before: f64,
    after: f64,
    by_share: bool,
    context: &'q QueryContext<'q, 'q>,
}

impl<'q> BoxesBefore<'q> {
    fn new(
        context: &'q QueryContext<'q, 'q>,
        graph: &FlameGraph<'_>,
        inverted: bool,
    ) -> Result<Self, ViewerError> {
        let before = context.before()?.flame_graph(&FlameOptions { inverted, ..FlameOptions::default() });
        Ok(Self {
            shares: graph.shares_in(&before),
            before: before_weight(context, before.width)?,
            after: graph.width as f64,
            by_share: context.parameters.get("unit") == Some("share"),
            context,
        })
    }

    /// The change of a box as a share of the whole, and the text about it.
    fn change(&self, index: usize, one: &FlameBox<'_>) -> (f64, String) {
        let (before, after) = (self.shares[index], one.width as f64 / self.after.max(1.0));
        if self.by_share {
            let change = after - before;
            return (change, format!(", before {:.1} %, {:+.1} %", 100.0 * before, 100.0 * change));
        }
        let time_before = before * self.before;
        let change = (one.width as f64 - time_before) / self.after.max(self.before).max(1.0);
        (change, format!(", before {}", amount(self.context, time_before.round() as u64)))
    }
}

fn details(context: &QueryContext<'_, '_>, one: &FlameBox<'_>, share: f64, remark: &str) -> String {
    let lib = one.lib.map(|lib| format!("{lib}, ")).unwrap_or_default();
    format!("{lib}{}, {:.1} %{remark}", amount(context, one.width), 100.0 * share)
}

/// A weight in the profile's unit.
fn amount(context: &QueryContext<'_, '_>, weight: u64) -> String {
    let amount = weight.saturating_mul(context.interval_ns());
    match context.view.profile().meta().measure.unit {
        Unit::Time => format!("{:.1} ms", amount as f64 / 1e6),
        Unit::Bytes => format!("{amount} bytes"),
        Unit::Count => amount.to_string(),
    }
}

fn color(context: &QueryContext<'_, '_>, one: &FlameBox<'_>, colors: Colors) -> Color {
    let lib = one.lib.unwrap_or_default();
    let group = match colors {
        Colors::Module => module(one.name).unwrap_or(lib),
        Colors::Lib | Colors::Change => lib,
        Colors::Category => {
            let category = context.categories.of(one.func).map(CategoryId::from_index);
            category.map_or("", |category| &context.view.profile().category(category).name)
        }
    };
    FlameColors::of_group(group, one.name)
}

/// The crate or namespace at the start of a name's path.
fn module(name: &str) -> Option<&str> {
    let path = name.trim_start_matches(['<', '&', '*', '[', '(']);
    let (first, _) = path.split_once("::")?;
    let is_word = |char: char| char.is_alphanumeric() || char == '_' || char == '$';
    Some(first).filter(|first| !first.is_empty() && first.chars().all(is_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_what_a_path_begins_with() {
        assert_eq!(module("core::fmt::write"), Some("core"));
        assert_eq!(module("<&alloc::vec::Vec<T> as X>::f"), Some("alloc"));
        assert_eq!(module("main"), None);
        assert_eq!(module("operator new(std::size_t)"), None);
    }
}
