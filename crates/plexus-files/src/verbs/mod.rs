//! The verbs, one file each.

pub(crate) mod append_line;
pub(crate) mod count_changes;
pub(crate) mod create_worktree;
pub(crate) mod diff_worktree;
pub(crate) mod find_losses;
pub(crate) mod find_pushable;
pub(crate) mod find_transcript;
pub(crate) mod list_transcripts;
pub(crate) mod named_files;
pub(crate) mod plan_worktree;
pub(crate) mod prepare_commit;
pub(crate) mod prepare_merge;
pub(crate) mod read_file;
pub(crate) mod read_project;
pub(crate) mod read_transcript;
pub(crate) mod read_user_config;
pub(crate) mod recover_update;
pub(crate) mod remove_worktree;
pub(crate) mod resolve_dir;
pub(crate) mod take_baseline;
pub(crate) mod update_branch;
