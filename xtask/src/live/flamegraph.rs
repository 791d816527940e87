//! `nyquist flamegraph`: the boxes of the picture are as wide as their functions took.

use std::fs;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_share};
use super::harness::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("boxes_are_as_wide_as_their_functions", widths).quick().parallel(),
    Test::new("an_inverted_graph_begins_with_what_takes_the_time", inverted).parallel(),
    Test::new("a_chart_names_its_threads", chart).parallel(),
    Test::new("a_comparison_says_what_was_before", comparison).parallel(),
    Test::new("a_page_holds_the_picture_and_the_functions", page).parallel(),
    Test::new("a_recording_draws_its_own", with_recording).parallel(),
];

/// A box of a picture: its level, its share of the width, and what is said of it.
struct Drawn {
    level: u64,
    share: f64,
    said: String,
}

/// The boxes of a picture, whose elements must be closed as they were opened.
fn boxes(svg: &str) -> Result<Vec<Drawn>, Stop> {
    for element in ["svg", "g", "style", "script", "title"] {
        let opened =
            svg.matches(&format!("<{element} ")).count() + svg.matches(&format!("<{element}>")).count();
        expect_eq(&format!("closed {element}"), svg.matches(&format!("</{element}>")).count(), opened)?;
    }
    let total = number(svg, "data-total=\"")?;
    let lines = svg.lines().filter(|line| line.starts_with("<g data-s="));
    lines
        .map(|line| {
            let said = line.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
            Ok(Drawn {
                level: number(line, "data-d=\"")? as u64,
                share: number(line, "data-w=\"")? / total,
                said: said.unwrap_or_default().to_owned(),
            })
        })
        .collect()
}

fn number(text: &str, before: &str) -> Result<f64, Stop> {
    let value = text.split(before).nth(1).and_then(|rest| rest.split('"').next());
    let number = value.and_then(|value| value.parse().ok());
    number.ok_or_else(|| Stop::Failed(format!("no number behind {before}")))
}

fn share_of(boxes: &[Drawn], function: &str) -> f64 {
    let name = format!("{function} (");
    boxes.iter().filter(|drawn| drawn.said.starts_with(&name)).map(|drawn| drawn.share).sum()
}

/// The picture of a file with these options.
fn draw(test: &Context<'_>, file: &str, options: &[&str]) -> Result<String, Stop> {
    let picture = test.fresh("picture.svg");
    let output = picture.display().to_string();
    test.nyquist(&["flamegraph", file, "-o", &output]).args(options).run()?.succeeded()?;
    Ok(fs::read_to_string(picture)?)
}

fn widths(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "500"]).run_well()?;
    let boxes = boxes(&draw(test, &recorded.path.display().to_string(), &[])?)?;
    for part in ["alpha", "beta", "gamma_"] {
        let wanted = recorded.true_share(part)?;
        expect_share(part, share_of(&boxes, part), wanted, recorded.profile.count())?;
    }
    let level = |name: &str| boxes.iter().find(|drawn| drawn.said.starts_with(name)).map(|drawn| drawn.level);
    expect_eq("alpha stands on middle", level("alpha ("), level("middle (").map(|level| level + 1))
}

fn inverted(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "500"]).run_well()?;
    let boxes = boxes(&draw(test, &recorded.path.display().to_string(), &["--inverted"])?)?;
    let roots: Vec<Drawn> = boxes.into_iter().filter(|drawn| drawn.level == 0).collect();
    let found = roots.iter().map(|drawn| drawn.share).sum::<f64>();
    expect((found - 1.0).abs() < 0.05, format_args!("the roots are {found} of the width"))?;
    let wanted = recorded.profile.self_share("alpha");
    expect_share("alpha", share_of(&roots, "alpha"), wanted, recorded.profile.count())
}

fn chart(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["threads", "300"]).run_well()?;
    let svg = draw(test, &recorded.path.display().to_string(), &["--chart"])?;
    let boxes = boxes(&svg)?;
    expect(boxes.iter().filter(|drawn| drawn.said.starts_with("thread ")).count() > 1, "no threads are named")
}

fn comparison(test: &Context<'_>) -> Verdict {
    let file = test.record(&["shares", "300"]).run_well()?.path.display().to_string();
    let svg = draw(test, &file, &["--before", &file])?;
    let boxes = boxes(&svg)?;
    let alpha = boxes.iter().find(|drawn| drawn.said.starts_with("alpha (")).map(|drawn| drawn.said.clone());
    expect_contains("alpha", &alpha.unwrap_or_default(), "+0.0%")
}

fn page(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let page = test.path("page.html");
    let (file, output) = (recorded.path.display().to_string(), page.display().to_string());
    test.nyquist(&["export", &file, "-o", &output]).run()?.succeeded()?;
    let page = fs::read_to_string(page)?;
    expect_contains("the table", &page, "<td class=\"name\">alpha</td>")?;
    expect_contains("the picture", &page, "<title>alpha (")
}

fn with_recording(test: &Context<'_>) -> Verdict {
    let picture = test.path("own.svg").display().to_string();
    test.record(&["shares", "300"]).options(&["--flamegraph", &picture]).run_well()?;
    expect(share_of(&boxes(&fs::read_to_string(picture)?)?, "alpha") > 0.3, "alpha is not drawn")
}
