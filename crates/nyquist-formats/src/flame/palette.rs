//! The colours of flame graphs. The same name always has the same colour.

use rustc_hash::FxHasher;
use std::fmt;
use std::hash::{Hash as _, Hasher as _};

/// A colour by hue (0 to 359), saturation and lightness (0 to 100).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color {
    hue: u16,
    saturation: u8,
    lightness: u8,
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.rgb();
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl Color {
    /// Red, green and blue. The conversion is that of CSS Color Module Level 4, section 7.
    pub fn rgb(self) -> [u8; 3] {
        let (saturation, lightness) = (f64::from(self.saturation) / 100.0, f64::from(self.lightness) / 100.0);
        let chroma = saturation * lightness.min(1.0 - lightness);
        [0.0, 8.0, 4.0].map(|offset| {
            let k = (offset + f64::from(self.hue) / 30.0) % 12.0;
            let value = lightness - chroma * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
            (value * 255.0).round() as u8
        })
    }
}

/// The colours of boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlameColors;

impl FlameColors {
    /// A warm colour for a function.
    pub fn of_function(name: &str) -> Color {
        let hash = hash(name);
        Color {
            hue: (hash % 48) as u16,
            saturation: 75 + (hash >> 8) as u8 % 20,
            lightness: 62 + (hash >> 16) as u8 % 12,
        }
    }

    /// A colour for each group (a lib, a category): any hue. All functions of a group have the same hue, but
    /// differ in lightness.
    pub fn of_group(group: &str, function: &str) -> Color {
        let lightness = 64 + (hash(function) >> 16) as u8 % 12;
        if group.is_empty() {
            return Color { hue: 0, saturation: 0, lightness };
        }
        Color { hue: (hash(group) % 360) as u16, saturation: 55, lightness }
    }

    /// A colour from blue (`change` is -1) over white to red (1).
    pub fn of_change(change: f64) -> Color {
        let change = if change.is_nan() { 0.0 } else { change.clamp(-1.0, 1.0) };
        let hue = if change < 0.0 { 215 } else { 8 };
        // Small changes are also visible, as differences to white.
        let strength = change.abs().sqrt();
        Color { hue, saturation: (90.0 * strength) as u8, lightness: (94.0 - 36.0 * strength) as u8 }
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    text.hash(&mut hasher);
    // The highest bits are the best mixed ones.
    hasher.finish().swap_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_css() {
        let check = |hue, saturation, lightness, expected: &str| {
            assert_eq!(Color { hue, saturation, lightness }.to_string(), expected);
        };
        check(0, 100, 50, "#ff0000");
        check(120, 100, 25, "#008000");
        check(240, 100, 50, "#0000ff");
        check(0, 0, 100, "#ffffff");
        check(38, 92, 50, "#f59f0a");
    }

    #[test]
    fn a_name_has_one_colour_and_most_others_another() {
        assert_eq!(FlameColors::of_function("main"), FlameColors::of_function("main"));
        let mut colors: Vec<_> =
            (0..50).map(|n| FlameColors::of_function(&format!("f{n}")).to_string()).collect();
        colors.sort();
        colors.dedup();
        assert!(colors.len() > 40, "{}", colors.len());
    }

    #[test]
    fn growth_is_red_and_shrinking_is_blue() {
        assert_eq!(FlameColors::of_change(0.0).saturation, 0);
        assert_eq!(FlameColors::of_change(f64::NAN), FlameColors::of_change(0.0));
        assert_eq!(FlameColors::of_change(7.0), FlameColors::of_change(1.0));
        assert!(FlameColors::of_change(-0.5).hue > 180 && FlameColors::of_change(0.5).hue < 20);
        assert!(FlameColors::of_change(0.5).lightness < FlameColors::of_change(0.1).lightness);
    }
}
