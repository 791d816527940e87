// Counts the words of a generated text, in the way that one writes it first: a new string for every word, a line at a
// time, the standard hasher. The README shows its profile.
use std::collections::HashMap;

/// A text of `lines` lines whose words follow no pattern that a branch predictor would learn.
fn generate(lines: usize) -> String {
    let mut state = 12345_u64;
    let mut text = String::new();
    for _ in 0..lines {
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(&format!("Word{} ", (state >> 33) % 5000));
        }
        text.push('\n');
    }
    text
}

fn count_words(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for line in text.lines() {
        for word in line.split_whitespace() {
            *counts.entry(word.to_lowercase()).or_insert(0) += 1;
        }
    }
    counts
}

fn main() {
    let text = generate(400_000);
    let counts = count_words(&text);
    let mut words: Vec<_> = counts.into_iter().collect();
    words.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    println!("{} words, most often {}", words.len(), words[0].0);
}
