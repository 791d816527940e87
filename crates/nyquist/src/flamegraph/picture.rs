//! The boxes of a flame graph with names and colours; `nyquist_formats::flame` draws them.

use super::title::titled;
use crate::args::{ColorBy, PictureArgs};
use crate::scale::Scale;
use crate::text::Names;
use nyquist_analysis::schema::Summary;
use nyquist_analysis::{FlameBox, FlameOptions, View};
use nyquist_formats::flame::{Color, FlameColors, FlamePicture, FlamePictureBox};
use nyquist_profile::{FuncId, Profile};
use serde::Serialize;

/// The flame graph of the selected part.
pub(super) fn picture(view: &View<'_>, args: &PictureArgs, inverted: bool, names: Names) -> FlamePicture {
    let painter = Painter::new(view.profile(), args.colors);
    let paint = |flame_box: &FlameBox<'_>| painter.color(flame_box.func, flame_box.name, flame_box.lib);
    // An inverted graph has its roots, the functions with self time, at the top.
    let args = PictureArgs { icicle: args.icicle || inverted, ..args.clone() };
    with_colors(view, &args, inverted, names, |_, flame_box| (paint(flame_box), String::new()))
}

/// The flame graph with a colour and a remark for each box, given its index.
pub(super) fn with_colors(
    view: &View<'_>,
    args: &PictureArgs,
    inverted: bool,
    names: Names,
    mut paint: impl FnMut(usize, &FlameBox<'_>) -> (Color, String),
) -> FlamePicture {
    let min_share = args.min_width / f64::from(args.width);
    let graph = view.flame_graph(&FlameOptions { inverted, min_share, ..FlameOptions::default() });
    let scale = Scale { total: graph.width, ..Scale::of(view) };
    let boxes = graph.boxes.iter().enumerate().map(|(index, flame_box)| {
        let (color, remark) = paint(index, flame_box);
        let (time, share) = (scale.time(flame_box.width), scale.percent(flame_box.width));
        FlamePictureBox {
            depth: flame_box.depth,
            start: flame_box.start as f64,
            width: flame_box.width as f64,
            name: names.show(flame_box.name),
            details: format!("{}{time}, {share}{remark}", lib_in_front(flame_box.lib)),
            color,
        }
    });
    let share_of = format!("of {}", crate::report::kind(view));
    let picture = FlamePicture {
        width: graph.width as f64,
        boxes: boxes.collect(),
        hangs: args.icicle,
        share_of: Some(share_of),
        ..FlamePicture::default()
    };
    titled(view, args, picture)
}

/// What `flamegraph --json` prints: the picture's numbers.
#[derive(Serialize)]
pub(super) struct PictureAnswer<'a> {
    schema: &'static str,
    #[serde(flatten)]
    summary: Summary<'a>,
    width: f64,
    boxes: Vec<BoxAnswer<'a>>,
}

#[derive(Serialize)]
struct BoxAnswer<'a> {
    depth: usize,
    start: f64,
    width: f64,
    function: &'a str,
    details: &'a str,
}

/// The picture's numbers for scripts.
pub(super) fn answer<'a>(picture: &'a FlamePicture, view: &View<'a>) -> PictureAnswer<'a> {
    let boxes = picture.boxes.iter().map(|flame_box| BoxAnswer {
        depth: flame_box.depth,
        start: flame_box.start,
        width: flame_box.width,
        function: &flame_box.name,
        details: &flame_box.details,
    });
    let schema = "nyquist-flamegraph/1";
    PictureAnswer { schema, summary: Summary::of(view), width: picture.width, boxes: boxes.collect() }
}

fn lib_in_front(lib: Option<&str>) -> String {
    lib.map(|lib| format!("{lib}, ")).unwrap_or_default()
}

/// Gives boxes their colours.
pub(super) struct Painter {
    by: ColorBy,
    /// The category of each function: that of its first frame that has one.
    categories: Vec<String>,
}

impl Painter {
    pub(super) fn new(profile: &Profile, by: ColorBy) -> Self {
        let mut categories = Vec::new();
        if by == ColorBy::Category {
            categories = vec![String::new(); profile.funcs().len()];
            for frame in profile.frames().iter().rev() {
                if let Some(pair) = frame.category {
                    categories[frame.func.index()].clone_from(&profile.category(pair.category).name);
                }
            }
        }
        Self { by, categories }
    }

    pub(super) fn color(&self, func: FuncId, name: &str, lib: Option<&str>) -> Color {
        match self.by {
            ColorBy::Function => FlameColors::of_function(name),
            ColorBy::Lib => FlameColors::of_group(lib.unwrap_or_default(), name),
            ColorBy::Category => {
                FlameColors::of_group(self.categories.get(func.index()).map_or("", String::as_str), name)
            }
        }
    }
}
