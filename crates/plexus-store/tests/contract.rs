//! The contract suite: the promises of every backend. A promise is a function in `suite` that gets an empty store. A new backend
//! adds one line at the end of this file.
#![cfg(test)]

mod common;
mod suite;

use std::sync::Arc;

use plexus_store::Store;
use plexus_testkit::postgres::Postgres;
use plexus_testkit::skip;

/// Declares one test of each promise for a backend. Its `fresh(name)` returns a guard and an empty `Arc<dyn Store>`, or
/// `None` if the test is skipped.
macro_rules! contract {
    ($backend:ident, $fresh:path, { $($topic:ident: $($promise:ident),+ $(,)?;)+ }) => {
        mod $backend {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $promise() {
                    let Some((_guard, store)) = $fresh(stringify!($promise)) else { return };
                    crate::suite::$topic::$promise(store).await;
                }
            )+)+
        }
    };
}

macro_rules! whole_contract {
    ($backend:ident, $fresh:path) => {
        contract!($backend, $fresh, {
            sessions:
                a_session_is_read_as_it_was_created,
                names_are_unique_among_sessions_that_are_not_deleted,
                a_name_is_free_below_another_creator,
                a_deleted_session_frees_its_name_and_can_still_be_read,
                rows_that_do_not_exist_are_not_found,
                nothing_is_created_below_a_deleted_session,
                sessions_are_listed_oldest_first,
                a_session_is_listed_with_its_turn_and_its_pending_approvals,
                a_node_becomes_the_head,
                the_secrets_of_a_session_are_deleted_with_it,
                the_first_prompt_becomes_the_title_until_another_is_set,
                a_session_is_archived_until_it_works_or_asks_again,
                a_busy_session_cannot_be_archived,
                the_name_of_an_archived_session_is_taken,
                a_session_is_listed_with_its_unfinished_calls_and_its_last_event,
                the_newest_sessions_include_deleted_ones;
            history:
                ended_turns_are_found_by_time_with_their_cost,
                approvals_are_found_by_the_time_of_their_end_with_their_addressees,
                pending_approvals_are_spans_without_an_end,
                audit_entries_of_a_period_are_read_newest_first_up_to_a_bound,
                calls_are_counted_by_session_and_part_of_a_period,
                every_session_is_listed_with_its_creator;
            templates:
                a_template_is_stored_replaced_and_deleted_with_audit_entries,
                the_number_of_templates_is_limited;
            runs:
                a_run_goes_from_starting_to_ended,
                a_token_is_valid_until_its_run_ends,
                an_ended_run_stays_ended,
                open_runs_are_those_that_have_not_ended,
                a_journal_offset_is_stored_with_its_events;
            turns:
                turns_are_numbered_in_order_and_never_overlap,
                a_turn_stores_the_progress_of_its_owner,
                a_turn_ends_once,
                the_end_of_a_turn_is_reported_to_every_agent_above,
                the_costs_of_turns_are_added_up,
                events_are_numbered_from_zero_in_each_turn,
                events_are_read_in_pages,
                a_page_of_large_events_ends_early,
                an_event_is_read_exactly_as_it_was_written,
                positions_belong_to_one_reader_and_one_turn;
            approvals:
                a_new_approval_is_reported_in_its_turn_and_to_its_addressee,
                the_event_of_an_edited_call_contains_the_input_that_ran,
                a_resolved_approval_is_reported_in_its_turn_and_to_its_addressee,
                an_approval_is_decided_once,
                exactly_one_of_two_concurrent_answers_is_accepted,
                a_late_expiry_changes_nothing,
                an_approval_shows_the_current_session_name,
                pending_approvals_are_found_by_session_and_by_addressee,
                a_call_has_one_approval_until_its_tool_result_arrives,
                calls_are_listed_until_their_tool_result_arrives,
                a_call_is_not_allowed_by_rules_that_have_changed,
                a_revoked_rule_allows_no_open_approval,
                only_the_first_delivery_is_stored,
                approvals_are_published_as_they_are_stored,
                the_approvals_of_a_part_of_the_feed_are_found,
                an_approval_outside_any_turn_is_stored,
                a_permit_stream_is_found_by_its_event_id,
                sessions_and_pending_approvals_are_counted;
            escalation:
                an_addressee_that_is_passed_over_can_still_decide,
                an_approval_is_escalated_once_from_each_addressee,
                deadlines_are_set_for_the_current_addressee,
                the_feed_number_up_to_which_a_session_was_woken_only_grows;
            conversations:
                a_fork_shares_the_nodes_above_it_and_grows_independently,
                a_page_of_a_long_path_is_found_from_its_end,
                long_texts_are_read_back_whole,
                words_are_found_in_any_script,
                a_tree_is_removed_once_its_sessions_are_deleted;
            audit:
                a_decision_is_logged_with_the_call_and_its_history,
                a_refused_commit_has_no_audit_entry,
                calls_answered_by_rule_have_audit_entries,
                acts_on_tokens_sessions_and_rules_have_audit_entries,
                the_audit_log_is_filtered_and_read_in_pages,
                the_audit_log_is_read_backwards_with_the_same_filters,
                audit_entries_outlive_the_rows_they_are_about,
                the_chain_stays_valid_when_commits_are_refused;
            budgets:
                a_grant_is_taken_from_the_budget_above,
                a_deleted_session_returns_its_unused_budget,
                a_call_is_held_until_its_exhausted_budget_is_raised,
                a_budget_approval_that_nobody_waits_for_is_withdrawn,
                an_approval_cannot_grant_more_than_the_budget_above_has_left,
                turns_and_children_are_refused_when_their_budget_is_exhausted,
                every_ancestor_is_notified_once_at_80_percent,
                no_sequence_of_changes_breaks_the_budget_arithmetic;
            removals:
                events_of_an_old_turn_are_removed_in_small_steps,
                large_events_are_removed_one_at_a_time,
                events_that_may_still_be_needed_are_kept,
                approvals_and_calls_of_ended_runs_are_removed,
                ended_runs_are_listed_until_their_files_are_removed;
            commits:
                a_commit_is_applied_completely_or_not_at_all,
                a_commit_returns_approvals_in_their_final_state,
                feed_numbers_have_no_gaps_and_never_decrease,
                each_addressee_reads_its_own_feed,
                a_read_sees_every_commit_that_was_acknowledged,
                an_observer_is_notified_before_the_caller_even_if_the_caller_is_dropped,
                reads_accept_numbers_up_to_the_maximum;
        });
    };
}

/// A guard and an empty store.
type Fresh<G> = Option<(G, Arc<dyn Store>)>;

/// An empty SQLite store in a directory that is deleted with the guard.
fn sqlite(_test: &str) -> Fresh<tempfile::TempDir> {
    let dir = tempfile::TempDir::new().unwrap();
    let store = common::open(&dir.path().join("plexus.db"));
    Some((dir, Arc::new(store)))
}

whole_contract!(on_sqlite, crate::sqlite);

/// An empty database of a PostgreSQL server.
fn postgres(test: &str) -> Fresh<()> {
    let Some(server) = Postgres::shared() else {
        skip(test, "PostgreSQL");
        return None;
    };
    let store = common::postgres(&server.url(&server.database().unwrap()), &common::host("one")).unwrap();
    Some(((), Arc::new(store)))
}

whole_contract!(on_postgres, crate::postgres);

/// An empty store in memory.
fn memory(_test: &str) -> Fresh<()> {
    Some(((), Arc::<plexus_store::MemoryStore>::default()))
}

whole_contract!(in_memory, crate::memory);
