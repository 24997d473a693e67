//! SQL as PostgreSQL writes it.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_normalization::UnicodeNormalization as _;

use crate::node_text::{spaced, tokens};
use crate::sql::statements::{approval_and_call, before_approval, end_of_turn, nodes};
use crate::sql::{Dialect, HostStatements};

/// PostgreSQL refuses a word of more than 2,046 bytes.
const WORD_BYTES: usize = 2000;

pub(super) const DIALECT: Dialect = Dialect {
    begin_snapshot: "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    // Views with the same plans: the tables show a host with a role of its own less than it needs here.
    audit_head: "SELECT number, hash FROM audit_tail",
    next_tree: "SELECT coalesce(max(ordinal), 0) + 1 FROM tree_numbers",
    event_count: "SELECT coalesce((SELECT seq + 1 FROM event_numbers WHERE session = ?1 AND turn = ?2 ORDER BY seq DESC LIMIT 1), 0)",
    end_of_turn: end_of_turn!("event_numbers"),
    before_approval: before_approval!("event_numbers"),
    approval_and_call: approval_and_call!("event_numbers"),
    written_audit_entries: "SELECT number FROM audit_head",
    search: SEARCH,
    search_words: query,
    unindexed_nodes: "SELECT ordinal, content, long FROM nodes WHERE NOT indexed ORDER BY ordinal LIMIT ?1",
    is_indexed: "SELECT 1::BIGINT FROM node_text WHERE rowid = ?1",
    indexed_text: vector,
    add_to_index: ADD_TO_INDEX,
    hosts: Some(HostStatements {
        state: "SELECT state FROM hosts WHERE name = ?1",
        set_state: "UPDATE hosts SET state = ?2 WHERE name = ?1",
        fence: "WITH stopped AS (UPDATE host_roles SET stopped_at = (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT WHERE host = ?1 AND stopped_at IS NULL) \
            UPDATE hosts SET epoch = epoch + 1 WHERE name = ?1",
        sessions: "SELECT id FROM sessions WHERE host = ?1 AND deleted_at IS NULL ORDER BY ordinal",
        run_of_token: "SELECT r.session, r.run, r.state, r.token_hash, r.process, r.journal_offset, r.exit, r.created_at, r.ended_at, r.files FROM runs r JOIN sessions s ON s.id = r.session WHERE r.token_hash = ?2 AND r.state <> 'ended' AND (s.host = ?1 OR s.host IS NULL)",
        pending_approvals: "SELECT a.id FROM approvals a JOIN sessions s ON s.id = a.session \
            WHERE a.status = 'pending' AND s.host = ?1 ORDER BY a.number",
        slots: "SELECT h.slots, (SELECT count(*) FROM sessions s LEFT JOIN turns t ON t.session = s.id AND t.turn = s.latest_turn \
            WHERE s.host = h.name AND s.deleted_at IS NULL \
            AND (t.status = 'running' OR s.latest_turn = 0 AND s.archived_at IS NULL)) FROM hosts h WHERE h.name = ?1 AND h.slots IS NOT NULL",
        tallies: "SELECT h.name, (SELECT count(*) FROM sessions WHERE host = h.name AND deleted_at IS NULL) AS sessions, \
            count(a.number) AS open_approvals, (SELECT question FROM approvals WHERE number = min(a.number)) AS oldest_open \
            FROM hosts h LEFT JOIN (approvals a JOIN sessions s ON s.id = a.session AND a.status = 'pending') ON s.host = h.name \
            GROUP BY h.name ORDER BY h.name",
    }),
};

const SEARCH: &str = nodes!(
    "JOIN node_text f ON f.rowid = n.ordinal WHERE f.text @@ ?1::TEXT::TSQUERY AND (n.tree = ?2 OR ?2 IS NULL) \
     AND f.rowid < coalesce((SELECT ordinal FROM nodes WHERE id = ?3), 9223372036854775807) \
     ORDER BY f.rowid DESC LIMIT ?4"
);
const ADD_TO_INDEX: &str = "WITH node AS (UPDATE nodes SET indexed = TRUE WHERE ordinal = ?1 RETURNING ordinal) \
    INSERT INTO node_text (rowid, text) SELECT ordinal, ?2::TEXT::TSVECTOR FROM node";

/// The words of a text with their positions: the text form of a `tsvector`.
fn vector(text: String) -> String {
    let mut vector = String::new();
    for (i, word) in words(&text).enumerate() {
        // Writing to a string cannot fail. PostgreSQL takes a larger position as its largest.
        let _ = write!(vector, "'{word}':{} ", i + 1);
    }
    vector
}

/// A query for nodes that contain all words, each as a phrase: the text form of a `tsquery`.
fn query(text: &str) -> String {
    let phrase =
        |word: &str| words(&spaced(word)).map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" <-> ");
    let phrases = text.split_whitespace().map(phrase).filter(|phrase| !phrase.is_empty());
    phrases.map(|phrase| format!("({phrase})")).collect::<Vec<_>>().join(" & ")
}

/// The words of a text. They have letters and digits only, so nothing in them has a meaning in a `tsvector`. As in SQLite, marks above and below
/// letters do not count.
fn words(text: &str) -> impl Iterator<Item = String> {
    let plain: String = text.nfd().filter(|character| !matches!(character, '\u{300}'..='\u{36F}')).collect();
    tokens(&plain).into_iter().map(|mut word| {
        word.truncate(word.floor_char_boundary(WORD_BYTES));
        word
    })
}

/// The statement with parameters as PostgreSQL numbers them, without hints for the planner of SQLite, and with the hashes of the ids of calls: indexes have
/// these, because an id can be longer than PostgreSQL can index.
pub(super) fn translate(sql: &str) -> String {
    let mut translated = Cow::Borrowed(sql);
    while let Some((before, hint)) = translated.split_once(" INDEXED BY ") {
        let rest = hint.find(' ').map_or("", |end| &hint[end..]);
        translated = Cow::Owned(format!("{before}{rest}"));
    }
    for (equal, hash) in [
        ("tool_use_id = ?2", "md5(tool_use_id) = md5(?2) AND tool_use_id = ?2"),
        ("tool_use_id = ?3", "md5(tool_use_id) = md5(?3) AND tool_use_id = ?3"),
        (
            "c.tool_use_id = a.tool_use_id",
            "md5(c.tool_use_id) = md5(a.tool_use_id) AND c.tool_use_id = a.tool_use_id",
        ),
    ] {
        if translated.contains(equal) {
            translated = Cow::Owned(translated.replace(equal, hash));
        }
    }
    translated.replace('?', "$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_translated() {
        let sql = "SELECT a FROM t INDEXED BY t_a JOIN s INDEXED BY s_b WHERE a = ?1 AND b < ?12";
        assert_eq!(translate(sql), "SELECT a FROM t JOIN s WHERE a = $1 AND b < $12");
        assert_eq!(translate("COMMIT"), "COMMIT");
        let of_call = "SELECT 1 FROM calls WHERE run = ?1 AND tool_use_id = ?2";
        assert_eq!(
            translate(of_call),
            "SELECT 1 FROM calls WHERE run = $1 AND md5(tool_use_id) = md5($2) AND tool_use_id = $2"
        );
    }

    #[test]
    fn every_comparison_of_the_id_of_a_call_uses_its_hash() {
        for sql in crate::sql::statements::ALL.iter().map(|sql| translate(sql)) {
            let plain = sql.match_indices("tool_use_id = ").count();
            assert_eq!(plain, sql.matches("tool_use_id) = md5(").count(), "{sql}");
        }
    }

    #[test]
    fn no_statement_has_a_question_mark_or_a_hint_in_a_text() {
        for sql in crate::sql::statements::ALL {
            let texts = sql.split('\'').skip(1).step_by(2);
            assert!(texts.into_iter().all(|text| !text.contains('?') && !text.contains("INDEXED")), "{sql}");
        }
    }

    #[test]
    fn words_are_quoted() {
        assert_eq!(vector("Ein Wort, it's".to_owned()), "'ein':1 'wort':2 'it':3 's':4 ");
        assert_eq!(query("it's \"a | !b"), "('it' <-> 's') & ('a') & ('b')");
        assert_eq!(query("文件"), "('文' <-> '件')");
        assert_eq!(query("* ("), "");
        assert_eq!(query("h\u{337}\u{345} Müller mu\u{308}ller"), "('h') & ('muller') & ('muller')");
        assert!(vector("한".repeat(2000)).len() < 2046, "PostgreSQL refuses a longer word");
    }
}
