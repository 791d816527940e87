//! The flame graph of a profile, coloured by the changes since another one.

use super::picture::with_colors;
use crate::args::PictureArgs;
use crate::number::percent;
use crate::text::Names;
use nyquist_analysis::{FlameOptions, View};
use nyquist_formats::flame::{FlameColors, FlamePicture};

/// A change of the whole by this share has the strongest colour.
const STRONGEST: f64 = 0.1;

/// The picture of `after`. It compares each box with the one that has the same callers, by shares of the
/// whole.
pub(super) fn picture(after: &View<'_>, before: &View<'_>, args: &PictureArgs, names: Names) -> FlamePicture {
    let before = before.flame_graph(&FlameOptions::default());
    let graph = after.flame_graph(&FlameOptions {
        min_share: args.min_width / f64::from(args.width),
        ..FlameOptions::default()
    });
    let shares = graph.shares_in(&before);
    let mut picture = with_colors(after, args, false, names, |index, flame_box| {
        let share = flame_box.width as f64 / graph.width.max(1) as f64;
        let old = shares[index];
        let sign = if share < old { "-" } else { "+" };
        let remark = format!(", before {}, {sign}{}", percent(old), percent((share - old).abs()));
        (FlameColors::of_change((share - old) / STRONGEST), remark)
    });
    if args.subtitle.is_none() {
        picture.subtitle.push_str("; red takes more of the whole than before, blue less");
    }
    picture
}
