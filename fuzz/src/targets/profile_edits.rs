//! Reading a good profile with arbitrary values at arbitrary places. What can be read is written again and
//! checked.

use std::sync::OnceLock;

use arbitrary::{Result, Unstructured};
use crate::sample_profile::{VERSIONS, check_rewritten, sample_document};
use nyquist_profile::firefox;
use serde_json::{Value, json};

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let _ = edit_and_read(&mut Unstructured::new(bytes));
}

fn edit_and_read(input: &mut Unstructured<'_>) -> Result<()> {
    static DOCUMENTS: OnceLock<[Value; 2]> = OnceLock::new();
    let parse = |version| serde_json::from_slice(&sample_document(version, false)).expect("it is JSON");
    let mut document = input.choose(DOCUMENTS.get_or_init(|| VERSIONS.map(parse)))?.clone();
    for _ in 0..input.int_in_range(1..=12)? {
        edit(&mut document, input)?;
    }
    let _ = firefox::check(&document);
    if let Ok(profile) = firefox::read(document.to_string().as_bytes()) {
        check_rewritten(&profile);
    }
    Ok(())
}

/// Goes down to a place and changes what is there.
fn edit(mut value: &mut Value, input: &mut Unstructured<'_>) -> Result<()> {
    while let Some(len) = members(value)
        && !input.ratio(1, 12)?
    {
        let index = input.choose_index(len)?;
        let inner = match value {
            Value::Object(members) => members.values_mut().nth(index),
            Value::Array(items) => items.get_mut(index),
            _ => None,
        };
        value = inner.expect("the index is one of theirs");
    }
    change(value, input)
}

/// How many values there are within a value, if any.
fn members(value: &Value) -> Option<usize> {
    let len = match value {
        Value::Object(members) => members.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    (len > 0).then_some(len)
}

fn change(value: &mut Value, input: &mut Unstructured<'_>) -> Result<()> {
    match value {
        Value::Array(items) if !items.is_empty() && input.arbitrary()? => {
            let index = input.choose_index(items.len())?;
            let item = items[index].clone();
            match input.int_in_range(0..=2)? {
                0 => drop(items.remove(index)),
                1 => items.push(item),
                _ => items.insert(0, item),
            }
        }
        Value::Object(members) if !members.is_empty() && input.arbitrary()? => {
            let index = input.choose_index(members.len())?;
            let key = members.keys().nth(index).cloned().expect("the index is one of theirs");
            members.remove(&key);
        }
        value => *value = scalar(input)?,
    }
    Ok(())
}

fn scalar(input: &mut Unstructured<'_>) -> Result<Value> {
    Ok(match input.int_in_range(0..=9)? {
        0 => Value::Null,
        1 => json!(input.arbitrary::<i64>()?),
        2 => json!(input.arbitrary::<f64>()?),
        3 => json!(input.arbitrary::<bool>()?),
        4 => json!(input.arbitrary::<&str>()?),
        5 => json!([]),
        6 => json!({}),
        7 => json!([1e300, -1e300, 0.5, 1e18, 1e-9, -0.0, 4_294_967_296.0][input.choose_index(7)?]),
        _ => json!(input.int_in_range(-2..=12)?),
    })
}
