//! Runs for other agents, over the Model Context Protocol.
//!
//! A [`RalphServer`] uses [`ralph_loop_app::App`] like every interface: it starts runs as separate processes, reads
//! their record, and steers them with letters in their inbox, naming itself as the sender. An agent that uses it has
//! no more rights than the command line without a terminal: what a repo requests and the user hasn't allowed is
//! refused without asking.
//!
//! Over the network a [`RunService`] is in between: a server that authenticates callers, logs their actions and has a
//! queue.
//!
//! Answers are bounded: a model pays for every line.

mod answers;
mod desk;
mod http;
mod resources;
mod server;
mod tools;
mod watch;

pub use desk::RunService;
pub use http::http_service;
pub use server::{RalphServer, Role, serve_stdio};
