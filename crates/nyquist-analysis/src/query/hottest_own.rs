//! The hottest functions of a program's own code.

use std::cmp::Reverse;

use crate::names::own_code::{file_name, is_own_code};
use crate::query::functions::Function;

/// From this share of the whole on, a function calls nearly everything, so that its share says nothing.
const CALLS_ALL: f64 = 0.95;

/// A function with a smaller share of the whole is not worth a look.
const WORTH_A_LOOK: f64 = 0.01;

/// The functions of a program's own code, the one with the largest total weight first. Functions that call nearly
/// everything and do little themselves are left out, as long as the functions that they call account for it. So are
/// functions with less than a hundredth of `total`, the weight of the whole. `program` is the program's path or name.
/// O(functions × log functions).
pub fn hottest_own_functions<'a, 'p>(
    functions: &'a [Function<'p>],
    program: &str,
    total: u64,
) -> Vec<&'a Function<'p>> {
    let Some(program) = file_name(program) else { return Vec::new() };
    let share = |weight: u64| if total == 0 { 0.0 } else { weight as f64 / total as f64 };
    let is_own = |function: &&Function<'_>| {
        share(function.total.weight) >= WORTH_A_LOOK
            // A stub of the linker is not written by anybody.
            && !function.name.ends_with("@plt")
            && is_own_code(function.name, function.lib, function.file, program)
    };
    let mut own: Vec<_> = functions.iter().filter(is_own).collect();
    own.sort_by_key(|function| Reverse((function.total.weight, function.self_amount.weight)));
    let calls_all = |function: &Function<'_>| {
        share(function.total.weight) >= CALLS_ALL && share(function.self_amount.weight) < WORTH_A_LOOK
    };
    // What is inlined from a library is the work of the function itself, and no other function shows it.
    let mut rest = own.iter().fold(0_u64, |sum, function| sum.saturating_add(function.total.weight));
    let is_accounted_for = |function: &&&Function<'_>| {
        rest = rest.saturating_sub(function.total.weight);
        calls_all(function) && rest >= function.total.weight / 2
    };
    let passed = own.iter().take_while(is_accounted_for).count();
    own.split_off(passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Index;
    use crate::names::short_name;
    use crate::selection::Selection;
    use crate::view::View;
    use nyquist_profile::{Frame, Func, Lib, Meta, Process, ProfileBuilder, Sample, Source, Thread};

    /// A function: its lib, file and name.
    type Named<'a> = (&'a str, &'a str, &'a str);

    /// The functions with their total weights, for stacks of functions, each the outermost first, with their weights.
    fn weights_text(stacks: &[(&[Named<'_>], u64)]) -> String {
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
        let functions = view.functions().functions;
        let own = hottest_own_functions(&functions, "./target/app", view.total().weight).into_iter();
        let texts = own.map(|own| format!("{} {}", short_name(own.name), own.total.weight));
        texts.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn own_code_is_recognized_by_what_it_calls() {
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
        assert_eq!(weights_text(&stacks), "app::parse 70, app::write 30");
    }

    #[test]
    fn a_function_with_inlined_libraries_is_named() {
        let find = [
            ("app", "/src/main.rs", "app::main"),
            ("app", "/src/find.rs", "app::find"),
            ("app", "/rustc/1/iter.rs", "core::iter::Map::next"),
        ];
        let table = ("app", "/rust/deps/hashbrown-0.15.2/src/raw/mod.rs", "hashbrown::raw::find");
        let parse = [("app", "/src/main.rs", "app::main"), ("app", "/src/parse.rs", "app::parse"), table];
        assert_eq!(weights_text(&[(&find, 96), (&parse, 4)]), "app::find 96, app::parse 4");
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
            assert_eq!(weights_text(&[(&with(file), 10)]), "app::main 10", "{file}");
        }
        let own = "git:github.com/ann/app:src/lib.rs:59807616e1fa";
        assert_eq!(weights_text(&[(&with(own), 10)]), "other 10, app::main 10");
    }

    #[test]
    fn main_is_named_where_nothing_else_is_left() {
        let main = [("app", "/src/main.rs", "app::main"), ("libc.so.6", "", "memcpy")];
        assert_eq!(weights_text(&[(&main, 10)]), "app::main 10");
        assert_eq!(weights_text(&[(&[("libc.so.6", "", "memcpy")], 10)]), "");
        assert_eq!(weights_text(&[(&[("app", "", "fun_12"), ("app", "", "core::fmt::write")], 10)]), "");
        assert_eq!(weights_text(&[(&[("app", "", "fun_12"), ("app", "", "memchr@plt")], 10)]), "");
    }
}
