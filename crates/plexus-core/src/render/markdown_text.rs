//! Texts of agents and users in Markdown. In a transcript they never look like its own structure: its headings, its decisions, its
//! links. In Markdown they are quoted; in HTML they are rendered. Nothing in them becomes markup of its own, runs or loads anything.

use plexus_protocol::visible;
use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html,
};

use super::html::{code, escaped};

const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// How often a text is changed. A change can make other markup effective, as in `<div>` around a heading.
const MAX_CHANGES: usize = 8;

/// The text as a quotation in a Markdown document. HTML, images and links in it are shown as they are written, and its headings are
/// smaller than those of the document.
pub(super) fn quoted(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    // A tab has another width behind the sign of a quotation, so the quotation is parsed, not the text.
    let mut quotation = in_quotes(&text);
    for _ in 0..MAX_CHANGES {
        let next = changed(&quotation);
        if next == quotation {
            return quotation;
        }
        quotation = next;
    }
    in_quotes(&fenced(&text, ""))
}

/// Every line of a text as a line of a quotation.
fn in_quotes(text: &str) -> String {
    let quote = |line: &str| if line.is_empty() { ">".to_owned() } else { format!("> {line}") };
    text.split('\n').map(quote).collect::<Vec<_>>().join("\n")
}

/// Encloses text in a fence that nothing in the text can close.
pub(super) fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

/// The text with changes that make its markup ineffective.
fn changed(text: &str) -> String {
    let parser = Parser::new_ext(text, OPTIONS.union(Options::ENABLE_FOOTNOTES));
    // `[name]: address` would make a link of `[name]` in every other text of the document.
    let definitions = parser.reference_definitions().iter().map(|(_, definition)| definition.span.start);
    let mut edits: Vec<(usize, usize, &str)> = definitions.map(|start| (start, 0, "\\")).collect();
    for (event, range) in parser.into_offset_iter() {
        let start = range.start;
        match event {
            Event::Html(_) | Event::InlineHtml(_) => {
                let signs = text[range].match_indices('<').map(|(at, _)| (start + at, 1, "&lt;"));
                edits.extend(signs);
            }
            Event::Start(Tag::Heading { level, .. }) => edits.extend(smaller(text, range, level)),
            Event::Start(Tag::Image { .. }) => edits.push((start + 1, 0, "\\")),
            Event::Start(Tag::Link { link_type: LinkType::Autolink | LinkType::Email, .. }) => {}
            // GitHub moves a footnote to the end of the document.
            Event::Start(Tag::Link { .. } | Tag::FootnoteDefinition(_)) | Event::FootnoteReference(_) => {
                edits.push((start, 0, "\\"));
            }
            // GitHub shows a quotation that starts with `[!NOTE]` as an alert.
            Event::Start(Tag::Paragraph) if text[range].starts_with("[!") => edits.push((start, 0, "\\")),
            _ => {}
        }
    }
    edits.sort_unstable();
    edits.dedup();
    let mut out = String::with_capacity(text.len() + edits.len());
    let mut copied = 0;
    for (at, len, replacement) in edits {
        if at >= copied {
            out.push_str(&text[copied..at]);
            out.push_str(replacement);
            copied = at + len;
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// The edit that makes a heading small. A heading that is underlined becomes a paragraph.
fn smaller(
    text: &str,
    range: std::ops::Range<usize>,
    level: HeadingLevel,
) -> Option<(usize, usize, &'static str)> {
    let heading = text[range.clone()].trim_end();
    let signs = heading.bytes().take_while(|byte| *byte == b'#').count();
    let starts_with_signs =
        (1..=6).contains(&signs) && heading[signs..].chars().next().is_none_or(char::is_whitespace);
    if !starts_with_signs {
        let line = heading.rfind('\n').map_or(0, |at| at + 1);
        let underline = line + heading[line..].find(['=', '-'])?;
        return Some((range.start + underline, 0, "\\"));
    }
    let small = match level {
        HeadingLevel::H1 => "####",
        HeadingLevel::H2 => "#####",
        HeadingLevel::H3 => "######",
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => return None,
    };
    Some((range.start, signs, small))
}

/// A short text in Markdown, in one line and without markup.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' | '!' => {
                out.extend(['\\', c])
            }
            c => out.push(c),
        }
    }
    out
}

/// A text in Markdown as a code span that nothing in the text can end.
pub(super) fn code_span(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    format!("{fence} {text} {fence}")
}

/// Renders a text as HTML. Its headings are smaller than those of a page.
pub(super) fn rendered(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    html::push_html(&mut out, SafeEvents { parser: Parser::new_ext(text, OPTIONS), links: Vec::new() });
    out
}

/// The events of a text without markup of its own. The address of a link follows its text, and images are named instead of loaded.
struct SafeEvents<'a> {
    parser: Parser<'a>,
    /// The address of each open link, as HTML.
    links: Vec<String>,
}

impl<'a> Iterator for SafeEvents<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let markup = |text: &str| Event::InlineHtml(CowStr::from(text.to_owned()));
        Some(match self.parser.next()? {
            Event::Text(text) => Event::Text(seen(text)),
            Event::Code(text) => Event::Code(seen(text)),
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(seen(text)),
            Event::Start(Tag::HtmlBlock) => markup("<p>"),
            Event::End(TagEnd::HtmlBlock) => markup("</p>"),
            Event::Start(Tag::Heading { level, .. }) => Event::Start(Tag::Heading {
                level: below_page(level),
                id: None,
                classes: Vec::new(),
                attrs: Vec::new(),
            }),
            Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(below_page(level))),
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match &kind {
                    CodeBlockKind::Fenced(language) => language.split_whitespace().next().unwrap_or_default(),
                    CodeBlockKind::Indented => "",
                };
                let mut text = String::new();
                for event in self.parser.by_ref() {
                    match event {
                        Event::Text(more) => text.push_str(&more),
                        _ => break,
                    }
                }
                Event::Html(code(&text, &language.to_lowercase()).into())
            }
            Event::Start(Tag::Link { dest_url, .. }) => {
                self.links.push(address(&dest_url));
                markup("")
            }
            Event::End(TagEnd::Link) => {
                let address = self.links.pop().unwrap_or_default();
                markup(&format!(" <span class=\"address\">({address})</span>"))
            }
            Event::Start(Tag::Image { .. }) => markup("<em>[image: "),
            Event::End(TagEnd::Image) => markup("]</em>"),
            other => other,
        })
    }
}

/// The level of a heading inside a page, whose own headings have the first two levels.
fn below_page(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H4,
        HeadingLevel::H2 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

/// The address of a link, as HTML. Only an address on the web can be followed, and it is its own text.
fn address(url: &str) -> String {
    let lower = url.to_ascii_lowercase();
    let followed = ["https://", "http://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme));
    let url = escaped(url);
    if followed { format!("<a href=\"{url}\" rel=\"noreferrer noopener\">{url}</a>") } else { url }
}

/// Makes misleading characters visible, after the parser has resolved character references.
fn seen(text: CowStr<'_>) -> CowStr<'_> {
    match visible(&text) {
        Some(shown) => CowStr::from(shown),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_has_no_effective_markup_that_the_document_uses() {
        for (text, expected) in [
            ("plain `<b>` *x*", "> plain `<b>` *x*"),
            ("a\n\nb\rc\r\nd", "> a\n>\n> b\n> c\n> d"),
            ("a <!-- b", "> a <!-- b"),
            ("<details>\nx", "> &lt;details>\n> x"),
            ("a <b>x</b>", "> a &lt;b>x&lt;/b>"),
            ("```\n<b>\n# x\n```", "> ```\n> <b>\n> # x\n> ```"),
            ("# A\n## User\n#### x", "> #### A\n> ##### User\n> #### x"),
            ("User\n----", "> User\n> \\----"),
            ("<div>\n## User\n</div>", "> &lt;div>\n> ##### User\n> &lt;/div>"),
            ("![i](http://x/y)", "> !\\[i](http://x/y)"),
            ("<p>\n![i](http://x/y)", "> &lt;p>\n> !\\[i](http://x/y)"),
            ("[a](http://x) <http://y>", "> \\[a](http://x) <http://y>"),
            ("[^1]\n\n[^1]: x", "> \\[^1]\n>\n> \\[^1]: x"),
            ("[!NOTE]\nx", "> \\[!NOTE]\n> x"),
            ("[a]: http://x", "> \\[a]: http://x"),
        ] {
            assert_eq!(quoted(text), expected, "{text}");
        }
        assert_eq!(literal("a*b\n<c>"), "a\\*b \\<c\\>");
        assert_eq!(code_span("a``b"), "``` a``b ```");
    }

    #[test]
    fn a_rendered_text_contains_no_markup_of_its_own() {
        let hostile = "x <script>y</script> [a](javascript:alert(1)) ![b](https://x/y.png) &#27;[31m \u{202e}z\n\n\
                       <iframe src=x>\n\n```html\n<b>\n```\n\n[c](https://example.org/\"onload=x)";
        let shown = rendered(hostile);
        for absent in
            ["<script", "href=\"javascript:", "<img", "<iframe", "<b>", "\u{1b}", "\u{202e}", "\"onload"]
        {
            assert!(!shown.contains(absent), "{absent}: {shown}");
        }
        assert!(shown.contains("[image: b]") && shown.contains("href=\"https://example.org/"), "{shown}");
        let shown = rendered("[https://bank.example](https://evil.example/x)");
        let address =
            "(<a href=\"https://evil.example/x\" rel=\"noreferrer noopener\">https://evil.example/x</a>)";
        assert!(shown.contains("<p>https://bank.example <span") && shown.contains(address), "{shown}");
    }

    #[test]
    fn markdown_is_rendered() {
        let shown = rendered("# Head\n\n- *one*\n- `two`\n\n| a |\n|---|\n| b |\n\n```rs\nlet x = 1;\n```\n");
        for part in ["<h4>Head</h4>", "<em>one</em>", "<code>two</code>", "<td>b</td>", "<b>let</b>"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}
