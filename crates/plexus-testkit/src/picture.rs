//! Draws a terminal screen as an SVG picture for the documentation. The caller reads the cells from its terminal.

use std::fmt::Write as _;

const CELL_WIDTH: f64 = 8.4;
const LINE_HEIGHT: usize = 18;
const MARGIN: usize = 12;
const FOREGROUND: &str = "#d8dee9";
const BACKGROUND: &str = "#1e222a";

/// How a cell looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// One of the eight ANSI colours; `None` is the default colour.
    pub colour: Option<u8>,
    /// Bold.
    pub bold: bool,
    /// Dim.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Foreground and background are exchanged.
    pub reversed: bool,
}

/// A cell of the screen. The second half of a wide character is a cell without text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The character.
    pub text: String,
    /// How it looks.
    pub look: Look,
}

/// The picture of these rows.
#[must_use]
pub fn svg(rows: &[Vec<Cell>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = (columns as f64 * CELL_WIDTH).ceil() as usize + 2 * MARGIN;
    let height = rows.len() * LINE_HEIGHT + 2 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{BACKGROUND}\"/>\n"
    );
    for (number, row) in rows.iter().enumerate() {
        let top = MARGIN + number * LINE_HEIGHT;
        for run in runs(row) {
            draw(&mut out, &run, top);
        }
    }
    out + "</svg>\n"
}

/// Neighbouring cells with the same look.
struct Run {
    column: usize,
    columns: usize,
    text: String,
    look: Look,
}

fn runs(row: &[Cell]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (column, cell) in row.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if run.look == cell.look => {
                run.columns += 1;
                run.text.push_str(&cell.text);
            }
            _ => runs.push(Run { column, columns: 1, text: cell.text.clone(), look: cell.look }),
        }
    }
    runs
}

fn draw(out: &mut String, run: &Run, top: usize) {
    let x = MARGIN as f64 + run.column as f64 * CELL_WIDTH;
    let width = run.columns as f64 * CELL_WIDTH;
    let colour = match run.look.colour {
        Some(1) => "#e06c75",
        Some(2) => "#98c379",
        Some(3) => "#e5c07b",
        Some(6) => "#56b6c2",
        _ => FOREGROUND,
    };
    let (ink, paper) = if run.look.reversed { (BACKGROUND, colour) } else { (colour, BACKGROUND) };
    if run.look.reversed {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{LINE_HEIGHT}\" fill=\"{paper}\"/>"
        );
    }
    if run.text.trim().is_empty() {
        return;
    }
    let mut style = String::new();
    for (set, attribute) in [
        (run.look.bold, " font-weight=\"bold\""),
        (run.look.dim, " opacity=\"0.6\""),
        (run.look.italic, " font-style=\"italic\""),
    ] {
        if set {
            style.push_str(attribute);
        }
    }
    let text = run.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // The length keeps the columns aligned in every font.
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{}\" textLength=\"{width:.1}\" fill=\"{ink}\"{style} xml:space=\"preserve\">{text}</text>",
        top + 14
    );
}
