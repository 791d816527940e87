//! Files of other processes: opened safely, and whose they are.

pub(crate) mod identity;
pub(crate) mod macho;
pub(crate) mod opened;
pub(crate) mod roots;
pub(crate) mod view;
