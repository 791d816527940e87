//! Functions by address, in memory.

/// Functions by address, at most one for each address.
#[derive(Debug, Default)]
pub(crate) struct FunctionTable {
    pub(crate) functions: Vec<KernelFunction>,
    /// Bytes with all names in them.
    pub(crate) names: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelFunction {
    pub(crate) start: u64,
    /// The offset of its name in `names`, and its length.
    pub(crate) name: (u32, u16),
    /// Its module's number.
    pub(crate) module: u16,
}

/// The function at or before an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NearestFunction<'a> {
    pub(crate) start: u64,
    pub(crate) name: &'a [u8],
    /// Its module's number.
    pub(crate) module: u16,
    /// The start of the next function, and its module's number.
    pub(crate) next: Option<(u64, u16)>,
}

impl FunctionTable {
    pub(crate) fn around(&self, address: u64) -> Option<NearestFunction<'_>> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        let next = self.functions.get(after).map(|next| (next.start, next.module));
        Some(NearestFunction {
            start: function.start,
            name: self.name(function),
            module: function.module,
            next,
        })
    }

    pub(crate) fn name(&self, function: &KernelFunction) -> &[u8] {
        let start = function.name.0 as usize;
        self.names.get(start..start + usize::from(function.name.1)).unwrap_or_default()
    }
}

impl NearestFunction<'_> {
    /// Whether functions of the same module are on both sides, so that no other module can be between them.
    pub(crate) fn is_inside_module(&self) -> bool {
        self.next.is_some_and(|(_, module)| module == self.module)
    }
}
