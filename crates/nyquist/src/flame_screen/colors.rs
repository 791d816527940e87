//! The colours of boxes, as far as a terminal can show them.

use nyquist_formats::flame::Color as FlameColor;
use ratatui::style::Color;
use std::env;

/// The colours that a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColorDepth {
    None,
    /// The sixteen of every terminal.
    Basic,
    /// The cube of 216 colours of xterm.
    Cube,
    /// Red, green and blue.
    Full,
}

impl ColorDepth {
    /// Those of this terminal, as its variables say.
    pub(crate) fn of_terminal() -> Self {
        let variable = |name| env::var(name).unwrap_or_default();
        Self::by(&variable("COLORTERM"), &variable("TERM"))
    }

    fn by(colorterm: &str, term: &str) -> Self {
        match (colorterm, term) {
            ("truecolor" | "24bit", _) => Self::Full,
            (_, "linux" | "dumb" | "" | "vt100" | "ansi") => Self::Basic,
            _ => Self::Cube,
        }
    }

    /// The colour as the terminal can show it.
    pub(crate) fn of(self, color: FlameColor) -> Option<Color> {
        let [red, green, blue] = color.rgb();
        match self {
            Self::None => None,
            Self::Basic => Some(if green > 170 { Color::Yellow } else { Color::LightRed }),
            Self::Cube => Some(Color::Indexed(16 + 36 * step(red) + 6 * step(green) + step(blue))),
            Self::Full => Some(Color::Rgb(red, green, blue)),
        }
    }
}

/// The nearest of the six values of xterm's cube: 0, 95, 135, 175, 215, 255.
fn step(value: u8) -> u8 {
    match value {
        0..48 => 0,
        48..115 => 1,
        _ => (value - 35) / 40,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_formats::flame::FlameColors;

    #[test]
    fn the_variables_say_which_colours_there_are() {
        let check = |colorterm, term, expected| assert_eq!(ColorDepth::by(colorterm, term), expected);
        check("truecolor", "xterm-256color", ColorDepth::Full);
        check("", "xterm-256color", ColorDepth::Cube);
        check("", "linux", ColorDepth::Basic);
    }

    #[test]
    fn the_nearest_colour_of_the_cube_is_used() {
        assert_eq!([0, 95, 135, 175, 215, 255].map(step), [0, 1, 2, 3, 4, 5]);
        assert_eq!([40, 60, 118, 250].map(step), [0, 1, 2, 5]);
        let color = FlameColors::of_function("main");
        assert!(matches!(ColorDepth::Cube.of(color), Some(Color::Indexed(16..=231))));
        assert_eq!(ColorDepth::None.of(color), None);
    }
}
