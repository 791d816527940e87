//! The messages of OpenTelemetry's profiles, as far as they are used
//! (<https://github.com/open-telemetry/opentelemetry-proto>, `profiles/v1development`). Texts and rows of
//! tables are indices into the dictionary, where 0 means none. As JSON, members have the names of protobuf's mapping.

use prost::{Message, Oneof};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::json_fields::{integer, integers, text, texts};

/// `ProfilesData`, and `ExportProfilesServiceRequest`, which has the same fields.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ProfilesData {
    #[prost(message, repeated, tag = "1")]
    pub resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    pub dictionary: Option<Dictionary>,
}

/// `ProfilesDictionary`.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Dictionary {
    #[prost(message, repeated, tag = "1")]
    #[serde(rename = "mappingTable")]
    pub mappings: Vec<Mapping>,
    #[prost(message, repeated, tag = "2")]
    #[serde(rename = "locationTable")]
    pub locations: Vec<Location>,
    #[prost(message, repeated, tag = "3")]
    #[serde(rename = "functionTable")]
    pub functions: Vec<Function>,
    #[prost(message, repeated, tag = "4")]
    #[serde(rename = "linkTable")]
    pub links: Vec<Link>,
    /// Bytes, because a name that is not UTF-8 is no reason to reject all others.
    #[prost(bytes = "vec", repeated, tag = "5")]
    #[serde(rename = "stringTable", deserialize_with = "texts")]
    pub strings: Vec<Vec<u8>>,
    #[prost(message, repeated, tag = "6")]
    #[serde(rename = "attributeTable")]
    pub attributes: Vec<Attribute>,
    #[prost(message, repeated, tag = "7")]
    #[serde(rename = "stackTable")]
    pub stacks: Vec<Stack>,
}

/// `ResourceProfiles`: the profiles of one process, container or machine.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ResourceProfiles {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    #[serde(rename = "scopeProfiles")]
    pub scopes: Vec<ScopeProfiles>,
}

/// `Resource`.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// `ScopeProfiles`.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ScopeProfiles {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub profiles: Vec<Profile>,
}

/// `InstrumentationScope`: the tool that made the profiles.
#[derive(Clone, PartialEq, Eq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Scope {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(deserialize_with = "text")]
    pub name: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(deserialize_with = "text")]
    pub version: Vec<u8>,
}

/// `Profile`: samples of one value.
#[derive(Clone, PartialEq, Eq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Profile {
    #[prost(message, optional, tag = "1")]
    pub sample_type: Option<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
    #[prost(fixed64, tag = "3")]
    #[serde(deserialize_with = "integer")]
    pub time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    #[serde(deserialize_with = "integer")]
    pub duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    pub period_type: Option<ValueType>,
    #[prost(int64, tag = "6")]
    #[serde(deserialize_with = "integer")]
    pub period: i64,
    #[prost(int32, repeated, tag = "11")]
    #[serde(rename = "attributeIndices", deserialize_with = "integers")]
    pub attributes: Vec<i32>,
}

/// `ValueType`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ValueType {
    #[prost(int32, tag = "1")]
    #[serde(rename = "typeStrindex", deserialize_with = "integer")]
    pub kind: i32,
    #[prost(int32, tag = "2")]
    #[serde(rename = "unitStrindex", deserialize_with = "integer")]
    pub unit: i32,
}

/// `Sample`: a stack with the attributes of its thread. It has a value for each of its times, or no times and
/// one value, or no values, and then each time counts as 1.
#[derive(Clone, PartialEq, Eq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Sample {
    #[prost(int32, tag = "1")]
    #[serde(rename = "stackIndex", deserialize_with = "integer")]
    pub stack: i32,
    #[prost(int32, repeated, tag = "2")]
    #[serde(rename = "attributeIndices", deserialize_with = "integers")]
    pub attributes: Vec<i32>,
    #[prost(int64, repeated, tag = "4")]
    #[serde(deserialize_with = "integers")]
    pub values: Vec<i64>,
    #[prost(fixed64, repeated, tag = "5")]
    #[serde(rename = "timestampsUnixNano", deserialize_with = "integers")]
    pub times: Vec<u64>,
}

/// `Mapping`.
#[derive(Clone, PartialEq, Eq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    #[serde(deserialize_with = "integer")]
    pub memory_start: u64,
    #[prost(uint64, tag = "2")]
    #[serde(deserialize_with = "integer")]
    pub memory_limit: u64,
    #[prost(uint64, tag = "3")]
    #[serde(deserialize_with = "integer")]
    pub file_offset: u64,
    #[prost(int32, tag = "4")]
    #[serde(rename = "filenameStrindex", deserialize_with = "integer")]
    pub filename: i32,
    #[prost(int32, repeated, tag = "5")]
    #[serde(rename = "attributeIndices", deserialize_with = "integers")]
    pub attributes: Vec<i32>,
}

/// `Stack`: locations, the innermost first.
#[derive(Clone, PartialEq, Eq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Stack {
    #[prost(int32, repeated, tag = "1")]
    #[serde(rename = "locationIndices", deserialize_with = "integers")]
    pub locations: Vec<i32>,
}

/// `Location`: an address; its last line is the function that the others are inlined into.
#[derive(Clone, PartialEq, Eq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Location {
    #[prost(int32, tag = "1")]
    #[serde(rename = "mappingIndex", deserialize_with = "integer")]
    pub mapping: i32,
    #[prost(uint64, tag = "2")]
    #[serde(deserialize_with = "integer")]
    pub address: u64,
    #[prost(message, repeated, tag = "3")]
    pub lines: Vec<Line>,
    #[prost(int32, repeated, tag = "4")]
    #[serde(rename = "attributeIndices", deserialize_with = "integers")]
    pub attributes: Vec<i32>,
}

/// `Line`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Line {
    #[prost(int32, tag = "1")]
    #[serde(rename = "functionIndex", deserialize_with = "integer")]
    pub function: i32,
    #[prost(int64, tag = "2")]
    #[serde(rename = "line", deserialize_with = "integer")]
    pub number: i64,
    #[prost(int64, tag = "3")]
    #[serde(deserialize_with = "integer")]
    pub column: i64,
}

/// `Function`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Function {
    #[prost(int32, tag = "1")]
    #[serde(rename = "nameStrindex", deserialize_with = "integer")]
    pub name: i32,
    #[prost(int32, tag = "2")]
    #[serde(rename = "systemNameStrindex", deserialize_with = "integer")]
    pub system_name: i32,
    #[prost(int32, tag = "3")]
    #[serde(rename = "filenameStrindex", deserialize_with = "integer")]
    pub filename: i32,
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "integer")]
    pub start_line: i64,
}

/// `Link`, of which only the empty one is written.
#[derive(Clone, Copy, PartialEq, Eq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Link {}

/// `KeyValueAndUnit`.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Attribute {
    #[prost(int32, tag = "1")]
    #[serde(rename = "keyStrindex", deserialize_with = "integer")]
    pub key: i32,
    #[prost(message, optional, tag = "2")]
    #[serde(deserialize_with = "any_value")]
    pub value: Option<AnyValue>,
}

/// `KeyValue`.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(deserialize_with = "text")]
    pub key: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    #[serde(deserialize_with = "any_value")]
    pub value: Option<AnyValue>,
    /// The key as an index of the strings, instead of `key`.
    #[prost(int32, tag = "3")]
    #[serde(rename = "keyStrindex", deserialize_with = "integer")]
    pub key_index: i32,
}

/// `AnyValue`, of which single texts, numbers and booleans are used.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "AnyValueContent", tags = "1, 2, 3, 4, 8")]
    pub content: Option<AnyValueContent>,
}

/// The content of a value.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum AnyValueContent {
    #[prost(bytes = "vec", tag = "1")]
    Text(Vec<u8>),
    #[prost(bool, tag = "2")]
    Truth(bool),
    #[prost(int64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Number(f64),
    #[prost(int32, tag = "8")]
    TextIndex(i32),
}

/// A value of an attribute. Lists and maps are none.
fn any_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AnyValue>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = |value: &Value| value.as_i64().or_else(|| value.as_str()?.parse().ok());
    let member = |(key, value): (&String, &Value)| match key.as_str() {
        "stringValue" => Some(AnyValueContent::Text(value.as_str()?.into())),
        "boolValue" => value.as_bool().map(AnyValueContent::Truth),
        "intValue" => number(value).map(AnyValueContent::Integer),
        "doubleValue" => value.as_f64().map(AnyValueContent::Number),
        "stringValueStrindex" => i32::try_from(number(value)?).ok().map(AnyValueContent::TextIndex),
        _ => None,
    };
    Ok(value.as_object().map(|value| AnyValue { content: value.iter().find_map(member) }))
}
