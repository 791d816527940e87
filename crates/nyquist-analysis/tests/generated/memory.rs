//! The memory of an index and of views: a server of a large profile needs little more than the profile itself.

use nyquist_analysis::{Index, SampleState, Selection, View};

use nyquist_test_support::generator::{Shape, generate};

#[test]
fn an_index_takes_little_beside_the_profile() {
    let shape = Shape { samples: 400_000, threads: 20, functions: 3000, stacks: 40_000, seed: 3 };
    let profile = generate(&shape);
    let (samples, stacks) = (shape.samples, profile.stacks().len());
    let index = Index::new(&profile);
    while index.prepare_more() {}
    // For 20 million samples with 2 million stacks, this is 210 MB. A copy of the samples would take 240.
    let most = 4 * samples + 65 * stacks;
    assert!(index.own_bytes() <= most, "{} of {most}", index.own_bytes());
    let view = |selection| View::new(&index, &selection).own_bytes();
    // Sums are stored for the nodes that have samples: a tenth of them.
    let range = Selection { range: Some(5_000_000_000..15_000_000_000), ..Selection::default() };
    let waiting = Selection { state: SampleState::OffCpu, ..Selection::default() };
    for selection in [range, waiting] {
        let bytes = view(selection);
        assert!(bytes > 0 && bytes <= 4 * stacks, "{bytes} of {}", 4 * stacks);
    }
    assert_eq!(view(Selection::default()), 0);
}
