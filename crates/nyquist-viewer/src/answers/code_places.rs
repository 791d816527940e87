//! Where instructions come from: the line of a function, and the inlined function that they are of.

use std::collections::HashMap;

use nyquist_analysis::short_name;
use nyquist_object::RelativeAddress;
use nyquist_profile::{FuncId, Profile};
use nyquist_server::{AddressInfo, LibKey};
use serde::Serialize;

use super::context::QueryContext;

/// Of longer functions, only sampled instructions get their places.
const MAX_SOUGHT: usize = 20_000;

/// A place in the source, of inlined code: a function, its file and its line.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(super) struct InlinedPlace(String, Option<String>, Option<u32>);

/// The places of the instructions of a function.
#[derive(Debug, Default)]
pub(super) struct CodePlaces {
    /// The lines of the function itself, by address.
    lines: HashMap<u32, u32>,
    /// The places of inlined code, by address.
    inlined: HashMap<u32, usize>,
    places: Vec<InlinedPlace>,
    numbers: HashMap<InlinedPlace, usize>,
}

impl CodePlaces {
    /// The places as the debug info has them, and where it is not here, those of the samples.
    pub(super) fn of(context: &QueryContext<'_, '_>, func: FuncId, lib: &LibKey, addresses: &[u32]) -> Self {
        let profile = context.view.profile();
        let mut places = Self { lines: lines_of_samples(profile, func), ..Self::default() };
        if addresses.len() > MAX_SOUGHT {
            return places;
        }
        let sought: Vec<_> = addresses.iter().map(|&address| RelativeAddress(address)).collect();
        let name = context.view.function(func).name;
        for (&address, info) in
            addresses.iter().zip(context.symbols.symbolicate(lib, &sought).unwrap_or_default())
        {
            if let Some(info) = info {
                places.add(address, name, info);
            }
        }
        places
    }

    fn add(&mut self, address: u32, name: &str, info: AddressInfo) {
        let of_function = info.inlines.iter().find(|inline| inline.function.as_deref() == Some(name));
        let is_outermost = info.function == name;
        let line = of_function.map_or(info.line.filter(|_| is_outermost), |inline| inline.line);
        if let Some(line) = line {
            self.lines.entry(address).or_insert(line);
        }
        let Some(innermost) = info.inlines.into_iter().next() else { return };
        if innermost.function.as_deref() == Some(name) {
            return;
        }
        let function =
            innermost.function.map_or_else(|| "?".to_owned(), |name| short_name(&name).into_owned());
        let place = InlinedPlace(function, innermost.file, innermost.line);
        let next = self.places.len();
        let number = *self.numbers.entry(place.clone()).or_insert(next);
        if number == next {
            self.places.push(place);
        }
        self.inlined.insert(address, number);
    }

    /// The line of the function at the first address that has one.
    pub(super) fn line(&self, mut addresses: impl Iterator<Item = u32>) -> Option<u32> {
        addresses.find_map(|address| self.lines.get(&address).copied())
    }

    /// The number of the place of inlined code.
    pub(super) fn inlined(&self, address: u32) -> Option<usize> {
        self.inlined.get(&address).copied()
    }

    /// The places by number.
    pub(super) fn into_places(self) -> Vec<InlinedPlace> {
        self.places
    }
}

/// The lines of the sampled addresses.
fn lines_of_samples(profile: &Profile, func: FuncId) -> HashMap<u32, u32> {
    let frames = profile.frames().iter().filter(|frame| frame.func == func);
    frames.filter_map(|frame| Some((frame.address?, frame.line?))).collect()
}
