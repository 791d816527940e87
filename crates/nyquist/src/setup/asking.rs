//! Asking the user before something is changed.

use crate::failure::Failure;
use crate::{page, printer};
use std::io::{self, BufRead as _, IsTerminal as _};

/// Whether the user agrees to what was shown; `yes` is the option that does not ask.
pub(crate) fn agrees(yes: bool) -> Result<bool, Failure> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::new("cannot ask for confirmation: the standard input is not a terminal")
            .hint("-y makes the changes without asking"));
    }
    let agreed = ask("Make these changes? [y/N] ").map_err(|error| Failure::because("cannot ask", &error))?;
    if !agreed {
        page::print("Nothing was changed.\n")?;
    }
    Ok(agreed)
}

fn ask(question: &str) -> io::Result<bool> {
    printer::ask(question)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        let check = |answer, expected| assert_eq!(is_yes(answer), expected, "{answer:?}");
        check("y\n", true);
        check("Yes\n", true);
        check("\n", false);
        check("", false);
        check("no, y\n", false);
    }
}
