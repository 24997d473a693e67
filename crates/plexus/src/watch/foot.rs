//! Draws the last line, with a message, a prompt or the typed text, and the help.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Clear, Paragraph};

use super::keys::KEYS;
use super::model::{Confirmation, InputPurpose, Mode, Model};
use super::view::{Focus, Paint, framed};
use crate::escape::{exact, one_line};
use crate::review::Tone;
use crate::review::width::{columns, cut, end};

/// Draws the last line: a message, a prompt or the keys.
pub(super) fn foot(model: &Model, frame: &mut Frame<'_>, area: Rect, paint: Paint) {
    let (tone, text) = match &model.mode {
        Mode::Moving | Mode::Help if !model.message.is_empty() => (Tone::Warn, model.message.clone()),
        Mode::Moving | Mode::Help => {
            (Tone::Dim, "a allow  d deny  e edit  r rule  tab pane  / filter  ? help  q quit".to_owned())
        }
        Mode::Typing(InputPurpose::Answer { .. }, text) if text.is_empty() && !model.message.is_empty() => {
            (Tone::Warn, format!("{} (Esc: back) _", model.message))
        }
        Mode::Typing(wanted, text) => {
            let typed = match wanted {
                InputPurpose::Rule(_) => exact(text),
                InputPurpose::Answer { questions, .. } => {
                    questions.first().map_or_else(|| exact(text), |question| question.explained(text))
                }
                _ => one_line(text),
            };
            (Tone::Strong, typing_line(&prompt(wanted), &typed, area.width.into()))
        }
        Mode::Confirming(_) if !model.message.is_empty() => (Tone::Warn, model.message.clone()),
        Mode::Confirming(Confirmation::Stop(id)) => {
            let name = model.session_of(Some(*id)).map_or_else(String::new, |it| it.path.clone());
            (Tone::Strong, format!("Stop {name} and all below it? y / n"))
        }
        Mode::Confirming(Confirmation::Edited(..)) => {
            (Tone::Strong, "Allow it with this input? y / n".to_owned())
        }
        Mode::Confirming(Confirmation::FreeText { words, .. }) => {
            (Tone::Strong, format!("Send this as your answer? y / n: \"{}\"", exact(words)))
        }
        Mode::Confirming(Confirmation::Remember(..)) => {
            (Tone::Strong, "Allow it and add this rule? y / n".to_owned())
        }
    };
    frame.render_widget(Line::styled(cut(&text, area.width.into()), paint.tone(tone)), area);
}

/// Whether the whole typed text fits on the last line.
pub(super) fn fits_beside_prompt(typed: &str, width: usize) -> bool {
    columns(typed) + CURSOR + width / 2 <= width
}

/// The prompt and the typed text. If the text is long, the prompt is cut to half of the line, and the end of the text is shown.
fn typing_line(prompt: &str, typed: &str, width: usize) -> String {
    let prompt = cut(prompt, (width / 2).max(width.saturating_sub(columns(typed) + CURSOR)));
    let room = width.saturating_sub(columns(&prompt) + CURSOR);
    format!("{prompt}{}_", end(typed, room))
}

/// Columns for the cursor, and one to spare.
const CURSOR: usize = 2;

fn prompt(wanted: &InputPurpose) -> String {
    match wanted {
        InputPurpose::Reason(_) => "Why not? (Enter alone: no reason, Esc: back) ".to_owned(),
        InputPurpose::Opinion(_) => "Note for the next decider? (Enter alone: none, Esc: back) ".to_owned(),
        InputPurpose::Rule(_) => "Allow and add this rule (Esc: back): ".to_owned(),
        InputPurpose::Time(_) => "Keep it open for how many seconds from now? ".to_owned(),
        InputPurpose::More(_) => "How much more? ".to_owned(),
        InputPurpose::Answer { questions, .. } => {
            let (asked, forms) =
                questions.first().map_or_else(Default::default, |it| (one_line(&it.text), it.forms()));
            format!("{} ({forms}): ", cut(&asked, 40))
        }
        InputPurpose::Filter => "/".to_owned(),
    }
}

/// Draws the help over everything else.
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
    let inner = framed(frame, middle, "Keys", Focus::Here);
    let lines: Vec<Line<'_>> = KEYS
        .iter()
        .map(|(key, does)| Line::styled(format!(" {key:<10} {does}"), paint.tone(Tone::Plain)))
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_text_and_the_prompt_are_shown() {
        assert_eq!(typing_line("Why not? ", "no", 20), "Why not? no_");
        assert_eq!(typing_line("Why not? (esc: back) ", "because", 20), "Why not? …because_");
        assert_eq!(typing_line("Why not? ", "abcdefghijklmnopq", 20), "Why not? ijklmnopq_");
    }

    #[test]
    fn a_rule_that_fits_is_shown_in_full() {
        for width in 0..100 {
            for length in 0..100 {
                let rule: String = ('a'..='z').cycle().take(length).collect();
                let line = typing_line("Allow and add this rule (Esc: back): ", &rule, width);
                assert!(!fits_beside_prompt(&rule, width) || line.ends_with(&format!("{rule}_")), "{line}");
            }
        }
    }
}
