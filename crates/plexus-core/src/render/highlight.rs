//! Marks comments, strings, numbers and common keywords in source code, for many languages with one small scanner. A wrong guess
//! changes a colour and never the text.

/// What a piece of code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Plain,
    Comment,
    String,
    Number,
    Keyword,
}

const KEYWORDS: [&str; 72] = [
    "and",
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "def",
    "default",
    "del",
    "do",
    "done",
    "elif",
    "else",
    "enum",
    "esac",
    "except",
    "export",
    "extends",
    "false",
    "fi",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "if",
    "impl",
    "import",
    "in",
    "interface",
    "is",
    "let",
    "local",
    "match",
    "mod",
    "mut",
    "new",
    "nil",
    "none",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "pub",
    "raise",
    "return",
    "select",
    "self",
    "static",
    "struct",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "use",
    "var",
    "where",
    "while",
    "with",
    "yield",
    "None",
];

/// Splits code into tokens; together they are the whole code.
pub(super) fn tokens<'a>(code: &'a str, language: &str) -> Vec<(Token, &'a str)> {
    let Some(comments) = comments(language) else { return vec![(Token::Plain, code)] };
    let mut tokens = Vec::new();
    let mut rest = code;
    let mut plain = 0;
    while plain < rest.len() {
        let at = &rest[plain..];
        let before = rest[..plain].chars().next_back();
        let (token, length) = next(at, before, comments);
        if token == Token::Plain {
            plain += length;
            continue;
        }
        if plain > 0 {
            tokens.push((Token::Plain, &rest[..plain]));
        }
        tokens.push((token, &at[..length]));
        (rest, plain) = (&at[length..], 0);
    }
    if !rest.is_empty() {
        tokens.push((Token::Plain, rest));
    }
    tokens
}

/// How comments of a language start; `None` for a text that is not code.
fn comments(language: &str) -> Option<&'static [&'static str]> {
    Some(match language {
        "" | "text" | "txt" | "md" | "markdown" | "log" | "csv" => return None,
        "sh" | "bash" | "zsh" | "shell" | "py" | "python" | "rb" | "ruby" | "yml" | "yaml" | "toml" | "r"
        | "pl" | "conf" => &["#"],
        "sql" | "lua" | "hs" => &["--"],
        "json" | "html" | "xml" | "svg" => &[],
        _ => &["//", "/*"],
    })
}

/// The token at the start of `at`, and its length.
fn next(at: &str, before: Option<char>, comments: &[&str]) -> (Token, usize) {
    let first = at.chars().next().unwrap_or_default();
    let line = at.find('\n').unwrap_or(at.len());
    let word_before = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if let Some(start) = comments.iter().find(|start| at.starts_with(**start)) {
        return match *start {
            "/*" => (Token::Comment, at.find("*/").map_or(at.len(), |end| end + 2)),
            // `$#` and `a#b` of a shell are no comments.
            "#" if before.is_some_and(|c| !c.is_whitespace()) => (Token::Plain, 1),
            _ => (Token::Comment, line),
        };
    }
    match first {
        // An apostrophe in a word, and a quote without its end on the line, start no string.
        '"' | '\'' | '`' if !word_before => match end_of_string(&at[..line], first) {
            Some(end) => (Token::String, end),
            None => (Token::Plain, 1),
        },
        c if c.is_ascii_digit() && !word_before => {
            let end = at.find(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_')).unwrap_or(at.len());
            (Token::Number, end)
        }
        c if c.is_alphabetic() || c == '_' => {
            let end = at.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(at.len());
            let is_keyword = !word_before && KEYWORDS.contains(&&at[..end]);
            (if is_keyword { Token::Keyword } else { Token::Plain }, end)
        }
        c => (Token::Plain, c.len_utf8()),
    }
}

fn end_of_string(line: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in line.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_numbers_and_keywords_are_found() {
        let of = |code, language| -> Vec<(Token, &str)> {
            tokens(code, language).into_iter().filter(|(token, _)| *token != Token::Plain).collect()
        };
        assert_eq!(
            of("let x = \"a\\\"b\"; // 12\n", "rs"),
            [(Token::Keyword, "let"), (Token::String, "\"a\\\"b\""), (Token::Comment, "// 12")]
        );
        assert_eq!(of("echo $# 'x' # 7", "bash"), [(Token::String, "'x'"), (Token::Comment, "# 7")]);
        assert_eq!(of("{\"a\": 1.5}", "json"), [(Token::String, "\"a\""), (Token::Number, "1.5")]);
        assert_eq!(of("don't if", "py"), [(Token::Keyword, "if")]);
        assert_eq!(of("/* a\nb */ x2", "c"), [(Token::Comment, "/* a\nb */")]);
        assert_eq!(of("if 7", "txt"), []);
    }

    #[test]
    fn the_tokens_join_to_the_whole_code() {
        for code in ["", "'", "\"ü", "é#ü '日' /*", "a\n\n\"b\\", "`x` 12_a.b"] {
            for language in ["", "rs", "py", "json", "sql"] {
                let joined: String = tokens(code, language).into_iter().map(|(_, text)| text).collect();
                assert_eq!(joined, code, "{language}");
            }
        }
    }
}
