//! A pseudo-terminal with the program in it. It interprets the output as a terminal does, and tests press keys.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use plexus_testkit::picture::{Cell, Look};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use tokio::sync::watch;

use crate::support::LIMIT;

pub(crate) struct Terminal {
    master: File,
    screen: Arc<Mutex<vt100::Parser>>,
    grown: watch::Receiver<()>,
    /// All bytes that the program wrote.
    all: Arc<Mutex<Vec<u8>>>,
    /// Whether the program ever used the alternate screen.
    had_all: Arc<AtomicBool>,
    child: Running,
}

/// A program that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Terminal {
    /// Starts a program in a terminal of 80 by 24.
    pub(crate) fn start(command: Command) -> Self {
        Self::sized(command, 80, 24)
    }

    /// Starts a program in a terminal of this size.
    pub(crate) fn sized(mut command: Command, width: u16, height: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = File::options().read(true).write(true).open(Path::new(name.to_str().unwrap())).unwrap();
        tcsetwinsize(&master, size(width, height)).unwrap();
        let end = |slave: &File| Stdio::from(slave.try_clone().unwrap());
        command.stdin(end(&slave)).stdout(end(&slave)).stderr(end(&slave));
        // SAFETY: both are system calls that are allowed between fork and exec.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let child = Running(command.spawn().unwrap());
        let screen = Arc::new(Mutex::new(vt100::Parser::new(cells(height), cells(width), 0)));
        let (grow, grown) = watch::channel(());
        let master = File::from(master);
        let had_all = Arc::new(AtomicBool::new(false));
        let all = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&all);
        let (mut reader, seen, has_all) =
            (master.try_clone().unwrap(), Arc::clone(&screen), Arc::clone(&had_all));
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            let mut waiting: Vec<u8> = Vec::new();
            // Reading fails when no process has the terminal open. That is the end.
            while let Ok(read @ 1..) = reader.read(&mut piece) {
                written.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&piece[..read]);
                waiting.extend_from_slice(&piece[..read]);
                let whole = whole_frames(&waiting);
                let mut parser = seen.lock().unwrap_or_else(PoisonError::into_inner);
                parser.process(&waiting[..whole]);
                waiting.drain(..whole);
                has_all.fetch_or(parser.screen().alternate_screen(), Ordering::SeqCst);
                drop(parser);
                grow.send_replace(());
            }
        });
        Self { master, screen, grown, all, had_all, child }
    }

    /// All bytes that the program wrote.
    pub(crate) fn all(&self) -> Arc<Mutex<Vec<u8>>> {
        Arc::clone(&self.all)
    }

    /// Whether the program wrote this.
    pub(crate) fn wrote(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.all.lock().unwrap_or_else(PoisonError::into_inner)).contains(text)
    }

    pub(crate) fn text(&self) -> String {
        self.look(|screen| screen.contents())
    }

    /// The screen with a mark such as `{green}` at each change of the colour.
    pub(crate) fn coloured_text(&self) -> String {
        self.look(|screen| {
            let (rows, columns) = screen.size();
            let mut text = String::new();
            for row in 0..rows.get() {
                let mut line = String::new();
                let mut last = String::new();
                for cell in (0..columns.get()).filter_map(|column| screen.cell(row, column)) {
                    let look = look_of(cell);
                    if look != last && cell.has_contents() {
                        line.push_str(&format!("{{{look}}}"));
                        last = look;
                    }
                    line.push_str(if cell.has_contents() {
                        cell.contents()
                    } else if cell.is_wide_continuation() {
                        ""
                    } else {
                        " "
                    });
                }
                text.push_str(line.trim_end());
                text.push('\n');
            }
            text.trim_end().to_owned() + "\n"
        })
    }

    /// The rows of the screen down to the last one with text, for a picture.
    pub(crate) fn cells(&self) -> Vec<Vec<Cell>> {
        let used = self.text().trim_end().lines().count();
        self.look(|screen| {
            let columns = screen.size().1.get();
            let cell = |row, column| {
                let cell = screen.cell(row, column).unwrap();
                let colour = if let vt100::Color::Idx(colour) = cell.fgcolor() { Some(colour) } else { None };
                let text = if cell.has_contents() {
                    cell.contents()
                } else if cell.is_wide_continuation() {
                    ""
                } else {
                    " "
                };
                let (bold, dim, italic, reversed) = (cell.bold(), cell.dim(), cell.italic(), cell.inverse());
                Cell { text: text.to_owned(), look: Look { colour, bold, dim, italic, reversed } }
            };
            let rows = 0..u16::try_from(used).unwrap();
            rows.map(|row| (0..columns).map(|column| cell(row, column)).collect()).collect()
        })
    }

    /// Waits for the exit of a program that does not use the whole screen, and for all of its output.
    pub(crate) async fn exits(&mut self) -> ExitStatus {
        let ended = async { while self.grown.changed().await.is_ok() {} };
        tokio::time::timeout(LIMIT, ended).await.expect("it ends");
        self.child.0.wait().unwrap()
    }

    fn look<T>(&self, at: impl Fn(&vt100::Screen) -> T) -> T {
        at(self.screen.lock().unwrap_or_else(PoisonError::into_inner).screen())
    }

    /// Waits until the screen satisfies a condition.
    pub(crate) async fn until(&mut self, what: &str, wanted: impl Fn(&str) -> bool) {
        let waited = async {
            loop {
                self.grown.mark_unchanged();
                if wanted(&self.text()) {
                    return;
                }
                if self.grown.changed().await.is_err() {
                    assert!(wanted(&self.text()), "the program ended before: {what}\n{}", self.text());
                    return;
                }
            }
        };
        if tokio::time::timeout(LIMIT, waited).await.is_err() {
            panic!("it never shows: {what}\n{}", self.text());
        }
    }

    /// Waits until the screen contains this text.
    pub(crate) async fn shows(&mut self, text: &str) {
        self.until(text, |screen| screen.contains(text)).await;
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses a key until the screen satisfies a condition. A key right after an approval appears is ignored.
    pub(crate) async fn presses(&mut self, key: &str, what: &str, wanted: impl Fn(&str) -> bool) {
        let pressed = async {
            while !wanted(&self.text()) {
                let before = self.text();
                self.types(key);
                let mut grown = self.grown.clone();
                let changed = async {
                    while self.text() == before {
                        grown.changed().await?;
                    }
                    Ok::<_, watch::error::RecvError>(())
                };
                // If the key had no effect, it is pressed again.
                let wait = std::time::Duration::from_millis(200);
                let ended = matches!(tokio::time::timeout(wait, changed).await, Ok(Err(_)));
                assert!(!ended || wanted(&self.text()), "the program ended before: {what}\n{}", self.text());
            }
        };
        if tokio::time::timeout(LIMIT, pressed).await.is_err() {
            panic!("{key} does not lead to: {what}\n{}", self.text());
        }
    }

    pub(crate) fn resize(&mut self, width: u16, height: u16) {
        self.screen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .screen_mut()
            .set_size(cells(height), cells(width));
        tcsetwinsize(&self.master, size(width, height)).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.0.id().cast_signed()).unwrap(), signal).unwrap();
    }

    /// Waits for the exit of the program, and checks that the terminal is restored.
    pub(crate) async fn gives_back(mut self) -> ExitStatus {
        assert!(self.had_all.load(Ordering::SeqCst), "it had the whole screen");
        let screen = Arc::clone(&self.screen);
        self.until("the end", |_| is_as_it_was(&screen)).await;
        let status = tokio::task::spawn_blocking(move || (self.child.0.wait().unwrap(), self.master));
        let (status, master) = tokio::time::timeout(LIMIT, status).await.expect("it ends").unwrap();
        let modes = tcgetattr(&master).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ECHO | LocalModes::ICANON), "echo is on again");
        status
    }
}

/// The number of these bytes that a terminal with synchronized updates shows: all except an incomplete frame.
fn whole_frames(bytes: &[u8]) -> usize {
    let last = |mark: &[u8]| bytes.windows(mark.len()).rposition(|window| window == mark);
    match (last(b"\x1b[?2026h"), last(b"\x1b[?2026l")) {
        (Some(begun), ended) if ended.is_none_or(|ended| ended < begun) => begun,
        _ => bytes.len(),
    }
}

fn look_of(cell: &vt100::Cell) -> String {
    let colour = match cell.fgcolor() {
        vt100::Color::Idx(1) => "red",
        vt100::Color::Idx(2) => "green",
        vt100::Color::Idx(3) => "yellow",
        vt100::Color::Idx(6) => "cyan",
        _ => "",
    };
    let marks = [(cell.bold(), "bold"), (cell.dim(), "dim"), (cell.italic(), "italic")];
    let marks = marks.iter().filter(|(set, _)| *set).map(|(_, name)| *name);
    std::iter::once(colour).filter(|it| !it.is_empty()).chain(marks).collect::<Vec<_>>().join(" ")
}

fn is_as_it_was(screen: &Mutex<vt100::Parser>) -> bool {
    let parser = screen.lock().unwrap_or_else(PoisonError::into_inner);
    let screen = parser.screen();
    !screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste()
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

fn size(width: u16, height: u16) -> Winsize {
    Winsize { ws_col: width, ws_row: height, ws_xpixel: 0, ws_ypixel: 0 }
}
