// Counts the words of a text, but for the small ones, as one writes it first. docs/rust.md makes it fast; `steps/` has
// this file as it is after each step.
use std::collections::HashMap;

/// Words that say nothing about a text.
const SMALL_WORDS: &str = "
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves what which who whom this that these those am is
    are was were be been being have has had having do does did doing would should could ought cannot a an
    the and but if or because as until while of at by for with about against between into through during
    before after above below to from up down in out on off over under again further then once here there
    when where why how all any both each few more most other some such no nor not only own same so than too
    very can will just upon also among however although since within without
";

fn count_words(text: &str) -> HashMap<String, usize> {
    let small_words: Vec<&str> = SMALL_WORDS.split_whitespace().collect();
    let mut counts = HashMap::new();
    for line in text.lines() {
        for word in line.split(|letter: char| !letter.is_alphanumeric()) {
            let word = word.to_lowercase();
            if !word.is_empty() && !small_words.contains(&word.as_str()) {
                *counts.entry(word).or_insert(0) += 1;
            }
        }
    }
    counts
}

fn print_most_frequent(counts: HashMap<String, usize>) {
    let mut words: Vec<_> = counts.into_iter().collect();
    words.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    for (word, count) in words.iter().take(3) {
        println!("{count:8} {word}");
    }
}

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).expect("the name of a text is needed");
    let text = std::fs::read_to_string(path)?;
    print_most_frequent(count_words(&text));
    Ok(())
}
