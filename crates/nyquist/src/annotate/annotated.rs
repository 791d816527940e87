//! A function with its places, source and code, prepared for output.

use super::listing::Listing;
use crate::args::AnnotateArgs;
use crate::finder::finder;
use crate::printer::Printer;
use crate::scale::Scale;
use crate::text::{Names, Screen};
use crate::watch::Watch;
use nyquist_analysis::schema::Whole;
use nyquist_analysis::{PlaceWeights, View, inlined_into};
use nyquist_profile::{FuncId, Profile};
use std::collections::BTreeSet;

/// A function with its places, source and code.
pub(super) struct AnnotatedFunction<'a> {
    pub(super) args: &'a AnnotateArgs,
    pub(super) profile: &'a Profile,
    /// The function. It is a set, because a function may have several entries, such as one per lib.
    pub(super) funcs: BTreeSet<FuncId>,
    pub(super) places: PlaceWeights,
    pub(super) listing: Listing,
    pub(super) scale: Scale,
    pub(super) whole: Whole,
    pub(super) screen: Screen,
    pub(super) names: Names,
}

impl<'a> AnnotatedFunction<'a> {
    pub(super) fn new(view: &View<'a>, funcs: &[FuncId], args: &'a AnnotateArgs) -> Self {
        let profile = view.profile();
        let funcs: BTreeSet<_> = funcs.iter().copied().collect();
        let places = view.places(&funcs);
        let finder = finder(&args.read.symbols, Watch::new(Printer::new(args.read.verbosity), None));
        let listing = Listing::new(profile, &places, &funcs, args, &finder);
        Self {
            args,
            profile,
            funcs,
            places,
            listing,
            scale: Scale::of(view),
            whole: Whole::of(view),
            screen: Screen::of_stdout(),
            names: args.format.names(),
        }
    }

    /// The compiled functions that hold it, if it was inlined.
    pub(super) fn inlined_into(&self) -> Vec<&str> {
        let into = inlined_into(self.profile, |func| self.funcs.contains(&func));
        into.into_iter().map(|func| self.profile.func_name(func)).collect()
    }

    pub(super) fn name(&self) -> &str {
        self.funcs.first().map_or("", |&func| self.profile.func_name(func))
    }
}
