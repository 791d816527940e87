//! The effects of Ctrl-C and SIGTERM, which depend on the current phase.

use crate::system::signals::{EndRequest, EndSignal, KILL, Requests, Signaller, StopHandle, now};
use crate::system::users::give_up_capabilities;
use nyquist_convert::Progress;
use nyquist_convert::event::Timestamp;
use nyquist_server::ShutdownHandle;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The current phase.
#[derive(Default)]
pub(crate) enum Phase {
    /// Preparation of the recording or server that a request will end.
    #[default]
    Starting,
    /// The profile is converted and written. Requests do not end this.
    Saving,
    /// A command or an attached process is being recorded.
    Recording {
        /// Ends the recording.
        stop: StopHandle,
        /// The command. An attached process is not signalled.
        command: Option<Signaller>,
        /// The number of Ctrl-C so far.
        interrupts: u32,
    },
    /// Names are being looked up.
    Symbolicating(Arc<Progress>),
    /// The profile is served.
    Serving(ShutdownHandle),
}

/// Shares the phase with the thread that waits for signals.
#[derive(Clone)]
pub(crate) struct Control {
    state: Arc<Mutex<ControlState>>,
    /// Requests are taken under the lock of the state, so that the phase does not change until they are
    /// handled.
    requests: Arc<Requests>,
}

#[derive(Default)]
struct ControlState {
    phase: Phase,
    /// Requests that came before there was anything to end. They apply to the next phase.
    waiting: Vec<EndRequest>,
    /// The time of the last request to end a recording.
    end_requested: Option<Timestamp>,
}

impl Control {
    /// Starts the thread that waits for signals. It ends with the program.
    pub(crate) fn start(requests: Requests) -> Self {
        let control = Self { state: Arc::default(), requests: Arc::new(requests) };
        let shared = control.clone();
        std::thread::spawn(move || {
            // Signals are sent with the user's rights, and the thread outlives the recording.
            let _ = give_up_capabilities();
            while shared.requests.wait().and_then(|()| shared.handle_all(&mut shared.lock())).is_ok() {}
        });
        control
    }

    /// Sets the current phase. Requests that have come by now belong to the phase that ends. On a busy
    /// machine, the waiting thread may get a CPU only after the command that a key has ended was waited for.
    pub(crate) fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        // If they cannot be read, the waiting thread has ended, too.
        let _ = self.handle_all(&mut state);
        state.phase = phase;
        for request in std::mem::take(&mut state.waiting) {
            state.handle(request);
        }
    }

    /// The time of the request to end the recording, if there was one.
    pub(crate) fn end_requested(&self) -> Option<Timestamp> {
        self.lock().end_requested
    }

    /// Ends the recording, if there is one, because the command that limits it has ended.
    pub(crate) fn end_recording(&self) {
        let mut state = self.lock();
        if let Phase::Recording { stop, .. } = &state.phase {
            stop.stop();
            state.end_requested = Some(now());
        }
    }

    /// Handles the requests that have come.
    fn handle_all(&self, state: &mut ControlState) -> io::Result<()> {
        while let Some(request) = self.requests.take()? {
            state.handle(request);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, ControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ControlState {
    fn handle(&mut self, request: EndRequest) {
        match &mut self.phase {
            Phase::Starting => self.waiting.push(request),
            Phase::Saving => {}
            Phase::Recording { stop, command, interrupts } => {
                if request.signal == EndSignal::Interrupt {
                    *interrupts += 1;
                }
                self.end_requested = Some(now());
                end_recording(stop, command.as_ref(), request, *interrupts);
            }
            Phase::Symbolicating(progress) => progress.cancel.store(true, Ordering::Relaxed),
            Phase::Serving(server) => server.shut_down(),
        }
    }
}

/// The first Ctrl-C goes to the command, which may handle it; the recording goes on until the command
/// ends. The second ends the command. `Ctrl-\` always goes to the command only. SIGTERM ends the
/// recording, because its sender does not wait for long.
fn end_recording(stop: &StopHandle, command: Option<&Signaller>, request: EndRequest, interrupts: u32) {
    let Some(command) = command else { return stop.stop() };
    let signal = if interrupts > 1 { KILL } else { request.signal.number() };
    // The terminal sends its signals to the command itself.
    if !request.typed || signal == KILL {
        // A command that cannot be signalled has ended, or now belongs to another user. It is not ended then.
        let _ = command.send(signal);
    }
    if !matches!(request.signal, EndSignal::Interrupt | EndSignal::Quit) {
        stop.stop();
    }
}
