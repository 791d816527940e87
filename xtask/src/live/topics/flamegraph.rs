//! `nyquist flamegraph`: the width of each box in the picture corresponds to its function's time.

use std::fs;

use super::browser::Page;
use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_share};
use super::invocation::Running;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("boxes_are_as_wide_as_their_functions", widths).quick(),
    Test::new("an_inverted_graph_begins_with_self_time", inverted),
    Test::new("a_chart_names_its_threads", chart),
    Test::new("a_comparison_says_what_was_before", comparison),
    Test::new("a_page_holds_the_picture_and_the_functions", page),
    Test::new("a_recording_draws_its_own", with_recording),
    Test::new("a_browser_zooms_searches_and_describes_boxes", in_browser),
    Test::new("texts_fit_their_boxes_at_any_browser_width", fits),
    Test::new("a_page_sorts_its_functions", page_in_browser),
    Test::new("a_terminal_zooms_searches_and_is_given_back", in_terminal),
    Test::new("without_a_terminal_the_graph_is_text", as_text),
];

/// A box in a picture: its level, its share of the width, and its title.
struct Drawn {
    level: u64,
    share: f64,
    printed: String,
}

/// The boxes in a picture. Its elements must be closed in the order in which they were opened.
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
            let printed = line.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
            Ok(Drawn {
                level: number(line, "data-d=\"")? as u64,
                share: number(line, "data-w=\"")? / total,
                printed: printed.unwrap_or_default().to_owned(),
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
    boxes.iter().filter(|drawn| drawn.printed.starts_with(&name)).map(|drawn| drawn.share).sum()
}

/// The picture of a file, drawn with these options.
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
        let expected = recorded.true_share(part)?;
        expect_share(part, share_of(&boxes, part), expected, recorded.profile.count())?;
    }
    let level =
        |name: &str| boxes.iter().find(|drawn| drawn.printed.starts_with(name)).map(|drawn| drawn.level);
    expect_eq("alpha stands on middle", level("alpha ("), level("middle (").map(|level| level + 1))
}

fn inverted(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "500"]).run_well()?;
    let boxes = boxes(&draw(test, &recorded.path.display().to_string(), &["--inverted"])?)?;
    let roots: Vec<Drawn> = boxes.into_iter().filter(|drawn| drawn.level == 0).collect();
    let found = roots.iter().map(|drawn| drawn.share).sum::<f64>();
    expect((found - 1.0).abs() < 0.05, format_args!("the roots are {found} of the width"))?;
    let expected = recorded.profile.self_share("alpha");
    expect_share("alpha", share_of(&roots, "alpha"), expected, recorded.profile.count())
}

fn chart(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["threads", "300"]).run_well()?;
    let svg = draw(test, &recorded.path.display().to_string(), &["--chart"])?;
    let boxes = boxes(&svg)?;
    expect(
        boxes.iter().filter(|drawn| drawn.printed.starts_with("thread ")).count() > 1,
        "no threads are named",
    )
}

fn comparison(test: &Context<'_>) -> Verdict {
    let file = test.record(&["shares", "300"]).run_well()?.path.display().to_string();
    let svg = draw(test, &file, &["--before", &file])?;
    let boxes = boxes(&svg)?;
    let alpha =
        boxes.iter().find(|drawn| drawn.printed.starts_with("alpha (")).map(|drawn| drawn.printed.clone());
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

/// JavaScript that defines names for the tested elements of a picture.
const HELPERS: &str = "
    window.svg = document.querySelector('svg.flame');
    window.boxes = Array.from(svg.querySelectorAll('.boxes > g'));
    window.named = (name) => boxes.find((box) => box.querySelector('title').textContent.startsWith(name + ' ('));
    window.widthOf = (name) => Number(named(name).querySelector('rect').getAttribute('width'));
    window.isShown = (name) => named(name).style.display !== 'none';
    window.button = (text) => Array.from(svg.querySelectorAll('.button'))
        .find((button) => button.textContent.includes(text) && button.style.display !== 'none');
    window.texts = () => boxes.filter((box) => box.style.display !== 'none').every((box) => {
        const text = box.querySelector('text'), rect = box.querySelector('rect');
        return text.textContent === ''
            || text.getComputedTextLength() + 3 <= Number(rect.getAttribute('width')) + 0.5;
    });
    true";

fn in_browser(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "500"]).run_well()?;
    let picture = test.fresh("picture.svg");
    let (file, output) = (recorded.path.display().to_string(), picture.display().to_string());
    test.nyquist(&["flamegraph", &file, "-o", &output]).run()?.succeeded()?;
    let mut page = Page::open(test, &picture, 1000, 400)?;
    page.evaluate(HELPERS)?;
    let share = page.evaluate("widthOf('alpha') / (innerWidth - 20)")?.as_f64().unwrap_or(0.0);
    expect_share("alpha's box", share, recorded.profile.total_share("alpha"), recorded.profile.count())?;

    page.point("named('alpha').querySelector('rect')", false)?;
    page.wait_until("svg.querySelector('.details').textContent.startsWith('alpha (')")?;
    page.wait_until("svg.querySelector('.details').textContent.endsWith('of CPU time')")?;

    page.point("named('alpha').querySelector('rect')", true)?;
    page.wait_until("Math.abs(widthOf('alpha') - (svg.viewBox.baseVal.width - 20)) < 1")?;
    expect_eq("beta beside it", page.evaluate("isShown('beta')")?, false.into())?;
    expect_eq("its caller", page.evaluate("isShown('middle')")?, true.into())?;
    page.point("button('Reset zoom')", true)?;
    page.wait_until("isShown('beta') && !button('Reset zoom')")?;

    page.evaluate("window.prompt = () => '^(alpha|beta)$'")?;
    page.point("button('Search')", true)?;
    page.wait_until(
        "named('alpha').classList.contains('found') && named('beta').classList.contains('found')",
    )?;
    expect_eq("gamma_", page.evaluate("named('gamma_').classList.contains('found')")?, false.into())?;
    let result = page.evaluate("button('end the search').textContent")?.to_string();
    let found = result.split(": ").nth(1).and_then(|text| text.split('%').next()?.parse::<f64>().ok());
    let both = recorded.profile.total_share("alpha") + recorded.profile.total_share("beta");
    expect(
        found.is_some_and(|found| (found - both * 100.0).abs() < 0.2),
        format_args!("{result}, not {both}"),
    )?;
    page.point("button('end the search')", true)?;
    page.wait_until("!svg.querySelector('.found')")?;

    page.evaluate("window.prompt = () => 'a(b'")?;
    page.point("button('Search')", true)?;
    page.wait_until("Boolean(button('Unterminated group'))")?;
    page.point("named('alpha').querySelector('rect')", true)?;
    page.press("Escape")?;
    page.wait_until("isShown('beta') && !button('Unterminated group')")
}

fn fits(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["inlines-v0", "300"]).run_well()?;
    let file = recorded.path.display().to_string();
    for options in [&[][..], &["--inverted"], &["--chart"], &["--before", &file]] {
        let picture = test.fresh("picture.svg");
        let output = picture.display().to_string();
        test.nyquist(&["flamegraph", &file, "-o", &output]).args(options).run()?.succeeded()?;
        let mut page = Page::open(test, &picture, 800, 600)?;
        page.evaluate(HELPERS)?;
        for width in [800, 1600, 400] {
            page.resize(width, 600)?;
            page.wait_until(&format!("Math.abs(svg.viewBox.baseVal.width - {width}) < 20"))?;
            expect_eq(&format!("{options:?} at {width}"), page.evaluate("texts()")?, true.into())?;
        }
        let axis = page.evaluate("svg.querySelectorAll('.axis text').length")?.as_u64().unwrap_or(0);
        expect_eq("an axis of times", axis > 0, options == ["--chart"])?;
        // The title of a box is visible, even if the box is far down.
        page.resize(800, 100)?;
        page.evaluate("window.scrollTo(0, 10000)")?;
        page.wait_until("Math.abs(svg.querySelector('.title').getBoundingClientRect().y) < 20")?;
    }
    Ok(())
}

fn page_in_browser(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let file = test.path("page.html");
    let (profile, output) = (recorded.path.display().to_string(), file.display().to_string());
    test.nyquist(&["export", &profile, "-o", &output]).run()?.succeeded()?;
    let mut page = Page::open(test, &file, 800, 300)?;
    page.evaluate(HELPERS)?;
    expect_eq("texts in their boxes", page.evaluate("texts()")?, true.into())?;
    for width in [800, 400] {
        page.resize(width, 300)?;
        page.wait_until(&format!("innerWidth === {width}"))?;
        page.wait_until("document.documentElement.scrollWidth <= innerWidth")?;
        page.wait_until(
            "svg.querySelector('.title').getBoundingClientRect().right < button('Search').getBoundingClientRect().left",
        )?;
    }
    let first = "document.querySelector('tbody td.name').textContent";
    expect_eq("the hottest", page.evaluate(first)?, "alpha".into())?;
    page.point("document.querySelector('th[data-sort=total]')", true)?;
    page.wait_until(&format!("{first} !== 'alpha'"))?;
    page.point("document.querySelector('th[data-sort=own]')", true)?;
    page.wait_until(&format!("{first} === 'alpha'"))?;
    page.point("named('alpha').querySelector('rect')", true)?;
    page.wait_until("isShown('alpha') && !isShown('beta')")
}

fn with_recording(test: &Context<'_>) -> Verdict {
    let picture = test.path("own.svg").display().to_string();
    test.record(&["shares", "300"]).options(&["--flamegraph", &picture]).run_well()?;
    expect(share_of(&boxes(&fs::read_to_string(picture)?)?, "alpha") > 0.3, "alpha is not drawn")
}

/// The sequence that leaves the alternate screen (xterm's private mode 1049), and that which ends the reports of the
/// mouse (mode 1000).
const LEAVE: &str = "\u{1b}[?1049l";
const MOUSE_OFF: &str = "\u{1b}[?1000l";

/// The profile is known: `main` has all of the time, its callees three parts of four and one of four.
fn in_terminal(test: &Context<'_>) -> Verdict {
    let profile = test.path("known.folded");
    fs::write(&profile, "main;alpha;deep 750\nmain;beta 250\n")?;
    let start = || {
        let call = test.nyquist(&["report", "--flame"]).path(&profile);
        call.env("LANG", "C.UTF-8").env("TERM", "xterm").on_terminal().start()
    };
    let mut running = start()?;
    let before = running.terminal_settings_before();
    running.wait_until_on_screen("▏alpha")?;
    running.wait_until_on_screen("100.0% 1,000")?;
    expect(running.terminal_settings() != before, "the terminal was not taken over")?;
    running.press("j")?;
    running.wait_until_on_screen("75.0% 750")?;
    running.press("l")?;
    running.wait_until_on_screen("25.0% 250, self 25.0%  beta")?;
    running.press("\r")?;
    running.wait_until_on_screen("in beta")?;
    running.press("u/DEE")?;
    running.wait_until_on_screen("/DEE")?;
    running.press("\r")?;
    running.wait_until_on_screen("\"DEE\": 75.0%")?;
    running.wait_until_on_screen("self 75.0%  deep")?;
    // A press of the left button on the third line, where `alpha` is, and one on the selected box, which zooms.
    running.press("\u{1b}[<0;5;3M\u{1b}[<0;5;3m")?;
    running.wait_until_on_screen("75.0% 750  alpha")?;
    running.press("\u{1b}[<0;5;3M\u{1b}[<0;5;3m")?;
    running.wait_until_on_screen("in alpha")?;
    running.press("?")?;
    running.wait_until_on_screen("zoom into the selected box")?;
    running.press("xq")?;
    expect_given_back(&running, &before)?;
    expect_eq("the status", running.wait()?.code(), 0)?;
    let running = start()?;
    running.wait_until_on_screen("▏alpha")?;
    running.signal(libc::SIGTERM)?;
    expect_given_back(&running, &before)?;
    expect_eq("the status after a signal", running.wait()?.code(), 128 + libc::SIGTERM)
}

/// Checks that the terminal has its earlier settings and its screen, and reports no mouse any more.
fn expect_given_back(running: &Running<'_>, before: &str) -> Verdict {
    running.wait_until("the terminal to be as it was", || running.terminal_settings() == before)?;
    running.wait_until("the screen to be left", || running.shown_so_far().contains(LEAVE))?;
    expect_contains("what the terminal got", &running.shown_so_far(), MOUSE_OFF)
}

fn as_text(test: &Context<'_>) -> Verdict {
    let profile = test.path("known.folded");
    fs::write(&profile, "main;alpha;deep 750\nmain;beta 250\n")?;
    let call = test.nyquist(&["report", "--flame"]).path(&profile);
    let text = call.env("LC_ALL", "C").run()?.succeeded()?.stdout_text();
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with('|')).collect();
    let alpha = format!("|alpha{}|beta", " ".repeat(69));
    expect_eq("the lines", lines, vec!["|main", alpha.as_str(), "|deep"])?;
    let call = test.nyquist(&["report", "--flame", "--depth", "1"]).path(&profile);
    expect_contains("what is left out", &call.run()?.succeeded()?.stdout_text(), "2 more levels")?;
    let refused = test.nyquist(&["report", "--flame", "--json"]).path(&profile).run()?;
    expect_eq("JSON", refused.code(), 2)
}
