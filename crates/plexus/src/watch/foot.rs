//! Drawing what speaks to the user: the last line, with what was said or is being typed, and the keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Clear, Paragraph};

use super::keys::KEYS;
use super::model::{Doubt, Mode, Model, Wanted};
use super::view::{Paint, framed};
use crate::review::Tone;
use crate::review::width::{cut, one_line};

/// The last line: what was said, what is asked, or the keys.
pub(super) fn foot(model: &Model, frame: &mut Frame<'_>, area: Rect, paint: Paint) {
    let (tone, text) = match &model.mode {
        Mode::Moving | Mode::Help if !model.said.is_empty() => (Tone::Warn, model.said.clone()),
        Mode::Moving | Mode::Help => {
            (Tone::Dim, "a allow  d deny  e edit  r remember  tab pane  / filter  ? help  q quit".to_owned())
        }
        Mode::Typing(wanted, text) => {
            let typed = one_line(text);
            // The end of what is typed stays in sight.
            let asked = prompt(wanted);
            let room = usize::from(area.width).saturating_sub(asked.chars().count() + 2);
            let over = typed.chars().count().saturating_sub(room);
            (Tone::Strong, format!("{asked}{}_", typed.chars().skip(over).collect::<String>()))
        }
        Mode::Asking(Doubt::Stop(id)) => {
            let name = model.session_of(Some(*id)).map_or_else(String::new, |it| it.name.to_string());
            (Tone::Strong, format!("Stop {name} and all below it? y / n"))
        }
        Mode::Asking(Doubt::Edited(..)) if model.said.is_empty() => {
            (Tone::Strong, "Allow it with the input as you changed it? y / n".to_owned())
        }
        Mode::Asking(Doubt::Remember(..)) if model.said.is_empty() => {
            (Tone::Strong, "Allow it and add this rule? y / n".to_owned())
        }
        Mode::Asking(Doubt::Edited(..) | Doubt::Remember(..)) => (Tone::Warn, model.said.clone()),
    };
    frame.render_widget(Line::styled(cut(&text, area.width.into()), paint.tone(tone)), area);
}

fn prompt(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Reason(_) => "Why not? (enter alone: no reason, esc: back) ".to_owned(),
        Wanted::Opinion(_) => "What do you think of it? (enter alone: nothing, esc: back) ".to_owned(),
        Wanted::Rule(_) => "Allow and remember this rule (esc: back): ".to_owned(),
        Wanted::Time(_) => "Keep it open for how many seconds from now? ".to_owned(),
        Wanted::More(_) => "How much more? ".to_owned(),
        Wanted::Answer { questions, .. } => {
            let asked = questions.first().map_or_else(String::new, |question| one_line(&question.text));
            format!("{} (number or words): ", cut(&asked, 40))
        }
        Wanted::Filter => "/".to_owned(),
    }
}

/// All keys, over everything else.
pub(super) fn help(frame: &mut Frame<'_>, paint: Paint) {
    let area = frame.area();
    let [_, middle, _] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(KEYS.len() as u16 + 2),
        Constraint::Fill(1),
    ])
    .areas(area);
    let [_, middle, _] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(76), Constraint::Fill(1)]).areas(middle);
    frame.render_widget(Clear, middle);
    let inner = framed(frame, middle, "Keys", true);
    let lines: Vec<Line<'_>> = KEYS
        .iter()
        .map(|(key, does)| Line::styled(format!(" {key:<10} {does}"), paint.tone(Tone::Plain)))
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
}
