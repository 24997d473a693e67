//! The terminal: taken for the whole screen, and given back as it was, however we leave: by a key, a signal, an error or
//! a panic. It owns the screen and nothing of what is drawn.

use std::io::{self, Stdout, stdout};
use std::sync::Once;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use super::model::Model;
use super::view::{Paint, view};

/// The whole screen, until it is dropped.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    paint: Paint,
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
        let terminal = Terminal::new(CrosstermBackend::new(stdout())).inspect_err(|_| give_back())?;
        Ok(Self { terminal, paint })
    }

    /// Draws what the model says.
    pub(crate) fn draw(&mut self, model: &mut Model) -> io::Result<()> {
        panic_if_wanted();
        self.terminal.draw(|frame| view(model, frame, self.paint)).map(drop)
    }

    /// Leaves the screen to another program.
    pub(crate) fn lend(&mut self) {
        give_back();
    }

    /// Takes it again.
    pub(crate) fn take_again(&mut self) -> io::Result<()> {
        enter()?;
        // A new one knows of nothing that is on the screen. `Terminal::clear` would ask the terminal where the cursor is,
        // and not every one answers.
        execute!(stdout(), Clear(ClearType::All))?;
        self.terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(())
    }
}

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
    // What is pasted must not count as keys: some of them answer for an agent.
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)
}

/// Puts the terminal as it was. Twice does no harm, and a terminal that is gone needs nothing.
fn give_back() {
    let _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, crossterm::cursor::Show);
    let _ = disable_raw_mode();
}
