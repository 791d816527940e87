//! The line about a program's own code: its hottest functions.

use crate::scale::Scale;
use crate::text::Names;
use crate::text::cut_name;
use nyquist_analysis::{Function, hottest_own_functions};

/// The number of functions that are named.
const NAMED: usize = 5;

/// The functions of the program's own code with the largest total weights, and their shares. It is empty if
/// there are none. `program` is the recorded program.
pub(crate) fn hottest(
    functions: &[Function<'_>],
    program: &str,
    scale: Scale,
    width: Option<usize>,
) -> String {
    let own = hottest_own_functions(functions, program, scale.total);
    let named = own.into_iter().take(NAMED).map(|function| {
        let name = Names::Short.show(function.name);
        let name = width.map_or(name.clone(), |width| cut_name(&name, width, true));
        format!("{name} {}", scale.percent(function.total.weight))
    });
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_analysis::Amount;
    use nyquist_profile::{FuncId, Unit};

    #[test]
    fn few_functions_are_named_with_their_shares() {
        let total = |weight| Amount { weight, cpu_ns: 0 };
        let function = |(index, name, weight)| Function {
            func: FuncId::from_index(index),
            name,
            lib: Some("app"),
            file: Some("/src/main.rs"),
            line: None,
            self_amount: total(1),
            total: total(weight),
        };
        let names =
            [(0, "app::a<u8>", 30), (1, "b", 20), (2, "c", 10), (3, "d", 10), (4, "e", 9), (5, "f", 8)];
        let functions = names.map(function);
        let scale = Scale { total: 87, interval_ns: 1, unit: Unit::Time };
        let text = hottest(&functions, "/bin/app", scale, None);
        assert_eq!(text, "app::a 34.5%, b 23.0%, c 11.5%, d 11.5%, e 10.3%");
        assert_eq!(hottest(&functions, "/bin/other", scale, None), "");
    }
}
