//! Runs of a server, over the API of `ralph serve`: the same words and the same stream as of a run of this machine. Whatever comes
//! from there is somebody else's text: bounded here, and shown through `sanitize` like everything else.

mod address;
mod server;
mod stream;

pub use address::ServerAddress;
pub use server::Server;
pub use stream::ServerStream;
