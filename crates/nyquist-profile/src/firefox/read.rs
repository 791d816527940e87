//! Reads a profile of any known version.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;

use super::gecko;
use super::idle_category;
use super::raw_gecko::RawProcess;
use super::raw_profile::RawProfile;
use super::read_ahead::{ChunkReader, parse_ahead};
use super::read_error::{NEWEST_VERSION, OLDEST_VERSION, ReadError};
use super::read_meta::{read_categories, read_marker_schemas, read_meta};
use super::read_tables::{SharedTables, add_libs};
use super::read_thread::{Processes, ThreadReader, read_counter};
use crate::builder::ProfileBuilder;
use crate::profile::Profile;

/// Reads a profile, compressed with gzip or not. `input` need not be buffered. It is read and decompressed on
/// the calling thread and parsed on another. Memory is linear in the uncompressed document.
///
/// # Errors
/// The cases of [`ReadError`]. No input causes a panic.
pub fn read(input: impl Read) -> Result<Profile, ReadError> {
    let mut input = BufReader::with_capacity(256 * 1024, input);
    let is_gzip = match input.fill_buf().map_err(ReadError::Io)? {
        [] => return Err(ReadError::Empty),
        start => start.starts_with(&[0x1f, 0x8b]),
    };
    if is_gzip {
        parse_ahead(MultiGzDecoder::new(input), |input| convert(parse_gzip(input)?))
    } else {
        parse_ahead(input, |input| convert(parse(input, ReadError::Io)?))
    }
}

fn parse_gzip(input: &mut ChunkReader<'_>) -> Result<RawProfile, ReadError> {
    let parsed = parse(input, gzip_error);
    if let Err(ReadError::NotJson(_)) = parsed {
        // Damaged data may decompress to anything. The checksum at the end distinguishes it from data that
        // was never JSON.
        io::copy(input, &mut io::sink()).map_err(gzip_error)?;
    }
    parsed
}

fn gzip_error(error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ReadError::TruncatedGzip,
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => ReadError::CorruptGzip(error),
        _ => ReadError::Io(error),
    }
}

fn parse(input: &mut ChunkReader<'_>, io_error: fn(io::Error) -> ReadError) -> Result<RawProfile, ReadError> {
    let mut raw = RawProfile::default();
    // The parser reads byte by byte, which is fast only with an owned buffered reader.
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(input));
    let parsed = ProfileDocument(&mut raw).deserialize(&mut json).and_then(|()| json.end());
    match parsed {
        Ok(()) => check_version(&raw).map(|()| raw),
        Err(error) => Err(match error.classify() {
            Category::Io => io_error(error.into()),
            Category::Eof => ReadError::TruncatedJson { line: error.line(), column: error.column() },
            Category::Syntax => ReadError::NotJson(error),
            Category::Data => check_version(&raw).err().unwrap_or(ReadError::Malformed(error)),
        }),
    }
}

fn check_version(raw: &RawProfile) -> Result<(), ReadError> {
    let meta = raw.meta.as_ref().ok_or(ReadError::NotAProfile)?;
    match (meta.preprocessed_profile_version, meta.version) {
        (Some(version), _) => match version as u32 {
            version if version > NEWEST_VERSION => Err(ReadError::TooNew { version }),
            version if version < OLDEST_VERSION => Err(ReadError::TooOld { version }),
            _ => Ok(()),
        },
        (None, Some(version)) if gecko::VERSIONS.contains(&(version as u32)) => Ok(()),
        (None, Some(version)) => Err(ReadError::Gecko { version: version as u32 }),
        (None, None) => Err(ReadError::NotAProfile),
    }
}

/// The document, read into a profile of the caller. After an error this contains the members before the
/// error.
struct ProfileDocument<'a>(&'a mut RawProfile);

impl<'de> DeserializeSeed<'de> for ProfileDocument<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ProfileDocument<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a profile")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "meta" => {
                    self.0.meta = Some(map.next_value()?);
                    // The tables of an unknown version would only cause a misleading error.
                    check_version(self.0).map_err(A::Error::custom)?;
                    let is_gecko =
                        self.0.meta.as_ref().is_some_and(|meta| meta.preprocessed_profile_version.is_none());
                    self.0.gecko = is_gecko.then(|| RawProcess {
                        libs: std::mem::take(&mut self.0.libs),
                        ..RawProcess::default()
                    });
                }
                key if self.0.gecko.is_some() => self.gecko_member(key, &mut map)?,
                "libs" => self.0.libs = map.next_value()?,
                "shared" => self.0.shared = map.next_value()?,
                "threads" => self.0.threads = map.next_value()?,
                "counters" => self.0.counters = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl ProfileDocument<'_> {
    /// A member of a gecko document, which has only its libs before `meta`.
    fn gecko_member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let process = self.0.gecko.get_or_insert_default();
        match key {
            "libs" => process.libs = map.next_value()?,
            "threads" => process.threads = map.next_value()?,
            "processes" => process.processes = map.next_value()?,
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

fn convert(mut raw: RawProfile) -> Result<Profile, ReadError> {
    idle_category::undo(&mut raw);
    let raw_meta = raw.meta.ok_or(ReadError::NotAProfile)?;
    if let Some(process) = raw.gecko {
        if raw.threads.is_some() {
            return Err(ReadError::Unsupported("it is Firefox's own, and has its threads before its `meta`"));
        }
        return gecko::convert(raw_meta, process);
    }
    let threads = raw.threads.ok_or(ReadError::NotAProfile)?;
    let (meta, cpu_unit) = read_meta(&raw_meta, &threads);
    let mut builder = ProfileBuilder::without_categories(meta);
    read_categories(&mut builder, &raw_meta.categories);
    let schemas = read_marker_schemas(&mut builder, raw_meta.marker_schema);
    let libs = add_libs(&mut builder, raw.libs.into_iter().map(|mapped| mapped.lib).collect());
    let mut shared = SharedTables::read(&mut builder, raw.shared, &libs)?;
    let mut processes = Processes::default();
    for thread in threads {
        ThreadReader { builder: &mut builder, schemas: &schemas, cpu_unit }.read(
            thread,
            &libs,
            &mut shared,
            &mut processes,
        )?;
    }
    for counter in raw.counters {
        read_counter(&mut builder, counter, &processes)?;
    }
    Ok(builder.finish())
}
