//! Renames functions.

use crate::builder::{CodeTables, ProfileBuilder};
use crate::code::{Frame, Func, FuncKind, NativeSymbol, Stack};
use crate::id::{FrameId, FuncId, NativeSymbolId, StackId, StringId};
use crate::profile::Profile;

impl Profile {
    /// Renames functions, except those of scripts, and symbols, if `rename` returns a name. Functions that
    /// become equal are merged. O(functions × length of their names + frames + stacks + samples). If no
    /// name changes, nothing is done.
    #[must_use]
    pub fn with_functions_renamed(self, rename: impl Fn(&str) -> Option<String>) -> Self {
        let strings = self.strings();
        let is_named = |id: StringId| rename(&strings[id]).is_some();
        let has_named = self.funcs().iter().filter(|func| is_native(func)).any(|func| is_named(func.name))
            || self.native_symbols().iter().any(|symbol| is_named(symbol.name));
        if !has_named {
            return self;
        }
        let (mut builder, code) = ProfileBuilder::rebuild(self);
        let stacks = rebuilt_stacks(&mut builder, code, &rename);
        builder.remap_stacks(|stack| stacks.get(stack.index()).copied());
        builder.finish()
    }
}

fn is_native(func: &Func) -> bool {
    func.kind == FuncKind::Native
}

/// Builds all tables again, and returns the new id of each stack.
fn rebuilt_stacks(
    builder: &mut ProfileBuilder,
    code: CodeTables,
    rename: &impl Fn(&str) -> Option<String>,
) -> Vec<StackId> {
    let name = |builder: &mut ProfileBuilder, id: StringId| {
        let new = rename(builder.profile().string(id));
        new.map_or(id, |new| builder.intern_string(&new))
    };
    let func = |func: Func| {
        let name = if is_native(&func) { name(builder, func.name) } else { func.name };
        builder.intern_func(Func { name, ..func })
    };
    let funcs: Vec<FuncId> = code.funcs.into_iter().map(func).collect();
    let symbol = |symbol: NativeSymbol| {
        let name = name(builder, symbol.name);
        builder.intern_native_symbol(NativeSymbol { name, ..symbol })
    };
    let symbols: Vec<NativeSymbolId> = code.native_symbols.into_iter().map(symbol).collect();
    let frame = |frame: Frame| {
        let native_symbol = frame.native_symbol.map(|symbol| symbols[symbol.index()]);
        builder.intern_frame(Frame { func: funcs[frame.func.index()], native_symbol, ..frame })
    };
    let frames: Vec<FrameId> = code.frames.into_iter().map(frame).collect();
    let mut stacks: Vec<StackId> = Vec::with_capacity(code.stacks.len());
    for Stack { prefix, frame } in code.stacks {
        let prefix = prefix.map(|prefix| stacks[prefix.index()]);
        stacks.push(builder.intern_stack(prefix, frames[frame.index()]));
    }
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Meta, Process, Sample, Thread};

    #[test]
    fn functions_of_one_name_become_one() {
        let mut builder = ProfileBuilder::new(Meta::default());
        let process = builder.add_process(Process { pid: "7".into(), ..Process::default() });
        let thread = builder.add_thread(Thread::new(process, "7", "app"));
        let main = builder.intern_label(None, "main", None);
        for (time, name) in [(1, "_f1"), (2, "_f2"), (3, "other")] {
            let stack = builder.intern_label(Some(main), name, None);
            builder.add_sample(thread, Sample::new(time, Some(stack), 1));
        }
        let profile = builder.finish();
        let renamed =
            profile.clone().with_functions_renamed(|name| name.starts_with("_f").then(|| "f".to_owned()));
        let names: Vec<String> = renamed.threads()[0]
            .samples
            .iter()
            .map(|sample| {
                let frames = sample.stack.into_iter().flat_map(|stack| renamed.stack_frames(stack));
                frames.map(|frame| renamed.func_name(frame.func)).collect::<Vec<_>>().join("<")
            })
            .collect();
        assert_eq!(names, ["f<main", "f<main", "other<main"]);
        assert_eq!((renamed.funcs().len(), renamed.stacks().len()), (3, 3));
        assert_eq!(profile.clone().with_functions_renamed(|_| None), profile);
    }
}
