//! The terminal: taken for the whole screen, and given back as it was, however we leave: by a key, a signal, an error or
//! a panic. It owns the screen and nothing of what is drawn.

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
                // First the terminal, or nobody could read the rest.
                give_back();
                before(panic);
            }));
        });
        enter().inspect_err(|_| give_back())?;
        let terminal = new_terminal().inspect_err(|_| give_back())?;
        Ok(Self { terminal, paint, subject: None })
    }

    /// Draws what the model says.
    pub(crate) fn draw(&mut self, model: &mut Model) -> io::Result<()> {
        panic_if_wanted();
        // A terminal that can shows only whole frames.
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| view(model, frame, self.paint))?;
        if self.subject.is_some_and(|before| before != model.subject()) {
            // Terminals disagree about the width of some characters: what they left of another text must not stand in this one.
            self.forget()?;
            self.terminal.draw(|frame| view(model, frame, self.paint))?;
        }
        self.subject = Some(model.subject());
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        self.terminal.backend_mut().flush()
    }

    /// Clears the screen. A new `Terminal` knows of nothing that is on it; `Terminal::clear` would ask the terminal where the cursor
    /// is, and not every one answers.
    fn forget(&mut self) -> io::Result<()> {
        execute!(stdout(), Clear(ClearType::All))?;
        self.terminal = new_terminal()?;
        Ok(())
    }

    /// Leaves the screen to another program.
    pub(crate) fn lend(&mut self) {
        give_back();
    }

    /// Takes it again.
    pub(crate) fn take_again(&mut self) -> io::Result<()> {
        enter()?;
        self.forget()
    }
}

fn new_terminal() -> io::Result<Terminal<CrosstermBackend<BufWriter<Stdout>>>> {
    Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(FRAME_BYTES, stdout())))
}

/// A frame of this size is written at once.
const FRAME_BYTES: usize = 64 * 1024;

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Panics once `PLEXUS_WATCH_PANIC` names a file that is there; in debug builds only, for the test that the terminal
/// outlives it.
fn panic_if_wanted() {
    #[cfg(debug_assertions)]
    if let Some(file) = std::env::var_os("PLEXUS_WATCH_PANIC") {
        assert!(!std::path::Path::new(&file).exists(), "a test wants it");
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    // What is pasted must not count as keys: some of them answer for an agent. A row that the terminal draws wider than it was counted
    // must end at the edge: on the next line it would stand in what is to be decided.
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, DisableLineWrap)
}

/// Puts the terminal as it was. Twice does no harm, and a terminal that is gone needs nothing.
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
