//! A page with a flame graph and the functions with the most time. It can be opened from a disk, without a
//! server or a network.

use crate::flame::{FlamePicture, escape, write_svg};
use std::io::{self, Write};

/// A line of the page's table of functions.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// The function.
    pub name: String,
    /// Its lib.
    pub lib: String,
    /// Its own time: as a share of the whole (1 is all), and as text.
    pub own: (f64, String),
    /// The same including its callees.
    pub total: (f64, String),
}

/// Writes the page. `summary` are lines about the whole.
pub fn write_html(
    picture: &FlamePicture,
    summary: &[String],
    functions: &[TableRow],
    out: &mut impl Write,
) -> io::Result<()> {
    let title = escape(&picture.title);
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width\">")?;
    writeln!(out, "<style>{}</style>\n<body>\n<h1>{title}</h1>", include_str!("page.css"))?;
    for line in summary {
        writeln!(out, "<p>{}</p>", escape(line))?;
    }
    writeln!(out, "<div class=\"picture\">")?;
    let mut svg = Vec::new();
    // The page has the title already.
    let heading = "Flame graph: click to zoom, Ctrl+F to search".to_owned();
    write_svg(&FlamePicture { title: heading, ..picture.clone() }, &mut svg)?;
    // The XML declaration and the CDATA markers of the script are invalid in a page.
    let svg = String::from_utf8_lossy(&svg);
    let svg = svg.split_once("?>\n").map_or(&*svg, |(_, svg)| svg);
    out.write_all(svg.replace("<![CDATA[\n", "").replace("]]></script>", "</script>").as_bytes())?;
    writeln!(
        out,
        "</div>\n<table>\n<thead><tr><th data-sort=\"own\">Self</th><th></th><th data-sort=\"total\">Total</th><th></th><th data-sort=\"name\">Function</th><th data-sort=\"lib\">Library</th></tr></thead>\n<tbody>"
    )?;
    for row in functions {
        write_row(row, out)?;
    }
    writeln!(out, "</tbody>\n</table>\n<script>\n{}</script>\n</body>\n</html>", include_str!("page.js"))
}

fn write_row(row: &TableRow, out: &mut impl Write) -> io::Result<()> {
    let share = |(share, _): &(f64, String)| format!("{:.2}%", 100.0 * share);
    writeln!(
        out,
        concat!(
            r#"<tr data-own="{}" data-total="{}"><td class="share"><i style="width:{:.2}%"></i>{}</td><td>{}</td>"#,
            r#"<td class="share"><i style="width:{:.2}%"></i>{}</td><td>{}</td><td class="name">{}</td><td>{}</td></tr>"#
        ),
        row.own.0,
        row.total.0,
        100.0 * row.own.0.clamp(0.0, 1.0),
        share(&row.own),
        escape(&row.own.1),
        100.0 * row.total.0.clamp(0.0, 1.0),
        share(&row.total),
        escape(&row.total.1),
        escape(&row.name),
        escape(&row.lib),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flame::test_picture::picture;

    #[test]
    fn the_script_has_no_tags() {
        let script = crate::flame::svg::script();
        let begins_tag = |next: char| next.is_ascii_alphabetic() || "/!?".contains(next);
        let tag = script.match_indices('<').find(|(at, _)| script[at + 1..].starts_with(begins_tag));
        assert_eq!(tag.map(|(at, _)| script[at..].lines().next()), None);
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let row = TableRow {
            name: "a<b>".into(),
            lib: "lib".into(),
            own: (0.5, "5 ms".into()),
            total: (0.6, "6 ms".into()),
        };
        let mut bytes = Vec::new();
        write_html(&picture(), &["1 < 2".into()], &[row], &mut bytes).unwrap();
        let page = String::from_utf8(bytes).unwrap();
        assert!(page.contains("<p>1 &lt; 2</p>") && page.contains("<td class=\"name\">a&lt;b&gt;</td>"));
        let links: Vec<_> = ["src=", "href=", "url(", "@import", "<![CDATA["]
            .iter()
            .filter(|part| page.contains(**part))
            .collect();
        assert!(links.is_empty(), "{links:?}");
    }
}
