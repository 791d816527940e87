//! Combines all sources of files.

use crate::{Debuginfod, Observer, SymbolStores};
use nyquist_symbols::{AttemptOutcome, Fetch, FetchResult, RemoteFile};
use std::path::Path;
use std::sync::Arc;

/// The source from which a [`nyquist_symbols::Finder`] gets files that are not on this machine.
#[derive(Debug)]
pub struct Downloads {
    debuginfod: Option<Debuginfod>,
    stores: Option<SymbolStores>,
    observer: Arc<dyn Observer>,
}

impl Downloads {
    /// A combination of these sources; `None` if there are none.
    pub fn new(
        debuginfod: Option<Debuginfod>,
        stores: Option<SymbolStores>,
        observer: Arc<dyn Observer>,
    ) -> Option<Self> {
        let has_any = debuginfod.is_some() || stores.is_some();
        has_any.then_some(Self { debuginfod, stores, observer })
    }
}

impl Fetch for Downloads {
    fn fetch(&self, file: &RemoteFile<'_>, check: &dyn Fn(&Path) -> AttemptOutcome) -> FetchResult {
        let observer = &*self.observer;
        let debuginfod = self.debuginfod.as_ref().map(|it| it.fetch(file, check, observer));
        let stores = self.stores.as_ref().map(|it| it.fetch(file, check, observer));
        // No kind of file is in both.
        let mut fetched = debuginfod.unwrap_or_default();
        if let Some(stores) = stores {
            fetched.path = fetched.path.or(stores.path);
            fetched.tried.extend(stores.tried);
        }
        fetched
    }
}
