//! Draws the model as one frame of any size. In a small terminal the lower half shows the approval or the log, depending on the focus; in a
//! larger one both. It uses sixteen colours, and none if `NO_COLOR` is set: text and symbols carry all information.

use plexus_protocol::claudecode::{SessionView, Status};
use plexus_protocol::{Approval, ApprovalKind, Attention};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};

use super::foot::{foot, help};
use super::model::{Confirmation, HubState, Mode, Model, Pane};
use crate::escape::one_line;
use crate::plural::counted;
use crate::review::approval::span;
use crate::review::question::questions;
use crate::review::risk::labels;
use crate::review::width::cut;
use crate::review::{Row, Tone};
use crate::terminal::{hub_advice, tool_line};

/// From this height on, the approval and the log are shown together.
const TALL: u16 = 36;
/// The longest summary of an approval, which is cut to the width.
const SUMMARY: usize = 200;
/// From this width on, they are side by side.
const WIDE: u16 = 120;

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Sixteen colours.
    Colours,
    /// Bold, dim and reversed only.
    Plain,
}

impl Paint {
    pub(super) fn tone(self, tone: Tone) -> Style {
        let style = Style::default();
        match (tone, self) {
            (Tone::Plain, _) => style,
            (Tone::Dim, _) => style.add_modifier(Modifier::DIM),
            (Tone::Strong | Tone::Command, _) | (Tone::Warn, Self::Plain) => {
                style.add_modifier(Modifier::BOLD)
            }
            (Tone::Added, Self::Colours) => style.fg(Color::Green),
            (Tone::Removed, Self::Colours) => style.fg(Color::Red),
            (Tone::Warn, Self::Colours) => style.fg(Color::Yellow),
            (Tone::Added | Tone::Removed, Self::Plain) => style,
        }
    }
}

/// Draws the frame.
pub(crate) fn view(model: &mut Model, frame: &mut Frame<'_>, paint: Paint) {
    let [top, body, bottom] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)])
            .areas(frame.area());
    (model.drawn, model.drawn_session) = (None, None);
    model.width = frame.area().width.into();
    title(model, frame, top);
    let lists_high = (body.height / 3).max(5);
    let [lists, below] = Layout::vertical([Constraint::Length(lists_high), Constraint::Min(0)]).areas(body);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(lists);
    sessions(model, frame, left, paint);
    approvals(model, frame, right, paint);
    if is_legible(left) && model.sessions_shown().iter().any(|session| Some(session.id) == model.session) {
        model.drawn_session = model.session;
    }
    let listed = is_legible(right) && model.approvals_shown().iter().any(|it| Some(it.id) == model.approval);
    let reading_edit =
        matches!(model.mode, Mode::Confirming(Confirmation::Edited(..) | Confirmation::Remember(..)));
    if below.width >= WIDE || below.height >= TALL {
        let halves = [Constraint::Fill(1), Constraint::Fill(1)];
        let [first, second] = if below.width >= WIDE {
            Layout::horizontal(halves).areas(below)
        } else {
            Layout::vertical(halves).areas(below)
        };
        question(model, frame, first, paint);
        log(model, frame, second, paint);
    } else if reading_edit || (model.pane == Pane::Approvals && model.approval.is_some()) {
        question(model, frame, below, paint);
    } else {
        log(model, frame, below, paint);
    }
    if !listed || bottom.height == 0 {
        model.drawn = None;
    }
    foot(model, frame, bottom, paint);
    if model.mode == Mode::Help {
        help(frame, paint);
    }
}

fn title(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let cost = model.sessions.iter().fold(0.0, |sum, session| sum + session.cost_usd);
    let hub = match model.hub {
        HubState::Connected => String::new(),
        HubState::Disconnected => {
            let secs = model.disconnected_since.map_or(0, |since| model.now.saturating_sub(since));
            format!("  Disconnected. Reconnecting…{}", hub_advice(secs))
        }
    };
    let filter =
        if model.filter.is_empty() { String::new() } else { format!("  /{}", one_line(&model.filter)) };
    // The most important part first, because a narrow screen cuts the rest.
    let text = format!(
        " plexus{hub}  {}  {} open  ${cost:.2}{filter}",
        counted(model.sessions.len(), "session", "sessions"),
        model.approvals.len()
    );
    let text = format!("{:<width$}", cut(&text, area.width.into()), width = area.width.into());
    frame.render_widget(Line::styled(text, Style::default().add_modifier(Modifier::REVERSED)), area);
}

fn sessions(model: &Model, frame: &mut Frame<'_>, area: Rect, paint: Paint) {
    let shown = model.sessions_shown();
    let at = shown.iter().position(|session| Some(session.id) == model.session);
    let rows = shown.iter().map(|session| session_row(session)).collect();
    list(frame, area, paint, Listed { title: "Sessions", focus: Focus::of(model, Pane::Sessions), rows, at });
}

fn session_row(session: &SessionView) -> (Tone, String) {
    let (tone, state) = match session.status {
        Status::Idle => (Tone::Dim, "idle"),
        Status::Running => (Tone::Plain, "runs"),
        Status::AwaitingPermission => (Tone::Warn, "open"),
        Status::Complete => (Tone::Plain, "done"),
        Status::Failed => (Tone::Removed, "FAIL"),
        Status::Interrupted => (Tone::Dim, "cut "),
    };
    let indent = "  ".repeat(usize::try_from(session.depth).unwrap_or(0).min(8));
    // The rows above show the rest of the path, except for the agent outside the hub that a root belongs to.
    let name = if session.depth == 0 { session.path.as_str() } else { session.name.as_str() };
    let mut text = format!("{state} {indent}{}", one_line(name));
    if !session.loopback_enabled {
        text.push_str(" NO GATE");
    }
    for attention in &session.attention {
        text.push_str(match attention {
            Attention::Permission | Attention::Question | Attention::Plan => continue,
            Attention::Budget => " [needs budget]",
            Attention::RateLimited => " [rate limit]",
            Attention::ApiRetry => " [retries]",
            Attention::Stalled => " [stalled]",
        });
    }
    if session.pending_approvals > 0 {
        text.push_str(&format!(" ?{}", session.pending_approvals));
    }
    if session.cost_usd > 0.0 {
        text.push_str(&format!(" ${:.2}", session.cost_usd));
    }
    (tone, text)
}

fn approvals(model: &Model, frame: &mut Frame<'_>, area: Rect, paint: Paint) {
    let shown = model.approvals_shown();
    let at = shown.iter().position(|approval| Some(approval.id) == model.approval);
    let row = |approval: &&Approval| {
        let age = span(model.now.saturating_sub(approval.created_at));
        let mark = if model.answered.contains(&approval.id) { "… " } else { "" };
        let risks = labels(approval);
        let line = format!("{age:>3} {mark}{}: {risks}{}", approval.session_label(), summary(approval));
        (Tone::Warn, one_line(&line))
    };
    let rows = shown.iter().map(row).collect();
    list(
        frame,
        area,
        paint,
        Listed { title: "Approvals", focus: Focus::of(model, Pane::Approvals), rows, at },
    );
}

/// What an approval is about, in one line: the command, the file or the question.
fn summary(approval: &Approval) -> String {
    let tool = &approval.tool_name;
    match approval.kind {
        ApprovalKind::Tool => format!("{tool} {}", tool_line(tool, &approval.input, SUMMARY)),
        ApprovalKind::Plan => format!("plan: {}", tool_line(tool, &approval.input, SUMMARY)),
        ApprovalKind::Budget => "needs more budget".to_owned(),
        ApprovalKind::Question => match questions(&approval.input).first() {
            Some(question) => format!("asks: {}", question.text),
            None => "asks a question".to_owned(),
        },
    }
}

/// Whether keys act on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Here,
    Elsewhere,
}

impl Focus {
    fn of(model: &Model, pane: Pane) -> Self {
        if model.pane == pane { Self::Here } else { Self::Elsewhere }
    }
}

/// A list to select from.
struct Listed {
    title: &'static str,
    focus: Focus,
    rows: Vec<(Tone, String)>,
    at: Option<usize>,
}

fn list(frame: &mut Frame<'_>, area: Rect, paint: Paint, listed: Listed) {
    let inner = framed(frame, area, listed.title, listed.focus);
    let height = usize::from(inner.height).max(1);
    let first = listed.at.map_or(0, |at| (at + 1).saturating_sub(height));
    let lines: Vec<Line<'_>> = listed
        .rows
        .iter()
        .enumerate()
        .skip(first)
        .take(height)
        .map(|(number, (tone, text))| {
            let chosen = listed.at == Some(number);
            let text = format!("{}{text}", if chosen { "> " } else { "  " });
            let style = paint.tone(*tone);
            let style = if chosen && listed.focus == Focus::Here {
                style.add_modifier(Modifier::REVERSED)
            } else {
                style
            };
            Line::styled(cut(&text, inner.width.into()), style)
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

pub(super) fn framed(frame: &mut Frame<'_>, area: Rect, title: &str, focus: Focus) -> Rect {
    let (title, style) = match focus {
        Focus::Here => (format!("[{title}]"), Style::default().add_modifier(Modifier::BOLD)),
        Focus::Elsewhere => (format!(" {title} "), Style::default()),
    };
    let block = Block::bordered().title(cut(&title, area.width.saturating_sub(2).into())).border_style(style);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// The narrowest frame in which rows can be read.
const LEGIBLE: u16 = 20;

/// Whether a frame of this size shows anything.
fn is_legible(area: Rect) -> bool {
    area.width >= LEGIBLE && area.height >= 3
}

fn question(model: &mut Model, frame: &mut Frame<'_>, area: Rect, paint: Paint) {
    // In terminals with wide lines and dots, the border and the prefix of a row take one more column each.
    let width = usize::from(area.width.saturating_sub(4));
    model.prepare(width);
    let (all, height) = (model.shown.rows.len(), usize::from(area.height.saturating_sub(2)));
    model.down = model.down.min(all.saturating_sub(height));
    model.page = height;
    if is_legible(area) && model.mode != Mode::Help {
        model.drawn = model.approval;
        model.seen.show(model.down, height, all);
    }
    let title = if all > height {
        let more = if model.seen.all() { "" } else { "; space: next page" };
        format!("Approval, rows {}-{} of {all}{more}", model.down + 1, (model.down + height).min(all))
    } else {
        "Approval".to_owned()
    };
    let inner = framed(frame, area, &title, Focus::Elsewhere);
    let lines: Vec<Line<'_>> = match all {
        0 => vec![Line::styled("no open approvals", paint.tone(Tone::Dim))],
        _ => model.shown.rows.iter().skip(model.down).take(height).map(|row| line(row, paint)).collect(),
    };
    frame.render_widget(Paragraph::new(lines), inner);
}

fn log(model: &Model, frame: &mut Frame<'_>, area: Rect, paint: Paint) {
    let name = model.selected_session().map_or_else(String::new, |session| format!(" of {}", session.path));
    let back = if model.log.back > 0 { "; scrolled" } else { "" };
    let inner = framed(frame, area, &format!("Log{name}{back}"), Focus::of(model, Pane::Log));
    let rows = model.log.window(inner.width.into(), inner.height.into());
    let lines: Vec<Line<'_>> = rows.iter().map(|row| line(row, paint)).collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

fn line(row: &Row, paint: Paint) -> Line<'static> {
    Line::styled(format!("{}{}", row.lead, row.text), paint.tone(row.tone))
}
