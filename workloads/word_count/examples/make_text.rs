// Writes a text for the word count to standard output: words that do not exist, and in between those that English is
// full of.
use std::fmt::Write as _;
use std::io::Write as _;

const SMALL_WORDS: [&str; 16] = [
    "the", "of", "and", "to", "a", "in", "is", "that", "it", "was", "for", "with", "they", "from", "which",
    "would",
];
const SYLLABLES: [&str; 16] =
    ["ba", "cor", "di", "fen", "gu", "hal", "ki", "lor", "ma", "nel", "po", "quin", "ru", "san", "ti", "vor"];

fn main() -> std::io::Result<()> {
    let mut state = 12345_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut text = String::new();
    for _ in 0..800_000 {
        for _ in 0..12 {
            if random(5) < 2 {
                text.push_str(SMALL_WORDS[random(16)]);
            } else {
                let word = random(16) * random(16) * random(16);
                write!(
                    text,
                    "{}{}{}",
                    SYLLABLES[word / 256],
                    SYLLABLES[word / 16 % 16],
                    SYLLABLES[word % 16]
                )
                .unwrap();
            }
            text.push(' ');
        }
        text.push_str("The end.\n");
    }
    std::io::stdout().write_all(text.as_bytes())
}
