//! The processes of a recording: those that are sampled, and those that cannot be.

use std::collections::HashMap;

use nyquist_convert::event::Pid;

use super::images::Images;
use super::made_code::MadeCode;

/// A process that descends from the recorded ones and cannot be sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) pid: Pid,
    pub(crate) reason: String,
    pub(crate) advice: Option<String>,
}

/// A recorded process.
#[derive(Debug)]
pub(super) struct SampledProcess<P> {
    pub(super) handle: P,
    pub(super) images: Images,
    pub(super) made_code: MadeCode,
    /// Whether it was sampled since its images and its made code were last read.
    pub(super) has_samples: bool,
    /// How often it was sampled.
    pub(super) samples: u64,
    /// The addresses in code that makes system calls, and whether threads that are there are in a call.
    pub(super) calls: HashMap<u64, bool>,
    /// Whether it executes a program that may not be sampled.
    pub(super) is_refused: bool,
}

impl<P> SampledProcess<P> {
    pub(super) fn new(process: P) -> Self {
        Self {
            handle: process,
            images: Images::default(),
            made_code: MadeCode::default(),
            has_samples: false,
            samples: 0,
            calls: HashMap::new(),
            is_refused: false,
        }
    }
}
