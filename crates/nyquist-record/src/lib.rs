//! Recording backends: what the operating system's sampling interfaces give, as event records.
