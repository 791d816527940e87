//! A value of boolean columns.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A boolean. Any value except `true` and numbers other than 0 counts as false, because nothing else
/// depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flag(bool);

impl Flag {
    pub(super) fn is_set(self) -> bool {
        self.0
    }
}

struct FlagVisitor;

impl<'de> Visitor<'de> for FlagVisitor {
    type Value = Flag;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true or false")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Flag, E> {
        Ok(Flag(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Flag, E> {
        Ok(Flag(value != 0))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Flag, E> {
        Ok(Flag(value != 0))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Flag, E> {
        Ok(Flag(value != 0.0))
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Flag, E> {
        Ok(Flag(false))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Flag, E> {
        Ok(Flag(false))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Flag, A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Flag(false))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Flag, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Flag(false))
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FlagVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_plainly_yes_is_no() {
        let flags: Vec<Flag> =
            serde_json::from_str(r#"[true, 1, false, 0, null, "true", [1, [2]], {"a": {"b": 1}}]"#).unwrap();
        let set: Vec<_> = flags.into_iter().map(Flag::is_set).collect();
        assert_eq!(set, [true, true, false, false, false, false, false, false]);
    }
}
