//! Renders an agent's Markdown for a terminal: headings, lists, quotes, tables, code and emphasis, with words wrapped at the width. Each text is
//! escaped after parsing, because an entity such as `&#27;` becomes a control character only then. Links show their address.

mod table;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use self::table::Table;

use crate::escape::clean;
use crate::paint::{Ink, Paint};
use crate::review::width::{columns, wrap};

/// The narrowest column of text, in deeply nested lists.
const NARROWEST: usize = 8;

/// A piece of a line with one look.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    ink: Ink,
    text: String,
}

/// The rendered lines, each at most `width` columns wide.
pub(crate) fn render(text: &str, width: usize, paint: Paint) -> Vec<String> {
    let mut page = Page {
        width,
        paint,
        lines: Vec::new(),
        paragraph: Vec::new(),
        inks: Vec::new(),
        indents: Vec::new(),
        lists: Vec::new(),
        mark: None,
        links: Vec::new(),
        code: None,
        table: None,
        gap: false,
    };
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        page.event(event);
    }
    page.end_paragraph();
    page.lines
}

/// The text as it is, except that its tables are rendered, each line at most `width` columns wide. The result is not escaped.
pub(crate) fn with_tables(text: &str, width: usize) -> String {
    let (mut out, mut at, mut depth) = (String::new(), 0, 0_usize);
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                // The lines of a table in a list or a quote have a prefix.
                if let (0, Tag::Table(_), Some(source)) = (depth, tag, text.get(range.clone())) {
                    out.push_str(text.get(at..range.start).unwrap_or_default());
                    out.push_str(&render(source, width, Paint::Plain).join("\n"));
                    out.push('\n');
                    at = range.end;
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    out + text.get(at..).unwrap_or_default()
}

#[derive(Debug)]
struct Page {
    width: usize,
    paint: Paint,
    lines: Vec<String>,
    /// The open paragraph, in lines of spans.
    paragraph: Vec<Vec<Span>>,
    /// The inks of open emphasis.
    inks: Vec<Ink>,
    /// The prefixes of open quotes and list items.
    indents: Vec<String>,
    /// The next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// The mark of a list item whose first line is not written yet.
    mark: Option<String>,
    /// Addresses of open links.
    links: Vec<String>,
    /// The text of an open code block.
    code: Option<String>,
    /// The open table.
    table: Option<Table>,
    /// A blank line precedes the next block.
    gap: bool,
}

impl Page {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.push(self.ink(), &text),
            },
            Event::Code(text) if self.paint == Paint::Plain => self.push(Ink::Plain, &format!("`{text}`")),
            Event::Code(text) => self.push(Ink::Code, &text),
            Event::Html(text) | Event::InlineHtml(text) => self.push(Ink::Plain, &text),
            // A line break of an agent is meant as one: a table or a list of names.
            Event::SoftBreak | Event::HardBreak => self.paragraph.push(Vec::new()),
            Event::Rule => {
                self.end_paragraph();
                self.write(&[Span { ink: Ink::Dim, text: "---".to_owned() }]);
                self.gap = true;
            }
            // These need extensions that are off.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.push(Ink::Plain, &text);
            }
            Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.end_paragraph();
                self.inks.push(Ink::Strong);
                if self.paint == Paint::Plain {
                    self.push(Ink::Plain, &format!("{} ", "#".repeat(level as usize)));
                }
            }
            Tag::BlockQuote(_) => {
                self.end_paragraph();
                self.indents.push("> ".to_owned());
            }
            Tag::CodeBlock(_) => {
                self.end_paragraph();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.end_paragraph();
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_paragraph();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".to_owned(),
                };
                self.indents.push(" ".repeat(mark.len()));
                self.mark = Some(mark);
            }
            Tag::Table(aligns) => {
                self.end_paragraph();
                self.table = Some(Table::new(aligns));
            }
            Tag::TableHead | Tag::TableRow => {
                if tag == Tag::TableHead {
                    self.inks.push(Ink::Strong);
                }
                self.table.iter_mut().for_each(Table::start_row);
            }
            Tag::Emphasis => self.inks.push(Ink::Emphasis),
            Tag::Strong => self.inks.push(Ink::Strong),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.links.push(dest_url.to_string()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.end_paragraph();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.end_paragraph();
                self.inks.pop();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.end_paragraph();
                self.indents.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.end_paragraph();
                self.lists.pop();
                // A list within an item that has no blank lines gets none.
                self.gap |= self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_paragraph();
                if self.mark.is_some() {
                    self.write(&[]);
                }
                self.indents.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.paragraph).into_iter().flatten().collect();
                if let Some(table) = &mut self.table {
                    table.add(cell);
                }
            }
            TagEnd::TableHead => drop(self.inks.pop()),
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                for line in table.lines(self.room()) {
                    let text: String = line.iter().map(|span| self.paint.ink(span.ink, &span.text)).collect();
                    self.line(&text);
                }
                self.gap = true;
            }
            TagEnd::Emphasis | TagEnd::Strong => drop(self.inks.pop()),
            TagEnd::Link | TagEnd::Image => {
                let address = self.links.pop().unwrap_or_default();
                let shown = self.paragraph.last().and_then(|line| line.last());
                if shown.is_none_or(|shown| shown.text != clean(&address)) {
                    self.push(Ink::Dim, &format!(" ({address})"));
                }
            }
            _ => {}
        }
    }

    fn ink(&self) -> Ink {
        self.inks.last().copied().unwrap_or(Ink::Plain)
    }

    /// Adds text of the agent to the open paragraph.
    fn push(&mut self, ink: Ink, text: &str) {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 || self.paragraph.is_empty() {
                self.paragraph.push(Vec::new());
            }
            if let Some(last) = self.paragraph.last_mut().filter(|_| !line.is_empty()) {
                last.push(Span { ink, text: clean(line) });
            }
        }
    }

    fn end_paragraph(&mut self) {
        let mut lines = std::mem::take(&mut self.paragraph);
        // The newline at the end of HTML.
        lines.pop_if(|last| last.is_empty());
        for line in lines {
            self.write(&line);
        }
    }

    fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        let room = self.room().saturating_sub(2);
        for line in clean(&code).lines() {
            for piece in wrap(line, room) {
                self.line(&format!("  {}", self.paint.ink(Ink::Code, &piece)));
            }
        }
        self.gap = true;
    }

    /// The columns between the prefixes and the end of the line.
    fn room(&self) -> usize {
        let used: usize = self.indents.iter().map(String::len).sum();
        self.width.saturating_sub(used).max(NARROWEST)
    }

    /// Writes one line of spans, wrapped at words.
    fn write(&mut self, spans: &[Span]) {
        for line in wrap_words(spans, self.room()) {
            let text: String = line.iter().map(|span| self.paint.ink(span.ink, &span.text)).collect();
            self.line(&text);
        }
    }

    /// Writes one line with the prefixes of its block.
    fn line(&mut self, text: &str) {
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
            self.lines.push(String::new());
        }
        let mut prefix = self.indents.concat();
        if let Some(mark) = self.mark.take() {
            prefix.truncate(prefix.len() - mark.len());
            prefix.push_str(&mark);
        }
        self.lines.push(format!("{prefix}{text}").trim_end().to_owned());
    }
}

/// Wraps spans at blanks into lines of at most `width` columns. A longer word is cut.
fn wrap_words(spans: &[Span], width: usize) -> Vec<Vec<Span>> {
    let mut lines = vec![Vec::new()];
    let mut used = 0;
    for span in spans {
        for word in span.text.split_inclusive(' ') {
            let wide = columns(word.trim_end());
            if used > 0 && used + wide > width {
                lines.push(Vec::new());
                used = 0;
            }
            let pieces = if wide > width { wrap(word, width) } else { vec![word.to_owned()] };
            for (number, piece) in pieces.into_iter().enumerate() {
                if number > 0 {
                    lines.push(Vec::new());
                    used = 0;
                }
                used += columns(&piece);
                push_piece(&mut lines, span.ink, piece);
            }
        }
    }
    lines
}

/// Adds a piece to the last line, and to its last span if that looks the same.
fn push_piece(lines: &mut [Vec<Span>], ink: Ink, text: String) {
    let Some(line) = lines.last_mut() else { return };
    match line.last_mut() {
        Some(last) if last.ink == ink => last.text.push_str(&text),
        _ => line.push(Span { ink, text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, width: usize) -> Vec<String> {
        render(text, width, Paint::Plain)
    }

    #[test]
    fn blocks_are_rendered_with_blank_lines_between_them() {
        let text = "# Title\nIntro with `code` and **bold**.\n\n- one\n- two\n  1. deep\n  2. deeper\n\n> quoted\n\n```rust\nfn a() {\n\tb\n}\n```\nEnd.";
        assert_eq!(
            plain(text, 60),
            [
                "# Title",
                "",
                "Intro with `code` and bold.",
                "",
                "- one",
                "- two",
                "  1. deep",
                "  2. deeper",
                "",
                "> quoted",
                "",
                "  fn a() {",
                "      b",
                "  }",
                "",
                "End."
            ]
        );
        assert_eq!(plain("- a\n\n  more\n- b", 20), ["- a", "", "  more", "", "- b"]);
        assert_eq!(plain("7. a\n8. b\n-\n", 20), ["7. a", "8. b", "", "-"]);
    }

    #[test]
    fn words_are_wrapped_and_long_words_are_cut() {
        assert_eq!(plain("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(plain("- one two three", 13), ["- one two", "  three"]);
        assert_eq!(plain(&"x".repeat(25), 12), ["x".repeat(12), "x".repeat(12), "x".to_owned()]);
        assert_eq!(plain("日本語日本語日本語", 12), ["日本語日本語", "日本語"]);
    }

    #[test]
    fn a_table_has_aligned_columns() {
        let text = "Before\n\n| Name | Count | 日本 |\n|---|--:|:-:|\n| `a` | 12 | x |\n| longer **name** | 3 | 日本語 |\n\nAfter";
        assert_eq!(
            plain(text, 60),
            [
                "Before",
                "",
                "Name         Count   日本",
                "-----------  -----  ------",
                "`a`             12    x",
                "longer name      3  日本語",
                "",
                "After"
            ]
        );
        let coloured = render("| A |\n|---|\n| b |", 60, Paint::Colours);
        assert_eq!(coloured, ["\u{1b}[1mA\u{1b}[0m", "\u{1b}[2m-\u{1b}[0m", "b"]);
    }

    #[test]
    fn tables_in_other_text_are_rendered_and_the_rest_stays() {
        let text = "# Head\n\n| A | B |\n|---|---|\n| one | two |\n\n*rest*\n";
        assert_eq!(with_tables(text, 40), "# Head\n\nA    B\n---  ---\none  two\n\n*rest*\n");
        assert_eq!(with_tables("a | b\n", 40), "a | b\n");
    }

    #[test]
    fn a_wide_table_is_wrapped_and_then_listed() {
        let text = "| File | What it does |\n|---|---|\n| src/main.rs | starts the program and parses the words |\n| b | c |";
        assert_eq!(
            plain(text, 30),
            [
                "File         What it does",
                "-----------  -----------------",
                "src/main.rs  starts the",
                "             program and",
                "             parses the words",
                "b            c"
            ]
        );
        let many = "| One | Two | Three | Four |\n|---|---|---|---|\n| first cell | second | third | fourth cell |\n| a | b | c | d |";
        assert_eq!(
            plain(many, 20),
            [
                "One: first cell",
                "Two: second",
                "Three: third",
                "Four: fourth cell",
                "--",
                "One: a",
                "Two: b",
                "Three: c",
                "Four: d"
            ]
        );
    }

    #[test]
    fn colours_mark_code_and_emphasis() {
        assert_eq!(
            render("a `b` *c* **d**", 40, Paint::Colours),
            ["a \u{1b}[36mb\u{1b}[0m \u{1b}[3mc\u{1b}[0m \u{1b}[1md\u{1b}[0m"]
        );
        assert_eq!(render("## H", 40, Paint::Colours), ["\u{1b}[1mH\u{1b}[0m"]);
    }

    #[test]
    fn a_link_shows_its_address() {
        assert_eq!(plain("[docs](https://a.example)", 60), ["docs (https://a.example)"]);
        assert_eq!(plain("<https://a.example>", 60), ["https://a.example"]);
    }

    #[test]
    fn no_text_becomes_a_control_character() {
        let hostile = "&#27;[2J \u{1b}[31m\r `\u{9b}1m` [x](\u{202e}y) &#x202e; <b \u{7}>\n\n| &#27;[2J |\n|---|\n| \u{202e}\u{9b} |\n\n```\n\u{1b}]0;x\u{7}\n```";
        for paint in [Paint::Plain, Paint::Colours] {
            let lines = render(hostile, 30, paint).join("\n");
            let own = lines
                .replace("\u{1b}[36m", "")
                .replace("\u{1b}[1m", "")
                .replace("\u{1b}[2m", "")
                .replace("\u{1b}[0m", "");
            assert!(!own.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{own:?}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_width() {
        let text = "# A long heading of words\n\n- item `with code that is long` and [link](https://example.com/a/b/c)\n  - nested item with several words\n\n> quoted words that go on\n\n| a column | another `column` |\n|---|---|\n| words that go on | 日本語日本語日本語 |\n\n    code that is long, too";
        for width in 14..60 {
            for line in plain(text, width) {
                assert!(columns(&line) <= width, "{width}: {line}");
            }
        }
    }
}
