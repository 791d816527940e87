//! Waits that have not ended. They become samples if the recording ends here.

use crate::fields::{Fields, put_number, put_option, put_optional_text};

/// A wait that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastingWait {
    /// The index of the thread.
    pub thread: usize,
    /// When it began, in ns since the profile's zero.
    pub since: u64,
    /// The index of the stack, if it is known.
    pub stack: Option<usize>,
    /// The name of the innermost function, which says what the thread waits for.
    pub label: Option<String>,
    /// The reason in one or two words.
    pub reason: String,
    /// What it waits for, if that is known.
    pub object: Option<String>,
    /// The thread that holds that.
    pub holder: Option<String>,
}

impl LastingWait {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.thread as u64);
        put_number(out, self.since);
        put_option(out, self.stack.map(|stack| stack as u64));
        put_optional_text(out, Some(&self.reason));
        for text in [&self.label, &self.object, &self.holder] {
            put_optional_text(out, text.as_deref());
        }
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (thread, since) = (fields.small()?, fields.number()?);
        let stack = fields.option()?.map(usize::try_from).transpose().ok()?;
        let reason = fields.optional_text()??;
        let [label, object, holder] =
            [fields.optional_text()?, fields.optional_text()?, fields.optional_text()?];
        Some(Self { thread, since, stack, label, reason, object, holder })
    }
}
