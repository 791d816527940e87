//! Pure functions over a profile: what a report, a server or a viewer asks.
