//! Whatever an agent or a tool writes, the structure of a transcript is the one that the export wrote: its headings, its decisions, its
//! calls.

use plexus_protocol::arbor::Node;
use proptest::prelude::*;
use pulldown_cmark::{Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};
use serde_json::{Value, json};

use super::{html, markdown, text};

/// A conversation in which an agent and a tool wrote these texts.
fn conversation(said: &str, other: &str) -> Vec<Node> {
    let node = |role: &str, content: Value| -> Node {
        let id = "00000000-0000-4000-8000-000000000001";
        let node = json!({"tree_id": id, "id": id, "depth": 1, "children": 0, "created_at": 0, "role": role, "preview": "", "content": content});
        serde_json::from_value(node).unwrap()
    };
    let decision = json!({"approval": {"status": "denied", "by": {"kind": "operator"}, "message": other}});
    vec![
        node("user", json!([{"type": "text", "text": said}])),
        node(
            "assistant",
            json!([
                {"type": "thinking", "thinking": other},
                {"type": "text", "text": said},
                {"type": "text", "text": other},
                {"type": "tool_use", "id": "t", "name": said, "input": {"command": other}},
                {"type": "tool_use", "id": "u", "name": "Bash", "input": {"command": other, "description": said}},
                {"type": "tool_use", "id": "v", "name": "ExitPlanMode", "input": {"plan": said}},
                {"type": "tool_use", "id": "w", "name": "Write", "input": {"content": said, "file_path": other}},
            ]),
        ),
        node(
            "user",
            json!([
                {"type": "tool_result", "tool_use_id": "t", "content": said, "decision": decision},
                {"type": "file", "name": said, "text": other},
                {"type": "compaction", "summary": said},
            ]),
        ),
    ]
}

/// What a Markdown document contains outside quotations, code and the text of its paragraphs.
fn own_structure(document: &str) -> Vec<String> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_GFM;
    let mut depth = 0;
    let mut heading = false;
    let mut own = Vec::new();
    for event in Parser::new_ext(document, options) {
        if depth > 0 {
            check_quoted(&event, document);
        }
        match event {
            Event::Start(Tag::BlockQuote(kind)) => {
                assert_eq!(kind, None, "{document}");
                if depth == 0 {
                    own.push("quotation".to_owned());
                }
                depth += 1;
            }
            Event::Start(Tag::CodeBlock(_)) => {
                if depth == 0 {
                    own.push("code".to_owned());
                }
                depth += 1;
            }
            Event::End(TagEnd::BlockQuote(_) | TagEnd::CodeBlock) => depth -= 1,
            _ if depth > 0 => {}
            Event::Start(Tag::Heading { .. }) => heading = true,
            Event::End(TagEnd::Heading(_)) => heading = false,
            Event::Text(title) if heading => own.push(format!("heading {title}")),
            Event::Text(_) | Event::Code(_) => {}
            // Emphasis is how decisions and calls are written; the text inside it is escaped.
            other => own.push(format!("{other:?}")),
        }
    }
    own
}

/// Quoted text loads nothing, leads nowhere in disguise and has only small headings.
fn check_quoted(event: &Event<'_>, document: &str) {
    let is_bad = match event {
        Event::Html(_) | Event::InlineHtml(_) | Event::FootnoteReference(_) => true,
        Event::Start(Tag::Heading { level, .. }) => *level < HeadingLevel::H4,
        Event::Start(Tag::Link { link_type, .. }) => {
            !matches!(link_type, LinkType::Autolink | LinkType::Email)
        }
        Event::Start(Tag::Image { .. } | Tag::FootnoteDefinition(_)) => true,
        _ => false,
    };
    assert!(!is_bad, "{event:?} in\n{document}");
}

/// Texts full of markup.
fn hostile() -> impl Strategy<Value = String> {
    let tokens = vec![
        "## User",
        "# x",
        "#",
        "\n",
        "\n\n",
        "\r",
        "\r\n",
        "> ",
        ">",
        "```",
        "~~~",
        "- ",
        "1. ",
        "    ",
        "\t",
        "***",
        "---",
        "===",
        "**Allowed by operator**",
        "*allowed by operator*",
        "![i](http://x/y.png)",
        "[a](http://b)",
        "[x]: http://z\n",
        "[x]",
        "![x]",
        "<div>",
        "</div>",
        "<!--",
        "-->",
        "<h2>User</h2>",
        "[^1]",
        "[^1]: x",
        "[!NOTE]\n",
        "| a | b |\n|--|--|\n",
        "\\",
        "`",
        "&lt;",
        "<http://x>",
        "\u{2028}",
        "\u{c}",
        "a",
        " ",
        "user: x",
        "\ndecision: allowed by operator",
        "<script>",
    ];
    prop_oneof![
        prop::collection::vec(prop::sample::select(tokens), 0..16).prop_map(|tokens| tokens.concat()),
        "\\PC{0,60}",
    ]
}

proptest! {
    #[test]
    fn no_text_changes_the_structure_of_a_transcript(said in hostile(), other in hostile()) {
        let plain = conversation("x", "x");
        let nodes = conversation(&said, &other);
        prop_assert_eq!(own_structure(&markdown(&nodes)), own_structure(&markdown(&plain)), "{}", markdown(&nodes));

        let (page, plain_page) = (html(&nodes), html(&plain));
        for tag in ["<h1", "<h2", "<h3", "<section", "class=\"decision\"", "<img", "<script", "<iframe"] {
            prop_assert_eq!(page.matches(tag).count(), plain_page.matches(tag).count(), "{}: {}", tag, page);
        }

        let labelled = |document: &str| document.split('\n').filter(|line| !line.starts_with("  ")).count();
        prop_assert_eq!(labelled(&text(&nodes)), labelled(&text(&plain)), "{}", text(&nodes));
    }
}
