//! `claudecode`: sessions and their turns. Each verb has its own file.

mod chat;
mod chat_async;
mod create;
mod delete;
mod diff;
mod event;
mod fork;
mod get;
mod interrupt;
mod list;
mod poll;
mod rename;
mod send;
mod set_budget;
mod set_model;
mod set_permission_mode;
mod stop;
mod streams;
mod transcript;
mod trust_project;
mod update;
mod user_settings;

use crate::Hub;
use crate::hub::Method;
use crate::method::Activation;

/// The activation.
pub struct ClaudeCode;

impl Activation<Hub> for ClaudeCode {
    fn methods(&self) -> Vec<Method> {
        vec![
            create::method(),
            get::method(),
            diff::method(),
            list::method(),
            rename::method(),
            delete::method(),
            chat::method(),
            chat_async::method(),
            poll::method(),
            event::method(),
            streams::method(),
            stop::method(),
            interrupt::method(),
            send::method(),
            set_permission_mode::method(),
            set_model::method(),
            update::method(),
            trust_project::method(),
            user_settings::method(),
            set_budget::method(),
            fork::method(),
            transcript::method(),
        ]
    }
}
