//! Sums of samples by slot, for any set of samples.

use crate::amount::Amount;

/// The sums of samples: by slot, and without a stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleSums {
    /// The self amount of the node of each slot, then a zero, so that [`running`] sums have an entry for the whole.
    pub(crate) own: Vec<Amount>,
    /// The sum of the samples without a stack.
    pub(crate) stackless: Amount,
}

impl SampleSums {
    pub(crate) fn new(slots: usize) -> Self {
        Self { own: vec![Amount::default(); slots + 1], stackless: Amount::default() }
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.own.iter_mut().zip(&other.own).for_each(|(own, &amount)| *own += amount);
        self.stackless += other.stackless;
    }

    pub(crate) fn add(&mut self, slot: Option<u32>, amount: Amount) {
        match slot {
            Some(slot) => self.own[slot as usize] += amount,
            None => self.stackless += amount,
        }
    }

    pub(crate) fn subtract(&mut self, slot: Option<u32>, amount: Amount) {
        let sum = slot.map_or(&mut self.stackless, |slot| &mut self.own[slot as usize]);
        *sum = *sum - amount;
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.own)
    }
}

/// The sum of all amounts before each, in place of their [`SampleSums::own`].
pub(crate) fn running(mut own: Vec<Amount>) -> Vec<Amount> {
    let mut sum = Amount::default();
    for amount in &mut own {
        let before = sum;
        sum += *amount;
        *amount = before;
    }
    own
}
