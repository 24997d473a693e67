//! Texts of agents and users in Markdown. In a Markdown transcript they must not change what follows them; in HTML they are rendered,
//! and nothing in them becomes markup of its own, runs or loads anything.

use plexus_protocol::visible;
use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::html::{code, escaped};

const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// The text for a Markdown document: HTML in it is escaped, and a code block without an end is closed.
pub(super) fn contained(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut open_fence = None;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        match event {
            Event::Html(_) | Event::InlineHtml(_) if range.start >= copied => {
                out.push_str(&text[copied..range.start]);
                out.push_str(&text[range.clone()].replace('<', "&lt;"));
                copied = range.end;
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) if range.end == text.len() => {
                open_fence = unclosed_fence(&text[range]);
            }
            _ => {}
        }
    }
    out.push_str(&text[copied..]);
    if let Some(fence) = open_fence {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&fence);
    }
    out
}

/// The fence that would close a code block, unless its last line does.
fn unclosed_fence(block: &str) -> Option<String> {
    let block = block.trim_start();
    let mark = block.chars().next()?;
    let fence: String = block.chars().take_while(|c| *c == mark).collect();
    let last = block.trim_end().lines().next_back().unwrap_or_default().trim();
    let is_closed = block.trim_end().lines().nth(1).is_some()
        && last.len() >= fence.len()
        && last.chars().all(|c| c == mark);
    (!is_closed).then_some(fence)
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

/// Renders a text as HTML.
pub(super) fn rendered(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    html::push_html(&mut out, SafeEvents { parser: Parser::new_ext(text, OPTIONS), links: Vec::new() });
    out
}

/// The events of a text without markup of its own. Links lead only to the web, and images are named instead of loaded.
struct SafeEvents<'a> {
    parser: Parser<'a>,
    /// Whether each open link has a tag.
    links: Vec<Link>,
}

enum Link {
    Tagged,
    Plain,
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
            Event::Start(Tag::Link { dest_url, .. }) => match link(&dest_url) {
                Some(tag) => {
                    self.links.push(Link::Tagged);
                    Event::InlineHtml(tag.into())
                }
                None => {
                    self.links.push(Link::Plain);
                    markup("")
                }
            },
            Event::End(TagEnd::Link) => match self.links.pop() {
                Some(Link::Tagged) => markup("</a>"),
                _ => markup(""),
            },
            Event::Start(Tag::Image { .. }) => markup("<em>[image: "),
            Event::End(TagEnd::Image) => markup("]</em>"),
            other => other,
        })
    }
}

/// The start tag of a link that a reader may follow. It shows where it leads.
fn link(url: &str) -> Option<String> {
    let lower = url.to_ascii_lowercase();
    let followed = ["https://", "http://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme));
    let url = escaped(url);
    followed.then(|| format!("<a href=\"{url}\" title=\"{url}\" rel=\"noreferrer noopener\">"))
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
    fn a_text_does_not_change_what_follows_it() {
        for (text, expected) in [
            ("plain `<b>` *x*", "plain `<b>` *x*"),
            ("a <!-- b", "a <!-- b"),
            ("<details>\nx", "&lt;details>\nx"),
            ("a <b>x</b>", "a &lt;b>x&lt;/b>"),
            ("```rs\nfn", "```rs\nfn\n```"),
            ("```\n<b>\n```", "```\n<b>\n```"),
            ("~~~~\nx\n~~~", "~~~~\nx\n~~~\n~~~~"),
            ("```", "```\n```"),
        ] {
            assert_eq!(contained(text), expected, "{text}");
        }
        assert_eq!(literal("a*b\n<c>"), "a\\*b \\<c\\>");
        assert_eq!(code_span("a``b"), "``` a``b ```");
    }

    #[test]
    fn a_rendered_text_contains_no_markup_of_its_own() {
        let hostile = "x <script>y</script> [a](javascript:alert(1)) ![b](https://x/y.png) &#27;[31m \u{202e}z\n\n\
                       <iframe src=x>\n\n```html\n<b>\n```\n\n[c](https://example.org/\"onload=x)";
        let shown = rendered(hostile);
        for absent in ["<script", "javascript:", "<img", "<iframe", "<b>", "\u{1b}", "\u{202e}", "\"onload"] {
            assert!(!shown.contains(absent), "{absent}: {shown}");
        }
        assert!(shown.contains("[image: b]") && shown.contains("href=\"https://example.org/"), "{shown}");
    }

    #[test]
    fn markdown_is_rendered() {
        let shown = rendered("# Head\n\n- *one*\n- `two`\n\n| a |\n|---|\n| b |\n\n```rs\nlet x = 1;\n```\n");
        for part in ["<h1>Head</h1>", "<em>one</em>", "<code>two</code>", "<td>b</td>", "<b>let</b>"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}
