//! Runs for other agents, over the Model Context Protocol.
//!
//! A [`RalphServer`] stands on [`ralph_loop_app::App`] as every face does: it starts runs as processes of their own, reads their record,
//! and steers them by letters in their inbox, in which it says that it was it. An agent that comes through here has no more rights
//! than the command line has without a terminal: what a repo asks for and the user has not allowed is refused, never asked.
//!
//! Over the network a [`Desk`] stands in between: a server that knows who asks, notes what they do and has a queue.
//!
//! Answers are bounded: a model pays for every line of them.

mod answers;
mod desk;
mod http;
mod resources;
mod server;
mod tools;
mod watch;

pub use desk::Desk;
pub use http::http_service;
pub use server::{RalphServer, Role, serve_stdio};
