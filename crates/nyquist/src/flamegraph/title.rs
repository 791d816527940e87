//! The lines above a picture.

use crate::args::PictureArgs;
use crate::report;
use crate::text::one_line;
use nyquist_analysis::View;
use nyquist_formats::flame::FlamePicture;

/// The lines about a picture, unless the user has given others.
pub(super) fn titled(view: &View<'_>, args: &PictureArgs, picture: FlamePicture) -> FlamePicture {
    let heading = report::heading(view);
    let mut lines = heading.lines();
    // The first line begins with the name, which is the title.
    let first = lines.next().unwrap_or_default();
    let product = one_line(&view.profile().meta().product);
    let first = first.strip_prefix(&*product).unwrap_or(first);
    let usual: Vec<_> = std::iter::once(first.trim_start_matches(": ")).chain(lines).collect();
    FlamePicture {
        title: args.title.clone().unwrap_or_else(|| view.profile().meta().product.clone()),
        subtitle: args.subtitle.clone().unwrap_or_else(|| usual.join("; ")),
        pixels: args.width,
        ..picture
    }
}
