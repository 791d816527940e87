//! The part of a profile that is the program's own code: functions of the program itself, without its
//! dependencies.

use crate::scale::Scale;
use crate::text::Names;
use crate::text::cut_name;
use nyquist_analysis::{Function, is_own_code};
use std::path::Path;

/// The number of functions that are named.
const NAMED: usize = 5;

/// With this share of the whole, a function calls nearly everything. Its share carries no information.
const CALLS_ALL: f64 = 0.95;

/// The least share of a function that is named.
const WORTH_A_NAME: f64 = 0.01;

/// The functions of the program's own code with the largest total weights, and their shares. It is empty if
/// there are none. `program` is the name of the recorded program.
pub(crate) fn hottest(
    functions: &[Function<'_>],
    program: &str,
    scale: Scale,
    width: Option<usize>,
) -> String {
    let Some(program) = Path::new(program).file_name().and_then(|name| name.to_str()) else {
        return String::new();
    };
    let is_own = |function: &&Function<'_>| {
        scale.share(function.total.weight) >= WORTH_A_NAME && is_own(function, program)
    };
    let mut own: Vec<_> = functions.iter().filter(is_own).collect();
    own.sort_by_key(|function| std::cmp::Reverse((function.total.weight, function.self_amount.weight)));
    let calls_all = |function: &&&Function<'_>| {
        scale.share(function.total.weight) >= CALLS_ALL
            && scale.share(function.self_amount.weight) < WORTH_A_NAME
    };
    // The last of the functions that call nearly everything is the most informative, if no other can be
    // named.
    let passed = own.iter().take_while(calls_all).count().min(own.len().saturating_sub(1));
    let named = own.iter().skip(passed).take(NAMED).map(|function| {
        let name = Names::Short.show(function.name);
        let name = width.map_or(name.clone(), |width| cut_name(&name, width, true));
        format!("{name} {}", scale.percent(function.total.weight))
    });
    named.collect::<Vec<_>>().join(", ")
}

fn is_own(function: &Function<'_>, program: &str) -> bool {
    is_own_code(function.name, function.lib, function.file, program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_analysis::{Index, Selection, View};
    use nyquist_profile::{Frame, Func, Lib, Meta, Process, ProfileBuilder, Sample, Source, Thread};

    /// A function: its lib, file and name.
    type Named<'a> = (&'a str, &'a str, &'a str);

    /// The result for stacks of functions, each the outermost first, with their weights.
    fn shares_text(stacks: &[(&[Named<'_>], u32)]) -> String {
        let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        for (functions, weight) in stacks {
            let mut stack = None;
            for (lib, file, name) in *functions {
                let lib = builder.add_lib(Lib { name: (*lib).into(), path: (*lib).into(), ..Lib::default() });
                let filename = builder.intern_string(file);
                let source = (!file.is_empty()).then(|| builder.intern_source(Source { filename }));
                let name = builder.intern_string(name);
                let func = builder.intern_func(Func { source, ..Func::new(name, Some(lib)) });
                let frame = builder.intern_frame(Frame::label(func));
                stack = Some(builder.intern_stack(stack, frame));
            }
            builder.add_sample(thread, Sample { weight: *weight, ..Sample::new(0, stack, 0) });
        }
        let profile = builder.finish();
        let index = Index::new(&profile);
        let view = View::new(&index, &Selection::default());
        hottest(&view.functions().functions, "./target/app", Scale::of(&view), None)
    }

    #[test]
    fn own_code_is_told_by_what_it_calls() {
        let start = [("libc.so.6", "", "__libc_start_main"), ("app", "/src/main.rs", "app::main")];
        let main = |rest: &[(&'static str, &'static str, &'static str)]| [&start[..], rest].concat();
        let parse = main(&[
            ("app", "/src/parse.rs", "app::parse<u8>"),
            ("app", "/rustc/1/vec.rs", "alloc::vec::Vec::push"),
        ]);
        let malloc = main(&[("app", "/src/parse.rs", "app::parse<u8>"), ("libc.so.6", "", "malloc")]);
        let serde = main(&[
            ("app", "/src/write.rs", "app::write"),
            ("app", "/root/.cargo/registry/src/x/serde.rs", "serde::to"),
        ]);
        let stacks = [(&parse[..], 30), (&malloc[..], 40), (&serde[..], 30)];
        assert_eq!(shares_text(&stacks), "app::parse 70.0%, app::write 30.0%");
    }

    #[test]
    fn special_paths_of_others_are_not_own_code() {
        let main = ("app", "/src/main.rs", "app::main");
        let with = |file: &'static str| [main, ("app", file, "other")];
        let others = [
            "git:github.com/rust-lang/rust:library/alloc/src/vec/mod.rs:59807616e1fa2540724bfbac14d7976d7e4a3860",
            "cargo:index.crates.io-1949cf8c6b5b557f:serde-1.0.0:src/lib.rs",
        ];
        for file in others {
            assert_eq!(shares_text(&[(&with(file), 10)]), "app::main 100.0%", "{file}");
        }
        let own = "git:github.com/ann/app:src/lib.rs:59807616e1fa";
        assert_eq!(shares_text(&[(&with(own), 10)]), "other 100.0%, app::main 100.0%");
    }

    #[test]
    fn main_is_told_where_nothing_else_is_left() {
        let main = [("app", "/src/main.rs", "app::main"), ("libc.so.6", "", "memcpy")];
        assert_eq!(shares_text(&[(&main, 10)]), "app::main 100.0%");
        assert_eq!(shares_text(&[(&[("libc.so.6", "", "memcpy")], 10)]), "");
        assert_eq!(shares_text(&[(&[("app", "", "fun_12"), ("app", "", "core::fmt::write")], 10)]), "");
    }
}
