//! Members of JSON documents by protobuf's mapping: integers of 64 bits are texts, and bytes are texts.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// A number, or a text that is one.
struct Integer<T>(T);

struct IntegerVisitor<T>(PhantomData<T>);

impl<T: TryFrom<i128>> Visitor<'_> for IntegerVisitor<T> {
    type Value = Integer<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer in range, or a text that is one")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        T::try_from(number.into()).map(Integer).map_err(|_| E::custom("an integer is out of range"))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        T::try_from(number.into()).map(Integer).map_err(|_| E::custom("an integer is out of range"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let number = text.parse::<i128>().ok().and_then(|number| T::try_from(number).ok());
        number.map(Integer).ok_or_else(|| E::custom("a text is no integer in range"))
    }
}

impl<'de, T: TryFrom<i128>> Deserialize<'de> for Integer<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntegerVisitor(PhantomData))
    }
}

/// A member that is an integer.
pub(super) fn integer<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: TryFrom<i128>,
    D: Deserializer<'de>,
{
    Integer::deserialize(deserializer).map(|Integer(number)| number)
}

/// A member that is a list of integers.
pub(super) fn integers<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: TryFrom<i128>,
    D: Deserializer<'de>,
{
    let numbers = Vec::<Integer<T>>::deserialize(deserializer)?;
    Ok(numbers.into_iter().map(|Integer(number)| number).collect())
}

/// A member that is a text.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    String::deserialize(deserializer).map(String::into_bytes)
}

/// A member that is a list of texts.
pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<u8>>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    Ok(texts.into_iter().map(String::into_bytes).collect())
}
