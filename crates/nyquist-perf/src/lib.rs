//! The Linux perf event ABI: event records and their fields.
