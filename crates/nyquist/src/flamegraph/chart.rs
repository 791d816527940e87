//! The flame chart of threads over time: one below the other, each with its name above.

use super::picture::Painter;
use super::title::titled;
use crate::args::PictureArgs;
use crate::scale::milliseconds;
use crate::text::Names;
use nyquist_analysis::{FlameChartOptions, View};
use nyquist_formats::flame::{FlameColors, FlamePicture, FlamePictureBox};
use nyquist_profile::ThreadIndex;

/// The number of threads that are drawn, those with the most time first.
const THREADS: usize = 8;

/// The flame chart of the selected part.
pub(super) fn picture(view: &View<'_>, args: &PictureArgs, names: Names) -> FlamePicture {
    let painter = Painter::new(view.profile(), args.colors);
    let times = view.times();
    let length = times.end.saturating_sub(times.start).max(1);
    let min_ns = (args.min_width / f64::from(args.width) * length as f64) as u64;
    let mut boxes = Vec::new();
    let mut level = 0;
    for (thread, name) in busiest(view) {
        boxes.push(FlamePictureBox {
            depth: level,
            start: 0.0,
            width: length as f64,
            name: format!("thread {name}"),
            details: milliseconds(length),
            color: FlameColors::of_group("", ""),
        });
        let mut deepest = 0;
        for flame_box in
            view.flame_chart(thread, &FlameChartOptions { min_ns, ..FlameChartOptions::default() }).boxes
        {
            deepest = deepest.max(flame_box.depth + 1);
            let width = flame_box.end_ns.saturating_sub(flame_box.start_ns);
            boxes.push(FlamePictureBox {
                depth: level + 1 + flame_box.depth,
                start: flame_box.start_ns.saturating_sub(times.start) as f64,
                width: width as f64,
                name: names.show(flame_box.name),
                details: format!("{} from {:.3} s on", milliseconds(width), flame_box.start_ns as f64 / 1e9),
                color: painter.color(flame_box.func, flame_box.name, flame_box.lib),
            });
        }
        level += deepest + 2;
    }
    let time_from = Some(times.start as f64);
    let picture =
        FlamePicture { width: length as f64, boxes, hangs: true, time_from, ..FlamePicture::default() };
    titled(view, args, picture)
}

/// The threads with the most time, and their names.
fn busiest<'v>(view: &'v View<'_>) -> Vec<(ThreadIndex, &'v str)> {
    let mut rows = view.by_thread();
    rows.sort_by_key(|row| std::cmp::Reverse(row.amount.weight));
    rows.iter().take(THREADS).map(|row| (row.thread, row.name)).collect()
}
