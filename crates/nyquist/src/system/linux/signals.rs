//! Requests to end, and what a recording is ended with.

pub(crate) use nyquist_record::linux::launch::Signaller;
pub(crate) use nyquist_record::linux::signals::{
    EndRequest, EndSignal, KILL, Requests, on_own_stack, outlive_file_size_limit,
};
pub(crate) use nyquist_record::linux::{StopHandle, now};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Control, Phase};
    use crate::system::linux::sys::tests::raise_with_default_action;
    use nyquist_convert::Progress;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    /// Sends a signal that only the calling thread receives, so the thread that waits for signals is late.
    fn press(signal: EndSignal) {
        assert!(raise_with_default_action(signal.number()));
    }

    fn is_cancelled(progress: &Progress) -> bool {
        progress.cancel.load(Ordering::Relaxed)
    }

    #[test]
    fn a_late_request_does_not_end_the_next_phase() {
        let control = Control::start(Requests::take_over().unwrap());
        let [late, in_time] = [(); 2].map(|()| Arc::<Progress>::default());
        control.enter(Phase::Saving);
        press(EndSignal::Quit);
        control.enter(Phase::Symbolicating(Arc::clone(&late)));
        control.enter(Phase::Symbolicating(Arc::clone(&in_time)));
        assert!(!is_cancelled(&late), "the request was left for the next phase");
        press(EndSignal::Interrupt);
        control.enter(Phase::Saving);
        assert!(is_cancelled(&in_time) && !is_cancelled(&late));
    }

    #[test]
    fn an_early_request_applies_to_the_first_phase() {
        let control = Control::start(Requests::take_over().unwrap());
        let progress = Arc::<Progress>::default();
        press(EndSignal::Interrupt);
        control.enter(Phase::Symbolicating(Arc::clone(&progress)));
        assert!(is_cancelled(&progress));
    }
}
