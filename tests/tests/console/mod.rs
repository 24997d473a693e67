//! The web console in a real Chromium, on a real hub: a person signs in, sees approvals and answers them, and the agents act on
//! the answers. When a window closes, it fails the test if a page sent a request to another host, violated its content security
//! policy or threw an exception.

mod accessibility;
mod accessible_dialogs;
mod answer_anywhere;
mod answers;
mod approval_kinds;
mod at_a_glance;
mod credential;
mod demo;
mod every_action;
mod hostile;
mod images;
mod impostor;
mod large_data_dir;
mod large_lists;
mod live_updates;
mod lost_pages;
mod places;
mod review;
mod running_cost;
mod scale;
mod scene;
mod session;
mod shown_in_full;
mod sign_in;
mod signed_in_page;
mod sources;
mod states;
mod time_left;
