//! Settings, models, providers and notifications, from files and the environment.

pub(crate) mod dotenv;
pub(crate) mod dotenv_lines;
pub mod model_access;
pub mod models;
pub mod notify;
pub mod provider_calls;
pub mod providers;
pub(crate) mod server_policy;
pub mod settings;
