//! Runs on a server, through the API of `ralph serve`, with the same labels and stream as local runs. Server
//! data is untrusted: bounded here and shown through `sanitize`.

mod address;
mod server;
mod stream;

pub use address::ServerAddress;
pub use server::Server;
pub use stream::ServerStream;
