//! Text for users: names, tables, trees, and the terminal that shows them.

mod bars;
mod escaped;
mod names;
mod screen;
mod style;
mod table;

pub(crate) use bars::bar;
pub(crate) use escaped::{Text, one_line};
pub(crate) use names::Names;
pub(crate) use screen::Screen;
pub(crate) use style::Style;
pub(crate) use table::{Cell, Column, Table, cut, cut_name};
