//! Draws flame graphs: an interactive SVG, and a page that contains one.
//!
//! A [`FlamePicture`] is a list of boxes with everything that is shown of them. The caller defines their
//! meaning. Any image viewer can show the SVG, with texts that fit their boxes. In a browser its script adds
//! zooming, searching and fitting to the window. It needs no other files.

mod html;
mod palette;
mod svg;

pub use html::{TableRow, write_html};
pub use palette::{Color, FlameColors};
pub use svg::write_svg;

use crate::hidden;

/// Everything that a picture shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlamePicture {
    /// The title above it.
    pub title: String,
    /// The line below the title.
    pub subtitle: String,
    /// The width of the whole, in the unit of the boxes.
    pub width: f64,
    /// The boxes. A box is on top of the box of the previous level that contains it.
    pub boxes: Vec<FlamePictureBox>,
    /// Whether the first level is at the top and the others hang from it.
    pub hangs: bool,
    /// The width of the picture in pixels before a browser fits it to its window.
    pub pixels: u32,
    /// The text after shares of the whole, such as "of CPU time". Boxes of a flame chart have no shares.
    pub share_of: Option<String>,
    /// The time at the left edge, in ns, if widths are times. Then a browser shows a time axis.
    pub time_from: Option<f64>,
}

/// A box.
#[derive(Clone, Debug, PartialEq)]
pub struct FlamePictureBox {
    /// The level, from 0.
    pub depth: usize,
    /// Where it begins, from the left.
    pub start: f64,
    /// Its width.
    pub width: f64,
    /// The text in it.
    pub name: String,
    /// Details about it, such as its time.
    pub details: String,
    /// Its colour.
    pub color: Color,
}

/// Writes text for XML. Special characters are escaped, and so are hidden ones, because XML does not permit
/// control characters.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in hidden::escape_but(text, &['\n', '\t']).chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
pub(crate) mod test_picture {
    use super::*;

    /// `main` with `a` (60) and `b <&>` (30).
    pub(crate) fn picture() -> FlamePicture {
        let flame_box = |depth, start, width, name: &str| FlamePictureBox {
            depth,
            start,
            width,
            name: name.into(),
            details: format!("{width} ms"),
            color: FlameColors::of_function(name),
        };
        FlamePicture {
            title: "app \"x\"".into(),
            subtitle: "0.1 s".into(),
            width: 100.0,
            boxes: vec![
                flame_box(0, 0.0, 100.0, "main"),
                flame_box(1, 0.0, 60.0, "a"),
                flame_box(1, 60.0, 30.0, "b <&>"),
            ],
            hangs: false,
            pixels: 1200,
            time_from: None,
            share_of: Some("of CPU time".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_made_safe_for_xml() {
        assert_eq!(
            escape("Vec<T>::\"x\" & \u{1}\n\u{ffff}é\u{202e}"),
            "Vec&lt;T&gt;::&quot;x&quot; &amp; \\x01 \u{fffd}é\\u{202e}"
        );
    }
}
