//! Opens files of other processes safely, and determines their owners.

pub(crate) mod identity;
pub(crate) mod macho;
pub(crate) mod marker_file;
pub(crate) mod opened;
pub(crate) mod roots;
pub(crate) mod view;
