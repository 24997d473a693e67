//! The web console, in a real Chromium, on a real hub: a person signs in, sees what agents ask, answers it, and the agents do
//! accordingly. No page here may ask anybody but its hub, break its policy or throw; that is seen to when a window closes.

mod answers;
mod credential;
mod crowd;
mod demo;
mod desk;
mod door;
mod hostile;
mod impostor;
mod kinds;
mod live;
mod looks;
mod scene;
mod session;
mod shown;
mod sources;
