//! Takes over the whole terminal and restores it on every exit: by a key, a signal, an error or a panic. It owns the screen, not what is
//! drawn on it.

use std::io::{self, BufWriter, Stdout, Write as _, stdout};
use std::sync::Once;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use plexus_protocol::ApprovalId;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use super::model::Model;
use super::view::{Paint, view};

/// The whole screen, until it is dropped.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    paint: Paint,
    /// What was drawn last.
    subject: Option<(Option<ApprovalId>, u64, usize)>,
}

impl Screen {
    /// Takes the screen.
    pub(crate) fn take(paint: Paint) -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                // Restore the terminal first, so that the message is readable.
                give_back();
                before(panic);
            }));
        });
        enter().inspect_err(|_| give_back())?;
        let terminal = new_terminal().inspect_err(|_| give_back())?;
        Ok(Self { terminal, paint, subject: None })
    }

    /// Draws the model.
    pub(crate) fn draw(&mut self, model: &mut Model) -> io::Result<()> {
        panic_if_wanted();
        // Terminals that support it show whole frames only.
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| view(model, frame, self.paint))?;
        if self.subject.is_some_and(|before| before != model.subject()) {
            // Terminals disagree about the width of some characters, so remains of another text must not stay in this one.
            self.forget()?;
            self.terminal.draw(|frame| view(model, frame, self.paint))?;
        }
        self.subject = Some(model.subject());
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        self.terminal.backend_mut().flush()
    }

    /// Clears the screen. A new `Terminal` assumes an empty screen; `Terminal::clear` would query the cursor, which not every terminal
    /// supports.
    fn forget(&mut self) -> io::Result<()> {
        execute!(stdout(), Clear(ClearType::All))?;
        self.terminal = new_terminal()?;
        Ok(())
    }

    /// Leaves the screen to another program.
    pub(crate) fn lend(&mut self) {
        give_back();
    }

    /// Takes the screen again.
    pub(crate) fn take_again(&mut self) -> io::Result<()> {
        enter()?;
        self.forget()
    }
}

fn new_terminal() -> io::Result<Terminal<CrosstermBackend<BufWriter<Stdout>>>> {
    Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(FRAME_BYTES, stdout())))
}

/// A frame up to this size is written at once.
const FRAME_BYTES: usize = 64 * 1024;

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Panics if the file named by `PLEXUS_WATCH_PANIC` exists; in debug builds only, for the test that a panic restores the terminal.
fn panic_if_wanted() {
    #[cfg(debug_assertions)]
    if let Some(file) = std::env::var_os("PLEXUS_WATCH_PANIC") {
        assert!(!std::path::Path::new(&file).exists(), "a test wants it");
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    // A paste must not count as keys, because keys answer approvals. A row that the terminal draws wider than expected must end at the edge:
    // on the next line it would become a part of the approval.
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, DisableLineWrap)
}

/// Restores the terminal. It is idempotent, and ignores a closed terminal.
fn give_back() {
    let _ = execute!(
        stdout(),
        EndSynchronizedUpdate,
        EnableLineWrap,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        crossterm::cursor::Show
    );
    let _ = disable_raw_mode();
}
