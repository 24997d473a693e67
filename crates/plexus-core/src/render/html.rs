//! Renders a conversation as an HTML page. All content is escaped text, which can neither run nor load anything.

use std::borrow::Cow;
use std::fmt::Write as _;

use plexus_protocol::arbor::{Node, Role};
use plexus_protocol::visible;

use super::{blocks, decision, kind, name, outcome, ran, requested, result, result_word, text_of_block};

/// The start of a page.
pub(crate) fn page_start(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<h1>{}</h1>\n",
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
    pre,p{unicode-bidi:plaintext}.decision{font-weight:600}.error pre{background:#fbe9e7}\
    @media (prefers-color-scheme:dark){body{color:#eee;background:#1b1b1b}pre{background:#2b2b2b}.error pre{background:#4a2320}}";

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
                "text" => section(&mut out, class, class, &pre(text_of_block(block))),
                "thinking" => {
                    section(
                        &mut out,
                        class,
                        "thinking",
                        &pre(block["thinking"].as_str().unwrap_or_default()),
                    );
                }
                "tool_use" => {
                    let input = serde_json::to_string_pretty(&block["input"]).unwrap_or_default();
                    section(&mut out, class, name(block), &pre(&input));
                }
                "tool_result" => {
                    let decided =
                        decision(block).map(|text| format!("<p class=\"decision\">{}</p>", escaped(&text)));
                    let class = if result_word(block) == "error" { "user error" } else { class };
                    let ran = ran(block, &requested)
                        .map(|ran| format!("<p class=\"decision\">{}</p>{}", ran.word(), pre(&ran.text())));
                    let body = format!(
                        "{}{}{}",
                        decided.unwrap_or_default(),
                        ran.unwrap_or_default(),
                        pre(&result(block))
                    );
                    section(&mut out, class, result_word(block), &body);
                }
                other => section(&mut out, class, other, &pre(&block.to_string())),
            }
        }
    }
    out
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
fn escaped(text: &str) -> String {
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
    fn text_of_a_conversation_never_becomes_markup() {
        let hostile = "<script>alert(1)</script> \"' onload=x \u{1b}[31m\u{202e}gnp.exe";
        let shown = escaped(hostile);
        assert!(!shown.contains(['<', '>', '"', '\'', '\u{1b}', '\u{202e}']), "{shown}");
        assert!(page_start(hostile).contains("default-src 'none'"));
        assert!(!page_start(hostile).contains("<script>"));
    }
}
