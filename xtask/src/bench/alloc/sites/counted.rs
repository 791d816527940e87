//! What a tool has counted by site, and how far two tools agree.

use std::collections::BTreeMap;

/// How many sites are compared.
pub(super) const TOP: usize = 10;

/// A site has the same sum if it differs by less, as a share.
const TOLERANCE: f64 = 0.01;

/// What is counted: bytes in all, blocks in all, bytes at the peak, bytes at the end.
pub(super) const MEASURES: [&str; 4] = ["total", "blocks", "peak", "live"];

/// The sums of each measure. A tool may lack one.
#[derive(Clone, Default)]
pub(super) struct Counted([Option<Sites>; MEASURES.len()]);

/// The sum of each site.
#[derive(Clone, Default)]
struct Sites(BTreeMap<String, f64>);

/// How far the largest sites of one tool are those of another.
pub(super) struct Agreement {
    /// How many sites are compared.
    pub(super) count: usize,
    /// How many are among the largest of the other, too.
    pub(super) same_names: usize,
    /// How many have the same sum there.
    pub(super) same_sums: usize,
    /// The sum of all differences, as a share of the sites' sum.
    pub(super) apart: f64,
    /// The sites with another sum: their names, this sum, and that of the other.
    pub(super) different: Vec<(String, f64, f64)>,
}

impl Counted {
    /// Adds to a site. What is `None` is not counted by the tool.
    pub(super) fn add(&mut self, site: &str, amounts: [Option<f64>; MEASURES.len()]) {
        for (sites, amount) in self.0.iter_mut().zip(amounts) {
            if let Some(amount) = amount {
                *sites.get_or_insert_default().0.entry(site.to_owned()).or_default() += amount;
            }
        }
    }

    /// The sum of each measure.
    pub(super) fn sums(&self) -> [Option<f64>; MEASURES.len()] {
        self.0.each_ref().map(|sites| sites.as_ref().map(|sites| sites.0.values().sum()))
    }

    /// Compares the largest sites of each measure with another tool's.
    pub(super) fn agreements(&self, other: &Self) -> [Option<Agreement>; MEASURES.len()] {
        let mut others = other.0.iter();
        self.0.each_ref().map(|own| Some(own.as_ref()?.agreement(others.next()?.as_ref()?)))
    }
}

impl Sites {
    /// The largest. Those as large as the last one are among them.
    fn top(&self) -> Vec<(&str, f64)> {
        let mut top: Vec<_> = self.0.iter().map(|(name, sum)| (&**name, *sum)).collect();
        top.retain(|(_, sum)| *sum > 0.0);
        top.sort_by(|a, b| b.1.total_cmp(&a.1));
        let least = top.get(TOP - 1).map_or(0.0, |last| last.1);
        top.retain(|(_, sum)| *sum >= least);
        top
    }

    fn agreement(&self, other: &Self) -> Agreement {
        let (mut top, others) = (self.top(), other.top());
        top.truncate(TOP);
        let sum: f64 = top.iter().map(|(_, sum)| sum).sum();
        let pairs: Vec<_> =
            top.iter().map(|(name, own)| (*name, *own, other.0.get(*name).copied().unwrap_or(0.0))).collect();
        let is_apart = |(_, own, other): &&(&str, f64, f64)| (own - other).abs() > TOLERANCE * own;
        let different = pairs.iter().filter(is_apart);
        let different: Vec<_> =
            different.map(|(name, own, other)| ((*name).to_owned(), *own, *other)).collect();
        Agreement {
            count: top.len(),
            same_names: top.iter().filter(|(name, _)| others.iter().any(|(other, _)| other == name)).count(),
            same_sums: top.len() - different.len(),
            apart: pairs.iter().map(|(_, own, other)| (own - other).abs()).sum::<f64>() / sum.max(1.0),
            different,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(sites: &[(&str, f64)]) -> Counted {
        let mut counted = Counted::default();
        for (site, bytes) in sites {
            counted.add(site, [Some(*bytes), None, None, None]);
        }
        counted
    }

    #[test]
    fn names_and_sums_are_compared() {
        let own = counted(&[("a", 600.0), ("a", 400.0), ("b", 900.0), ("c", 100.0)]);
        let other = counted(&[("a", 1001.0), ("b", 700.0), ("d", 100.0)]);
        assert_eq!(own.sums(), [Some(2000.0), None, None, None]);
        let [Some(of_total), None, None, None] = own.agreements(&other) else { panic!() };
        assert_eq!((of_total.count, of_total.same_names, of_total.same_sums), (3, 2, 1));
        assert!((of_total.apart - 301.0 / 2000.0).abs() < 1e-9);
        assert_eq!(of_total.different, [("b".to_owned(), 900.0, 700.0), ("c".to_owned(), 100.0, 0.0)]);
    }

    #[test]
    fn a_site_as_large_as_the_last_is_no_difference() {
        let names: Vec<String> = (0..12).map(|n| format!("{n:02}")).collect();
        let sites: Vec<_> = names.iter().map(|name| (&**name, 5.0)).collect();
        let (own, other) = (counted(&sites), counted(&sites[2..]));
        let [Some(of_total), ..] = own.agreements(&other) else { panic!() };
        assert_eq!((of_total.count, of_total.same_names), (10, 8));
        let [Some(of_total), ..] = other.agreements(&own) else { panic!() };
        assert_eq!((of_total.count, of_total.same_names), (10, 10));
    }
}
