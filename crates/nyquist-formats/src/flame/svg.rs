//! The flame graph as an SVG.

use crate::fit::{FIT_SCRIPT, fit_name};
use crate::flame::{FlamePicture, FlamePictureBox, escape};
use crate::hidden;
use std::io::{self, Write};

/// The height of a level, and of its text, in pixels.
const LEVEL: usize = 17;
const FONT: usize = 12;

/// The width of a character of the font, which is monospaced so that texts can be fitted without a browser.
const CHARACTER: f64 = 7.2;

/// The heights above and below the boxes, in pixels: the title, and the line with the details of the box
/// under the pointer.
const HEADER: usize = 52;
const FOOTER: usize = 10;

/// The height of the axis of times above the boxes.
const AXIS: usize = 16;

/// The margin left and right of the boxes.
const MARGIN: usize = 10;

/// Boxes narrower than this, in pixels, have no text, because not even two characters fit.
const MIN_TEXT: f64 = 2.0 * CHARACTER + 6.0;

/// Writes the picture.
pub fn write_svg(picture: &FlamePicture, out: &mut impl Write) -> io::Result<()> {
    let levels = picture.boxes.iter().map(|flame_box| flame_box.depth + 1).max().unwrap_or(1);
    let header = HEADER + picture.time_from.map_or(0, |_| AXIS);
    let (width, height) = (picture.pixels as usize, header + levels * LEVEL + FOOTER);
    write!(
        out,
        concat!(
            r#"<?xml version="1.0" encoding="UTF-8" standalone="no"?>"#,
            "\n",
            r#"<svg xmlns="http://www.w3.org/2000/svg" version="1.1" class="flame" width="{width}" height="{height}" "#,
            r#"viewBox="0 0 {width} {height}" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" "#,
            r#"font-size="{font}" data-total="{total}" data-level="{level}" data-header="{header}" data-hangs="{hangs}" "#,
            r#"data-share-of="{share_of}"{time_from}>"#,
            "\n"
        ),
        width = width,
        height = height,
        font = FONT,
        total = number(picture.width),
        level = LEVEL,
        header = header,
        hangs = picture.hangs,
        share_of = escape(picture.share_of.as_deref().unwrap_or_default()),
        time_from =
            picture.time_from.map_or_else(String::new, |ns| format!(r#" data-time-from="{}""#, number(ns))),
    )?;
    writeln!(out, "<style>{}</style>", include_str!("flame.css"))?;
    writeln!(out, r#"<rect class="back" width="100%" height="100%"/>"#)?;
    writeln!(out, r#"<g class="boxes">"#)?;
    for flame_box in &picture.boxes {
        write_box(picture, flame_box, header + levels_above(picture, flame_box, levels) * LEVEL, out)?;
    }
    writeln!(out, "</g>")?;
    write_header(picture, width, header, out)?;
    writeln!(out, "<script><![CDATA[\n{}]]></script>\n</svg>", script())
}

/// The script of the picture. It has no comments, because in a page a tag in one is parsed as a tag.
pub(super) fn script() -> String {
    let lines = [FIT_SCRIPT, include_str!("flame.js")].into_iter().flat_map(str::lines);
    let is_comment = |line: &&str| {
        let line = line.trim_start();
        ["//", "/**", "* ", "*/"].iter().any(|begin| line.starts_with(begin))
    };
    let code: Vec<_> = lines.filter(|line| !is_comment(line) && !line.is_empty()).collect();
    format!("(() => {{\n{}\n}})();\n", code.join("\n"))
}

/// The header comes after the boxes, because in a browser it stays visible above them.
fn write_header(picture: &FlamePicture, width: usize, height: usize, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, r#"<g class="header"><rect class="back" width="100%" height="{height}"/>"#)?;
    let title = escape(&fitted(&picture.title, (width - 2 * MARGIN) as f64 / 1.4));
    writeln!(out, r#"<text class="title" x="{MARGIN}" y="22">{title}</text>"#)?;
    let subtitle = escape(&fitted(&picture.subtitle, (width - 2 * MARGIN) as f64));
    writeln!(out, r#"<text class="subtitle" x="{MARGIN}" y="40">{subtitle}</text>"#)?;
    writeln!(out, r#"<text class="details" x="{MARGIN}" y="40"></text>"#)?;
    writeln!(out, "</g>")
}

/// How many levels are drawn above a box.
fn levels_above(picture: &FlamePicture, flame_box: &FlamePictureBox, levels: usize) -> usize {
    if picture.hangs { flame_box.depth } else { levels - 1 - flame_box.depth }
}

fn write_box(
    picture: &FlamePicture,
    flame_box: &FlamePictureBox,
    y: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let scale = (picture.pixels as usize - 2 * MARGIN) as f64 / picture.width.max(f64::MIN_POSITIVE);
    let (x, width) = (MARGIN as f64 + flame_box.start * scale, flame_box.width * scale);
    let name = escape(&flame_box.name);
    write!(
        out,
        r#"<g data-s="{}" data-w="{}" data-d="{}"><title>{name} ({})</title><rect x="{x:.2}" y="{y}" width="{width:.2}" height="{}" fill="{}" rx="1"/>"#,
        number(flame_box.start),
        number(flame_box.width),
        flame_box.depth,
        escape(&flame_box.details),
        LEVEL - 1,
        flame_box.color,
    )?;
    let text =
        if width < MIN_TEXT { String::new() } else { escape(&fitted_name(&flame_box.name, width - 6.0)) };
    writeln!(out, r#"<text x="{:.2}" y="{}">{text}</text></g>"#, x + 3.0, y + LEVEL - 5)
}

/// The number, without a fraction if it is whole.
fn number(value: f64) -> String {
    if value.is_finite() { format!("{value}") } else { "0".to_owned() }
}

/// A name that fits into this many pixels. It has the last parts, as in `flame.js`.
fn fitted_name(name: &str, pixels: f64) -> String {
    fit_name(&hidden::escape(name), room(pixels), "…")
}

/// How many characters fit into this many pixels.
fn room(pixels: f64) -> usize {
    (pixels / CHARACTER).max(0.0) as usize
}

/// As much of a text as fits into this many pixels, with a mark if something is missing.
fn fitted(text: &str, pixels: f64) -> String {
    let room = room(pixels);
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(room.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flame::test_picture::picture;

    fn svg(picture: &FlamePicture) -> String {
        let mut bytes = Vec::new();
        write_svg(picture, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// The `y` of the box of a name.
    fn top(svg: &str, name: &str) -> usize {
        let at = svg.find(&format!("<title>{name} (")).unwrap();
        let rest = &svg[at..];
        let start = rest.find(" y=\"").unwrap() + 4;
        rest[start..].split('"').next().unwrap().parse().unwrap()
    }

    #[test]
    fn callees_stand_on_their_callers_or_hang_below() {
        let mut picture = picture();
        let standing = svg(&picture);
        assert_eq!(top(&standing, "main"), top(&standing, "a") + LEVEL);
        picture.hangs = true;
        let hanging = svg(&picture);
        assert_eq!(top(&hanging, "main") + LEVEL, top(&hanging, "a"));
    }

    #[test]
    fn names_are_escaped_and_what_they_take_is_said() {
        let svg = svg(&picture());
        assert!(svg.contains("<title>b &lt;&amp;&gt; (30 ms)</title>"), "{svg}");
        assert!(svg.contains(r#"<text class="title" x="10" y="22">app &quot;x&quot;</text>"#));
    }

    #[test]
    fn texts_fit_their_boxes() {
        let mut picture = picture();
        picture.boxes[1].name = "x".repeat(500);
        picture.boxes[2].width = 0.5;
        let svg = svg(&picture);
        let texts = svg.lines().filter(|line| line.starts_with("<g data-s")).map(|line| {
            let text = line.rsplit_once("</text>").unwrap().0.rsplit_once('>').unwrap().1;
            text.chars().count()
        });
        // 97 characters fit into 60 % of 1,180 pixels, less six.
        assert_eq!(texts.collect::<Vec<_>>(), [4, 97, 0]);
    }

    #[test]
    fn of_a_long_name_the_last_part_is_seen() {
        let mut picture = picture();
        picture.boxes[2].name = format!("{}::Vec<T>::reserve", "module".repeat(20));
        assert!(svg(&picture).contains(">…::Vec&lt;T&gt;::reserve</text>"));
    }

    #[test]
    fn the_same_picture_is_the_same_file() {
        assert_eq!(svg(&picture()), svg(&picture()));
    }

    #[test]
    fn nothing_is_a_picture_too() {
        assert!(svg(&FlamePicture { pixels: 100, ..FlamePicture::default() }).contains("</svg>"));
    }
}
