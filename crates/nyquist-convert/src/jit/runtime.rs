//! The names that runtimes give to their code: the parts of the names, and the categories of the code.
//!
//! Sources: V8's `src/logging/code-events.h` (code tags) and `Code::CodeKindToMarker`; CPython's
//! documentation, "Python support for the Linux perf profiler"; .NET's `PerfMapEnabled` and the runtime's
//! `perfmap.cpp` (tiers in brackets); the JVM's `Compiler.perfmap` (`CodeCache::write_perf_map`); LuaJIT's
//! `perftools_addtrace` in `lj_trace.c`; Wasmtime's `profiling_agent`.

use nyquist_profile::CategoryColor;

/// The parts of the name of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeName<'a> {
    /// The function.
    pub(crate) function: &'a str,
    /// The file that it is defined in.
    pub(crate) file: Option<&'a str>,
    /// The line and the column in it.
    pub(crate) position: (Option<u32>, Option<u32>),
    /// The runtime.
    pub(crate) runtime: Runtime,
    /// How the code was made.
    pub(crate) tier: Option<&'a str>,
    /// Whether it is a function that scripts call like a script function.
    pub(crate) is_js: bool,
}

/// The runtime that made a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    JavaScript,
    Python,
    DotNet,
    Java,
    Lua,
    WebAssembly,
    Unknown,
}

impl Runtime {
    /// The name and the colour of the category of its code of a tier. Tiers that differ in speed have their
    /// own, because graphs are drawn in the colours of categories.
    pub(crate) fn category(self, tier: Option<&str>) -> (&'static str, CategoryColor) {
        match self {
            Self::JavaScript => match tier {
                Some("Interpreter") => ("JavaScript (interpreter)", CategoryColor::Red),
                Some("Baseline") => ("JavaScript (baseline)", CategoryColor::Blue),
                Some("Maglev") => ("JavaScript (Maglev)", CategoryColor::LightBlue),
                Some("Optimized") => ("JavaScript (optimized)", CategoryColor::Green),
                Some("Builtin") => ("JavaScript (builtin)", CategoryColor::Brown),
                Some("RegExp") => ("JavaScript (RegExp)", CategoryColor::LightRed),
                _ => ("JavaScript (other)", CategoryColor::Purple),
            },
            Self::DotNet => match tier {
                Some("Tier0" | "QuickJitted" | "MinOptJitted") => (".NET (quick)", CategoryColor::Blue),
                Some("Tier1" | "OptimizedTier1" | "OptimizedTier1OSR" | "Optimized") => {
                    (".NET (optimized)", CategoryColor::Green)
                }
                Some("PreJIT" | "ReadyToRun") => (".NET (precompiled)", CategoryColor::Brown),
                _ => (".NET (instrumented)", CategoryColor::Purple),
            },
            Self::WebAssembly => match tier {
                Some("Liftoff") => ("WebAssembly (Liftoff)", CategoryColor::Purple),
                _ => ("WebAssembly", CategoryColor::Magenta),
            },
            Self::Python => ("Python", CategoryColor::Green),
            Self::Java => ("Java", CategoryColor::Red),
            Self::Lua => ("Lua", CategoryColor::DarkGrey),
            Self::Unknown => ("JIT", CategoryColor::LightBlue),
        }
    }
}

impl<'a> CodeName<'a> {
    /// Splits a name into its parts.
    pub(crate) fn parse(name: &'a str) -> Self {
        let parsers = [parse_v8, parse_python, parse_dot_net, parse_java, parse_lua, parse_wasm];
        parsers.iter().find_map(|parse| parse(name)).unwrap_or(Self::plain(name, Runtime::Unknown))
    }

    fn plain(function: &'a str, runtime: Runtime) -> Self {
        Self { function, file: None, position: (None, None), runtime, tier: None, is_js: false }
    }
}

/// `JS:*fib /tmp/x.js:1:13`: a tag, a mark for the tier, the function, and where it is.
fn parse_v8(name: &str) -> Option<CodeName<'_>> {
    let (tag, rest) = name.split_once(':')?;
    let code = CodeName::plain(rest, Runtime::JavaScript);
    match tag {
        "JS" | "LazyCompile" | "Function" | "Script" | "Eval" => {}
        "Builtin" | "BytecodeHandler" | "Handler" | "Stub" => {
            return Some(CodeName { tier: Some("Builtin"), ..code });
        }
        "RegExp" => return Some(CodeName { tier: Some("RegExp"), function: name, ..code }),
        _ => return None,
    }
    if let Some(code) = parse_v8_wasm(rest) {
        return Some(code);
    }
    // On-stack replacement: code that took over in the middle of a loop.
    let rest = rest.strip_prefix('o').filter(|rest| rest.starts_with(['+', '*'])).unwrap_or(rest);
    let (tier, rest) = match rest.split_at_checked(1) {
        Some(("~", rest)) => (Some("Interpreter"), rest),
        Some(("^", rest)) => (Some("Baseline"), rest),
        Some(("+", rest)) => (Some("Maglev"), rest),
        Some(("*", rest)) => (Some("Optimized"), rest),
        _ => (None, rest),
    };
    // The mark of a function that was compiled for one context alone. No name begins with it.
    let rest = rest.strip_prefix('\'').unwrap_or(rest);
    let (function, place) = rest.split_once(' ').unwrap_or((rest, ""));
    let (file, position) = split_position(place);
    let function = match (function, tag) {
        ("", "Script") => "(script)",
        ("", "Eval") => "(eval)",
        ("", _) => "(anonymous)",
        _ => function,
    };
    let file = Some(file).filter(|file| !file.is_empty());
    Some(CodeName { function, file, position, tier, is_js: true, ..code })
}

/// `wasm-function[12]-12-turbofan`: a function of WebAssembly, its number, and its compiler. Scripts call it
/// like a script function.
fn parse_v8_wasm(name: &str) -> Option<CodeName<'_>> {
    let (rest, compiler) = name.rsplit_once('-')?;
    let tier = match compiler {
        "liftoff" => "Liftoff",
        "turbofan" => "Optimized",
        _ => return None,
    };
    let (function, number) = rest.rsplit_once('-')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let code = CodeName::plain(function, Runtime::WebAssembly);
    is_number.then_some(CodeName { tier: Some(tier), is_js: true, ..code })
}

/// `FILE:LINE:COLUMN` or `FILE:LINE`.
fn split_position(place: &str) -> (&str, (Option<u32>, Option<u32>)) {
    let split = |text: &'_ str| {
        text.rsplit_once(':').and_then(|(rest, number)| Some((rest.len(), number.parse().ok()?)))
    };
    match split(place) {
        None => (place, (None, None)),
        Some((end, last)) => match split(&place[..end]) {
            None => (&place[..end], (Some(last), None)),
            Some((file, line)) => (&place[..file], (Some(line), Some(last))),
        },
    }
}

/// `py::function:/path/to/file.py`
fn parse_python(name: &str) -> Option<CodeName<'_>> {
    let (function, file) = name.strip_prefix("py::")?.split_once(':')?;
    Some(CodeName { file: Some(file), ..CodeName::plain(function, Runtime::Python) })
}

/// `int32 [app] Program::Fib(int32)[OptimizedTier1]`
fn parse_dot_net(name: &str) -> Option<CodeName<'_>> {
    const TIERS: [&str; 10] = [
        "Tier0",
        "Tier1",
        "OptimizedTier1",
        "OptimizedTier1OSR",
        "QuickJitted",
        "MinOptJitted",
        "Optimized",
        "PreJIT",
        "ReadyToRun",
        "Instrumented",
    ];
    let (function, tier) = name.strip_suffix(']')?.rsplit_once('[')?;
    let is_tier = TIERS.contains(&tier) || tier.starts_with("Instrumented");
    is_tier.then(|| CodeName { tier: Some(tier), ..CodeName::plain(function, Runtime::DotNet) })
}

/// `int Hot.fib(int)`; the agents' `Lcom/foo/Bar;::method`; and the parts of the virtual machine itself.
fn parse_java(name: &str) -> Option<CodeName<'_>> {
    let code = CodeName::plain(name, Runtime::Java);
    if matches!(name, "Interpreter" | "call_stub" | "StubRoutines (1)" | "StubRoutines (2)") {
        return Some(CodeName { tier: Some("Virtual machine"), ..code });
    }
    let is_agents = name.starts_with('L') && name.contains(";::");
    let signature = name.strip_suffix(')').and_then(|head| head.split_once('(')).map(|(head, _)| head);
    let is_method = signature.is_some_and(|head| {
        head.split_once(' ').is_some_and(|(kind, method)| {
            !kind.is_empty() && method.contains('.') && !method.contains([' ', ':'])
        })
    });
    (is_agents || is_method).then_some(code)
}

/// `TRACE_12::/path/to/file.lua:34`: a trace, and where it begins.
fn parse_lua(name: &str) -> Option<CodeName<'_>> {
    let (number, place) = name.strip_prefix("TRACE_")?.split_once("::")?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (file, position) = split_position(place);
    Some(CodeName { file: Some(file), position, tier: Some("Trace"), ..CodeName::plain(name, Runtime::Lua) })
}

/// `wasm[0]::function[12]::name`, `wasm-function[12]`
fn parse_wasm(name: &str) -> Option<CodeName<'_>> {
    let is_wasm =
        name.starts_with("wasm[") || name.starts_with("wasm-function[") || name.starts_with("wasm::");
    is_wasm.then(|| CodeName::plain(name, Runtime::WebAssembly))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_have_their_own_categories_and_colours() {
        let names = ["JS:~f", "JS:^f", "JS:+f", "JS:*f", "Builtin:f", "RegExp:f", "JS:f"];
        let categories = names.map(|name| {
            let code = CodeName::parse(name);
            code.runtime.category(code.tier)
        });
        for (at, (name, color)) in categories.iter().enumerate() {
            assert!(name.starts_with("JavaScript ("), "{name}");
            let others = categories.iter().enumerate().filter(|(other, _)| *other != at);
            assert!(others.clone().all(|(_, other)| other.0 != *name && other.1 != *color), "{name}");
        }
        let dot_net = |tier| CodeName::parse(tier).runtime.category(CodeName::parse(tier).tier).0;
        assert_eq!(dot_net("void P::F()[Tier0]"), ".NET (quick)");
        assert_eq!(dot_net("void P::F()[OptimizedTier1]"), ".NET (optimized)");
        assert_eq!(dot_net("void P::F()[ReadyToRun]"), ".NET (precompiled)");
        assert_eq!(dot_net("void P::F()[InstrumentedTier0]"), ".NET (instrumented)");
    }

    type LinePosition = (Option<u32>, Option<u32>);

    const NOWHERE: LinePosition = (None, None);

    /// Checks the parts of a name; an empty file or tier is none.
    #[track_caller]
    fn check(
        name: &str,
        function: &str,
        file: &str,
        position: LinePosition,
        runtime: Runtime,
        tier: &'static str,
    ) {
        let parsed = CodeName::parse(name);
        let tier = Some(tier).filter(|tier| !tier.is_empty());
        let file = Some(file).filter(|file| !file.is_empty());
        let is_js = parsed.is_js;
        assert_eq!(parsed, CodeName { function, file, position, runtime, tier, is_js }, "{name}");
        let is_v8s = name.starts_with("JS:") || matches!(function, "multiply" | "(script)");
        assert_eq!(is_js, is_v8s, "{name}");
    }

    #[test]
    fn javascript_names_are_parsed() {
        let at = |line, column| (Some(line), Some(column));
        let js = Runtime::JavaScript;
        check("JS:*fib /tmp/x.js:1:13", "fib", "/tmp/x.js", at(1, 13), js, "Optimized");
        let (name, file) = ("LazyCompile:~multiply file:///a b.mjs:2:24", "file:///a b.mjs");
        check(name, "multiply", file, at(2, 24), js, "Interpreter");
        check("JS:+'fib file:///a.html:2:13", "fib", "file:///a.html", at(2, 13), js, "Maglev");
        check("JS:^ /tmp/x.js:5:1", "(anonymous)", "/tmp/x.js", at(5, 1), js, "Baseline");
        check("Script:~ /tmp/x.js:1:1", "(script)", "/tmp/x.js", at(1, 1), js, "Interpreter");
        check("JS:o*fib /tmp/x.js:1:13", "fib", "/tmp/x.js", at(1, 13), js, "Optimized");
        check("JS:o /tmp/x.js:1:13", "o", "/tmp/x.js", at(1, 13), js, "");
        check("Builtin:ArrayMap", "ArrayMap", "", NOWHERE, js, "Builtin");
        check("RegExp:a+b", "RegExp:a+b", "", NOWHERE, js, "RegExp");
    }

    #[test]
    fn web_assembly_names_are_parsed() {
        let wasm = Runtime::WebAssembly;
        check("JS:wasm-function[5]-5-turbofan", "wasm-function[5]", "", NOWHERE, wasm, "Optimized");
        check("JS:Heap.push-2761-liftoff", "Heap.push", "", NOWHERE, wasm, "Liftoff");
        check("wasm[0]::function[12]::sum", "wasm[0]::function[12]::sum", "", NOWHERE, wasm, "");
    }

    #[test]
    fn runtime_names_are_parsed() {
        check("py::main:/srv/app.py", "main", "/srv/app.py", NOWHERE, Runtime::Python, "");
        let (name, function) = ("int32 [app] P::Fib(int32)[Tier0]", "int32 [app] P::Fib(int32)");
        check(name, function, "", NOWHERE, Runtime::DotNet, "Tier0");
        check("int Hot.fib(int)", "int Hot.fib(int)", "", NOWHERE, Runtime::Java, "");
        check("Interpreter", "Interpreter", "", NOWHERE, Runtime::Java, "Virtual machine");
        check("Lcom/foo/Bar;::run", "Lcom/foo/Bar;::run", "", NOWHERE, Runtime::Java, "");
        let name = "TRACE_7::/srv/x.lua:12";
        check(name, name, "/srv/x.lua", (Some(12), None), Runtime::Lua, "Trace");
    }

    #[test]
    fn names_of_no_runtime_stay() {
        for name in ["TRACE_x::y", "operator new(unsigned long)", "std::vector<int>::f(int)", ""] {
            check(name, name, "", NOWHERE, Runtime::Unknown, "");
        }
    }
}
