//! Facts about a recording as fields.

use crate::fields::{Fields, put_bytes, put_number, put_option, put_optional_text};
use nyquist_profile::{ExtraInfo, Meta};

/// Adds the facts that a recording of CPU time has from its beginning.
pub(crate) fn put_meta(out: &mut Vec<u8>, meta: &Meta) {
    put_bytes(out, meta.product.as_bytes());
    put_number(out, meta.interval);
    put_number(out, meta.start_time);
    out.extend([u8::from(meta.has_exact_times), u8::from(meta.has_cpu_deltas)]);
    for text in [&meta.arguments, &meta.oscpu, &meta.platform, &meta.abi, &meta.cpu_name, &meta.imported_from]
    {
        put_optional_text(out, text.as_deref());
    }
    for number in [meta.logical_cpus, meta.physical_cpus] {
        put_option(out, number.map(u64::from));
    }
    put_option(out, meta.main_memory);
    put_number(out, meta.lost_samples);
    for ExtraInfo { section, label, value } in &meta.extra {
        for text in [section, label, value] {
            put_bytes(out, text.as_bytes());
        }
    }
}

pub(crate) fn read_meta(fields: &mut Fields<'_>) -> Option<Meta> {
    let mut meta = Meta {
        product: fields.owned()?,
        interval: fields.number()?,
        start_time: fields.number()?,
        has_exact_times: fields.flag()?,
        has_cpu_deltas: fields.flag()?,
        ..Meta::default()
    };
    for text in [
        &mut meta.arguments,
        &mut meta.oscpu,
        &mut meta.platform,
        &mut meta.abi,
        &mut meta.cpu_name,
        &mut meta.imported_from,
    ] {
        *text = fields.optional_text()?;
    }
    for number in [&mut meta.logical_cpus, &mut meta.physical_cpus] {
        *number = fields.option()?.map(u32::try_from).transpose().ok()?;
    }
    meta.main_memory = fields.option()?;
    meta.lost_samples = fields.number()?;
    while !fields.is_empty() {
        let (section, label, value) = (fields.owned()?, fields.owned()?, fields.owned()?);
        meta.extra.push(ExtraInfo { section, label, value });
    }
    Some(meta)
}
