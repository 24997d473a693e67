//! The contract: what every backend of the store promises, run on each of them. A promise is a function in `suite`
//! that is given an empty store; a new backend adds one line at the end of this file.
#![cfg(test)]

mod common;
mod suite;

/// Makes one test of each promise for a backend, whose `fresh()` returns a guard and an empty `Arc<dyn Store>`.
macro_rules! contract {
    ($backend:ident, $fresh:path, { $($topic:ident: $($promise:ident),+ $(,)?;)+ }) => {
        mod $backend {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $promise() {
                    let (_guard, store) = $fresh();
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
                a_session_is_read_as_it_was_made,
                names_are_unique_among_the_living,
                a_deleted_session_frees_its_name_and_stays_on_record,
                what_is_not_there_is_not_found,
                a_session_that_is_gone_makes_no_more,
                sessions_are_listed_oldest_first,
                a_living_session_is_shown_with_its_turn_and_what_is_open,
                a_node_becomes_the_head,
                what_a_session_was_given_for_its_servers_goes_with_it;
            runs:
                a_run_goes_from_starting_to_ended,
                a_token_speaks_for_its_run_until_that_ends,
                an_ended_run_stays_ended,
                open_runs_are_those_that_have_not_ended,
                a_journal_offset_is_stored_with_its_events;
            turns:
                turns_follow_one_another,
                a_turn_remembers_what_its_owner_needs,
                a_turn_ends_once,
                an_end_is_told_to_every_agent_above,
                what_turns_cost_is_added_up,
                events_are_numbered_from_zero_in_each_turn,
                events_are_read_in_pages,
                a_page_of_large_events_ends_early,
                an_event_is_read_exactly_as_it_was_written,
                positions_belong_to_one_reader_and_one_turn;
            approvals:
                asking_is_told_to_turn_and_addressee,
                the_event_of_an_edited_call_holds_the_input_that_ran,
                an_answer_is_told_to_turn_and_addressee,
                an_approval_is_decided_once,
                of_two_answers_at_once_exactly_one_wins,
                a_late_expiry_changes_nothing,
                an_approval_shows_the_present_name,
                open_approvals_are_found_by_session_and_by_addressee,
                a_key_is_taken_until_its_result_came,
                calls_live_until_their_result_came,
                the_first_delivery_counts,
                a_question_outside_any_turn_is_kept,
                a_permit_stream_is_found_by_its_event_id,
                what_is_alive_and_open_is_counted;
            way_up:
                whoever_is_passed_over_is_asked_all_the_same,
                a_question_goes_on_once_from_whoever_is_asked,
                deadlines_are_set_for_the_present_addressee,
                how_far_a_session_was_woken_only_grows;
            arbor:
                a_fork_shares_the_beginning_and_goes_its_own_way,
                a_page_of_a_long_path_is_found_from_its_end,
                long_texts_are_whole_wherever_they_are_said,
                words_are_found_in_any_script,
                a_tree_is_removed_when_nobody_lives_in_it;
            audit:
                a_decision_is_recorded_with_all_there_is_to_it,
                what_did_not_happen_is_not_on_record,
                calls_answered_by_rule_are_recorded,
                acts_over_tokens_sessions_and_rules_are_recorded,
                the_record_is_filtered_and_read_in_pages,
                the_record_is_read_backwards_by_the_same_filters,
                the_record_outlives_what_it_is_about,
                the_chain_holds_whatever_else_is_refused;
            budgets:
                a_share_is_taken_from_what_the_parent_has_left,
                a_deleted_child_gives_back_what_it_did_not_use,
                a_call_without_a_share_is_held_until_more_is_given,
                a_question_that_nobody_waits_for_is_withdrawn,
                no_more_is_given_than_the_giver_has_left,
                turns_and_children_are_refused_when_used_up,
                at_eighty_percent_those_above_are_told_once,
                no_sequence_of_acts_breaks_a_share;
            removals:
                events_of_an_old_turn_go_in_small_steps,
                large_events_go_one_at_a_time,
                what_may_still_be_needed_of_a_turn_stays,
                decisions_go_with_runs_that_are_over,
                runs_that_are_over_are_listed_until_their_files_are_gone;
            commits:
                a_commit_is_done_whole_or_not_at_all,
                a_commit_returns_approvals_as_they_are_at_its_end,
                feed_numbers_have_no_gaps_and_never_go_back,
                each_addressee_reads_its_own_feed,
                a_read_sees_every_commit_that_was_acknowledged,
                an_observer_is_told_before_the_caller_and_without_it,
                any_number_can_be_asked_for;
        });
    };
}

/// An empty SQLite store in a directory that goes away with the guard.
fn sqlite() -> (tempfile::TempDir, std::sync::Arc<dyn plexus_store::Store>) {
    let dir = tempfile::TempDir::new().unwrap();
    let store = common::open(&dir.path().join("plexus.db"));
    (dir, std::sync::Arc::new(store))
}

whole_contract!(on_sqlite, crate::sqlite);

/// An empty store in memory.
fn memory() -> ((), std::sync::Arc<dyn plexus_store::Store>) {
    ((), std::sync::Arc::<plexus_store::MemoryStore>::default())
}

whole_contract!(in_memory, crate::memory);
