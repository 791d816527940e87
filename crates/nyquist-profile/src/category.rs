//! Categories: the kinds of code and of markers, each with a colour.

use serde::Serialize;

use crate::id::CategoryId;
use crate::named::named;

/// A kind of code, such as User or Kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Category {
    /// Its name.
    pub name: String,
    /// Its colour in graphs.
    pub color: CategoryColor,
    /// Finer kinds; the first is always `Other`.
    pub subcategories: Vec<String>,
}

/// A category and one of its subcategories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CategoryPair {
    /// The category.
    pub category: CategoryId,
    /// The index of its subcategory; 0 is `Other`.
    pub subcategory: u16,
}

impl From<CategoryId> for CategoryPair {
    fn from(category: CategoryId) -> Self {
        Self { category, subcategory: 0 }
    }
}

named! {
    /// The Firefox Profiler's colours of categories.
    CategoryColor {
        /// Transparent.
        Transparent = "transparent",
        /// Purple.
        Purple = "purple",
        /// Green.
        Green = "green",
        /// Orange.
        Orange = "orange",
        /// Yellow.
        Yellow = "yellow",
        /// Light blue.
        LightBlue = "lightblue",
        /// Blue.
        Blue = "blue",
        /// Brown.
        Brown = "brown",
        /// Magenta.
        Magenta = "magenta",
        /// Red.
        Red = "red",
        /// Light red.
        LightRed = "lightred",
        /// Dark grey.
        DarkGrey = "darkgrey",
        /// Grey, which the front end's default category must have.
        Grey = "grey",
    }
}
