//! `claudecode`: sessions and their turns. Each verb has its own file.

mod archive;
mod chat;
mod chat_async;
mod commit;
mod compact;
mod create;
mod delete;
mod diff;
mod event;
mod fork;
mod get;
mod import;
mod imports;
mod interrupt;
mod keep_branch;
mod list;
mod merge;
mod output;
mod poll;
mod poll_news;
mod recent_dirs;
mod rename;
mod resumable;
mod send;
mod set_budget;
mod set_model;
mod set_permission_mode;
mod stop;
mod streams;
mod timeline;
mod transcript;
mod trust_project;
mod update;
mod user_settings;

use crate::Hub;
use crate::hub::Method;
use crate::method::Activation;

pub(super) use create::{check_params, check_working_dir};

/// The activation.
pub struct ClaudeCode;

impl Activation<Hub> for ClaudeCode {
    fn methods(&self) -> Vec<Method> {
        vec![
            create::method(),
            get::method(),
            diff::method(),
            commit::method(),
            merge::method(),
            keep_branch::method(),
            list::method(),
            rename::method(),
            delete::method(),
            chat::method(),
            chat_async::method(),
            compact::method(),
            poll::method(),
            event::method(),
            streams::method(),
            timeline::method(),
            output::method(),
            stop::method(),
            interrupt::method(),
            send::method(),
            set_permission_mode::method(),
            set_model::method(),
            update::method(),
            trust_project::method(),
            user_settings::method(),
            imports::method(),
            import::method(),
            set_budget::method(),
            fork::method(),
            transcript::method(),
            resumable::method(),
            recent_dirs::method(),
        ]
    }
}
