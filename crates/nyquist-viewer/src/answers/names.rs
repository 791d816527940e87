//! `names`: the other names of a function's code. The linker folds functions with the same code into one, so that
//! samples may be of any of them.

use std::collections::BTreeSet;

use nyquist_object::RelativeAddress;
use nyquist_server::ViewerError;
use serde::Serialize;

use super::context::QueryContext;
use super::source::key;
use crate::selection::function;

/// The number of symbols whose names are read: a function has more than one if several libs contain it.
const MAX_SYMBOLS: usize = 4;

/// The number of names of a response: as many as a tooltip can hold.
const MAX_NAMES: usize = 10;

#[derive(Debug, Serialize)]
pub(super) struct NamesAnswer {
    function: usize,
    count: usize,
    folded: Vec<String>,
}

pub(super) fn answer(context: &QueryContext<'_, '_>) -> Result<NamesAnswer, ViewerError> {
    let number = context.parameters.required("function")?;
    let profile = context.view.profile();
    let func = function(number, profile)?;
    // What is inlined has no name of its own at an address.
    let frames = profile.frames().iter().filter(|frame| frame.func == func && frame.inline_depth == 0);
    let symbols: BTreeSet<_> = frames.filter_map(|frame| frame.native_symbol).collect();
    let mut folded = BTreeSet::new();
    for symbol in symbols.into_iter().take(MAX_SYMBOLS) {
        let symbol = profile.native_symbol(symbol);
        let (lib, start) = (key(profile.lib(symbol.lib)), RelativeAddress(symbol.address));
        folded.extend(context.symbols.folded_names(&lib, start, profile.string(symbol.name)));
    }
    Ok(NamesAnswer {
        function: number,
        count: folded.len(),
        folded: folded.into_iter().take(MAX_NAMES).collect(),
    })
}
