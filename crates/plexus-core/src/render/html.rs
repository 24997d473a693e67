//! Renders a conversation as an HTML page that needs no other file: texts in Markdown, changes as diffs, code with colours, decisions in
//! line. Nothing in a conversation becomes markup of its own (`markdown_text`), and the page can neither run nor load anything.

use std::borrow::Cow;
use std::fmt::Write as _;

use plexus_protocol::arbor::{Node, Role};
use plexus_protocol::{FileKind, FileType, visible};
use serde_json::Value;

use super::call::{Part, parts};
use super::highlight::{Token, tokens};
use super::markdown_text::rendered;
use super::{
    Ran, blocks, compaction, decision, file, kind, name, outcome, ran, requested, result, result_word,
    summary, text_of_block,
};
use crate::approvals::edited::Mark;

/// The start of a page, with a note below its title.
pub(crate) fn page_start(title: &str, note: Option<&str>) -> String {
    let note = note.map(|note| format!("<p>{}</p>\n", escaped(note))).unwrap_or_default();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<h1>{}</h1>\n{note}",
        escaped(title),
        escaped(title)
    )
}

/// The end of a page.
pub(crate) const PAGE_END: &str = "</body>\n</html>\n";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;\
    background:#fff}section{margin:1rem 0;padding:.5rem 1rem;border-left:.25rem solid #888}.user{border-color:#1a5fb4}\
    .assistant{border-color:#26a269}.outcome{border-color:#888;font-style:italic}h2{font-size:1rem;margin:0}\
    pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f3f3f3;padding:.5rem;margin:.5rem 0}\
    pre,p{unicode-bidi:plaintext}.decision{font-weight:600;padding:.1rem .5rem;border:2px solid #b58900;background:#fff8e1}.error pre{background:#fbe9e7}\
    h1,h2,h4,h5,h6{overflow-wrap:anywhere}h4,h5,h6{font-size:1rem;font-style:italic;margin:.5rem 0}.address{color:#767676;overflow-wrap:anywhere}table{border-collapse:collapse}\
    img{max-width:100%}td,th{border:1px solid #8886;padding:.2rem .5rem}blockquote{margin:0;padding-left:1rem;border-left:.2rem solid #8886}\
    code{background:#8882;padding:0 .2rem}.note{font-family:ui-monospace,monospace;margin:.5rem 0 0}\
    pre b{font-weight:400;color:#a626a4}pre s{text-decoration:none;color:#2a7d34}pre i{color:#767676}pre u{text-decoration:none;color:#986801}\
    ins,del{display:block;text-decoration:none}ins{background:#d7f5dd}del{background:#fbdcdc}\
    @media (prefers-color-scheme:dark){body{color:#eee;background:#1b1b1b}pre{background:#2b2b2b}.error pre{background:#4a2320}.decision{background:#3a3320}\
    a{color:#8ab4f8}pre b{color:#d59bf6}pre s{color:#98c379}pre i{color:#9a9a9a}pre u{color:#d7a35f}ins{background:#1d4428}del{background:#58262a}}";

/// Renders the nodes of a page.
pub(crate) fn html(nodes: &[Node]) -> String {
    let requested = requested(nodes);
    let mut out = String::new();
    for node in nodes {
        let class = match node.summary.role {
            Role::Root => continue,
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Outcome => {
                section(&mut out, "outcome", "", &paragraph(&outcome(&node.content)));
                continue;
            }
        };
        for block in blocks(node) {
            match kind(block) {
                "text" => section(&mut out, class, class, &rendered(text_of_block(block))),
                "thinking" => {
                    let thinking = rendered(block["thinking"].as_str().unwrap_or_default());
                    section(&mut out, class, "thinking", &thinking);
                }
                "tool_use" => {
                    let call: String = parts(name(block), &block["input"]).iter().map(part).collect();
                    section(&mut out, class, &format!("call: {}", name(block)), &call);
                }
                "tool_result" => {
                    let decided =
                        decision(block).map(|text| format!("<p class=\"decision\">{}</p>", escaped(&text)));
                    let class = if result_word(block) == "error" { "user error" } else { class };
                    let ran = ran(block, &requested).map(|ran| {
                        let shown = match &ran {
                            Ran::Edited(lines) => diff(lines.iter().map(String::as_str)),
                            Ran::Whole(_) | Ran::Answered(_) => code(&ran.text(), ran.language()),
                        };
                        format!("<p class=\"decision\">{}</p>{shown}", ran.word())
                    });
                    let body = format!(
                        "{}{}{}",
                        decided.unwrap_or_default(),
                        ran.unwrap_or_default(),
                        pre(&result(block))
                    );
                    section(&mut out, class, result_word(block), &body);
                }
                "image" | "document" => {
                    let body = format!("<p>{}</p>{}", escaped(&file(block)), picture(block));
                    section(&mut out, class, "attached", &body);
                }
                "file" => {
                    let body = format!("<p>{}</p>{}", escaped(&file(block)), pre(text_of_block(block)));
                    section(&mut out, class, "attached", &body);
                }
                "compaction" => {
                    let body = format!("<p>{}</p>{}", escaped(&compaction(block)), rendered(summary(block)));
                    section(&mut out, class, "compacted", &body);
                }
                other => section(&mut out, class, &format!("block: {other}"), &pre(&block.to_string())),
            }
        }
    }
    out
}

/// An image inside the page. A block that is not exactly a supported image in base64 is not shown: nothing in it can become markup.
fn picture(block: &Value) -> String {
    let source = &block["source"];
    let known = source["media_type"].as_str().and_then(FileType::named);
    let Some(known) = known.filter(|known| known.kind() == FileKind::Image) else { return String::new() };
    let data = source["data"].as_str().unwrap_or_default();
    if data.is_empty() || !data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)) {
        return String::new();
    }
    format!("<img alt=\"\" src=\"data:{};base64,{data}\">", known.media_type())
}

fn part(part: &Part) -> String {
    match part {
        Part::Note(text) => format!("<p class=\"note\">{}</p>", escaped(text)),
        Part::Code { text, language } => code(text, language),
        Part::Diff(lines) => {
            let lines: Vec<String> =
                lines.iter().map(|line| format!("{}{}", line.mark.sign(), line.text)).collect();
            diff(lines.iter().map(String::as_str))
        }
        Part::Markdown(text) => rendered(text),
    }
}

/// The lines of a diff, each with its sign.
fn diff<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut out = "<pre>".to_owned();
    for line in lines {
        let text = escaped(line);
        let shown = match line.chars().next() {
            Some(sign) if sign == Mark::Added.sign() => format!("<ins>{text}</ins>"),
            Some(sign) if sign == Mark::Removed.sign() => format!("<del>{text}</del>"),
            _ => format!("{text}\n"),
        };
        out.push_str(&shown);
    }
    out + "</pre>"
}

/// Source code with colours.
pub(super) fn code(text: &str, language: &str) -> String {
    let mut out = "<pre>".to_owned();
    for (token, text) in tokens(text, language) {
        let text = escaped(text);
        let tag = match token {
            Token::Plain => {
                out.push_str(&text);
                continue;
            }
            Token::Comment => "i",
            Token::String => "s",
            Token::Number => "u",
            Token::Keyword => "b",
        };
        let _ = write!(out, "<{tag}>{text}</{tag}>");
    }
    out + "</pre>"
}

fn section(out: &mut String, class: &str, title: &str, body: &str) {
    let title = if title.is_empty() { String::new() } else { format!("<h2>{}</h2>", escaped(title)) };
    let _ = writeln!(out, "<section class=\"{class}\">{title}{body}</section>");
}

fn pre(text: &str) -> String {
    format!("<pre>{}</pre>", escaped(text))
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>", escaped(text))
}

/// Escapes text: markup, control characters and direction characters become visible.
pub(super) fn escaped(text: &str) -> String {
    let shown = visible(text).map_or(Cow::Borrowed(text), Cow::Owned);
    let mut out = String::with_capacity(shown.len());
    for character in shown.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_inside_the_page_and_never_markup() {
        let image = |media_type: &str, data: &str| {
            picture(&serde_json::json!({"type": "image", "source": {"media_type": media_type, "data": data}}))
        };
        assert_eq!(image("image/png", "AA+/="), "<img alt=\"\" src=\"data:image/png;base64,AA+/=\">");
        for (media_type, data) in [
            ("image/svg+xml", "AAAA"),
            ("text/html", "AAAA"),
            ("application/pdf", "AAAA"),
            ("image/png", "AA\"><script>"),
            ("image/png\" onload=\"x", "AAAA"),
            ("image/png", ""),
        ] {
            assert_eq!(image(media_type, data), "", "{media_type} {data}");
        }
    }

    #[test]
    fn text_of_a_conversation_never_becomes_markup() {
        let hostile = "<script>alert(1)</script> \"' onload=x \u{1b}[31m\u{202e}gnp.exe";
        let shown = escaped(hostile);
        assert!(!shown.contains(['<', '>', '"', '\'', '\u{1b}', '\u{202e}']), "{shown}");
        assert!(page_start(hostile, Some(hostile)).contains("default-src 'none'"));
        assert!(!page_start(hostile, Some(hostile)).contains("<script>"));
    }
}
