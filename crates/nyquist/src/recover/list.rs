//! The list of recordings that can be recovered.

use super::read::read;
use crate::failure::Failure;
use crate::number::{grouped, time_span};
use crate::page;
use crate::text::{Column, Screen, Table, Text};
use indicatif::DecimalBytes;
use nyquist_spool::RecoveredTables;
use nyquist_spool::folder::{AbandonedSpool, Entry, boot_id};
use serde_json::{Value, json};
use std::path::Path;

/// A recording in the list.
struct Listed {
    name: String,
    program: String,
    /// When it began, in µs since 1970.
    start_time: u64,
    duration_ns: u64,
    samples: u64,
    bytes: u64,
    same_boot: bool,
}

/// Prints all recordings that can be recovered, and why others cannot.
pub(super) fn print(entries: Vec<Entry>, as_json: bool, folder: &Path) -> Result<(), Failure> {
    let (mut listed, mut refused, mut live) = (Vec::new(), Vec::new(), 0_u64);
    for entry in entries {
        match entry {
            Entry::Live => live += 1,
            Entry::Refused(name, why) => refused.push((name, why)),
            Entry::Abandoned(spool) => match facts(&spool) {
                Ok(facts) => listed.push(facts),
                Err(why) => refused.push((spool.name().to_owned(), why)),
            },
        }
    }
    listed.sort_by_key(|listed| listed.start_time);
    if as_json {
        return page::print_json(&json(&listed, &refused, live, folder));
    }
    page::print(text(&listed, &refused, folder))
}

fn facts(spool: &AbandonedSpool) -> Result<Listed, String> {
    let read = read(spool, RecoveredTables::of_facts)?;
    let (meta, state) = (read.tables.meta(), read.tables.state());
    Ok(Listed {
        name: spool.name().to_owned(),
        program: meta.product.clone(),
        start_time: meta.start_time,
        duration_ns: state.map_or(0, |state| state.end),
        samples: state.map_or(0, |state| state.samples),
        bytes: spool.size().unwrap_or(0),
        same_boot: read.boot == boot_id(),
    })
}

fn text(listed: &[Listed], refused: &[(String, String)], folder: &Path) -> Text {
    let columns = vec![
        Column::Text("name"),
        Column::Number("age"),
        Column::Number("duration"),
        Column::Number("samples"),
        Column::Number("size"),
        Column::Main("recorded"),
    ];
    let mut table = Table::new(columns);
    for row in listed {
        table.add(vec![
            row.name.as_str().into(),
            age(row.start_time).into(),
            time_span(row.duration_ns).into(),
            grouped(row.samples).into(),
            DecimalBytes(row.bytes).to_string().into(),
            row.program.as_str().into(),
        ]);
    }
    let mut text = if listed.is_empty() {
        Text::from(format!("Nothing to recover in {}\n", folder.display()))
    } else {
        table.render(Screen::of_stdout())
    };
    for (name, why) in refused {
        text.push(format!("{name} cannot be recovered: {why}\n"));
    }
    if !listed.is_empty() {
        text.push("`nyquist recover NAME -o FILE` makes a profile, `nyquist recover --discard NAME` removes a recording\n");
    }
    text
}

/// How long ago a time in µs since 1970 was.
fn age(start_time: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let minutes = now.as_secs().saturating_sub(start_time / 1_000_000) / 60;
    match minutes {
        0..120 => format!("{minutes} min"),
        120..2880 => format!("{} h", minutes / 60),
        _ => format!("{} days", minutes / 1440),
    }
}

fn json(listed: &[Listed], refused: &[(String, String)], live: u64, folder: &Path) -> Value {
    let recording = |row: &Listed| {
        json!({
            "name": row.name,
            "recorded": row.program,
            "start_us": row.start_time,
            "duration_ns": row.duration_ns,
            "samples": row.samples,
            "bytes": row.bytes,
            "restarted_since": !row.same_boot,
        })
    };
    let unreadable = |(name, why): &(String, String)| json!({ "name": name, "why": why });
    json!({
        "schema": "nyquist-recover/1",
        "folder": folder.to_string_lossy(),
        "recordings": listed.iter().map(recording).collect::<Vec<_>>(),
        "unreadable": refused.iter().map(unreadable).collect::<Vec<_>>(),
        "running": live,
    })
}
