// After the third step: one buffer for all words, and a new string for those alone that were not there yet.
use rustc_hash::{FxHashMap, FxHashSet};

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

fn count_words(text: &str) -> FxHashMap<String, usize> {
    let small_words: FxHashSet<&str> = SMALL_WORDS.split_whitespace().collect();
    let mut counts = FxHashMap::default();
    let mut word = String::new();
    for line in text.lines() {
        for written in line.split(|letter: char| !letter.is_alphanumeric()) {
            to_lowercase_into(&mut word, written);
            if word.is_empty() || small_words.contains(word.as_str()) {
                continue;
            }
            match counts.get_mut(&word) {
                Some(count) => *count += 1,
                None => _ = counts.insert(word.clone(), 1),
            }
        }
    }
    counts
}

/// Like `written.to_lowercase()`, in a string that is there already.
fn to_lowercase_into(word: &mut String, written: &str) {
    if written.is_ascii() {
        word.clear();
        word.push_str(written);
        word.make_ascii_lowercase();
    } else {
        *word = written.to_lowercase();
    }
}

fn print_most_frequent(counts: FxHashMap<String, usize>) {
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
