//! Return addresses from registers, stack memory and modules.
