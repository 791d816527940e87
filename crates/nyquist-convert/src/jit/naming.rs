//! Gives frames of code that was generated at run time their functions.

use crate::jit::runtime::CodeName;
use crate::jit::symbols::JitSymbols;
use nyquist_object::RelativeAddress;
use nyquist_profile::{
    CategoryPair, Frame, FrameId, Func, FuncId, FuncKind, LibId, NativeSymbol, ProfileBuilder, Source,
};
use nyquist_symbols::special_source_path;

/// The frame with its function and category. If the compiler has named nothing there, its absolute address is
/// the name.
pub(crate) fn name_frame(
    builder: &mut ProfileBuilder,
    symbols: &JitSymbols,
    lib: LibId,
    frame: &Frame,
) -> Option<FrameId> {
    let address = RelativeAddress(frame.address?);
    let Some(function) = symbols.find(address) else {
        let name = builder.intern_string(&format!("{:#x}", symbols.avma(address)?.0));
        let func = Func::new(name, Some(lib));
        let func = builder.intern_func(func);
        return Some(builder.intern_frame(Frame { func, ..*frame }));
    };
    if symbols.is_plain() {
        let name = builder.intern_string(function.name);
        let func = builder.intern_func(Func::new(name, Some(lib)));
        let native_symbol = function.start.map(|start| {
            let symbol = NativeSymbol { lib, address: start.0, size: Some(function.size), name };
            builder.intern_native_symbol(symbol)
        });
        return Some(builder.intern_frame(Frame { func, native_symbol, ..*frame }));
    }
    let name = CodeName::parse(function.name);
    let file = name.file.or(function.line.map(|(file, _)| file));
    let func = func(builder, lib, &name, file);
    let native_symbol = function.start.map(|start| {
        let name = builder.intern_string(function.name);
        builder.intern_native_symbol(NativeSymbol { lib, address: start.0, size: Some(function.size), name })
    });
    let category = Some(category(builder, &name));
    // If the compiler has inlined code from another file, only its line is known, and not its function. So
    // the line is not used.
    let line = function.line.filter(|(line_file, _)| file == Some(*line_file)).map(|(_, line)| line);
    Some(builder.intern_frame(Frame { func, category, native_symbol, line, ..*frame }))
}

fn func(builder: &mut ProfileBuilder, lib: LibId, name: &CodeName<'_>, file: Option<&str>) -> FuncId {
    let source = file.map(|file| {
        let filename = builder.intern_string(&special_source_path(file));
        builder.intern_source(Source { filename })
    });
    let (line, column) = name.position;
    let kind = if name.is_js { FuncKind::JavaScript } else { FuncKind::Native };
    let name = builder.intern_string(name.function);
    builder.intern_func(Func { source, line, column, kind, ..Func::new(name, Some(lib)) })
}

fn category(builder: &mut ProfileBuilder, name: &CodeName<'_>) -> CategoryPair {
    let (category, color) = name.runtime.category(name.tier);
    let category = builder.add_category(category, color);
    let subcategory = name.tier.map_or(0, |tier| builder.add_subcategory(category, tier));
    CategoryPair { category, subcategory }
}
