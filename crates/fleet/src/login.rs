//! The login of a worker: changed for a token at the server, and kept on this machine for the user alone.

use crate::error::FleetError;
use ralph_loop_app::{AppError, Environment};
use ralph_loop_http::{
    Client, ClientOptions, Failure, HeaderValue, Method, ProxySettings, Request, Url, never_stop,
};
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// How long a server may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Bytes of its answer, and of the file.
const MAX: usize = 64 * 1024;

/// What a worker is let in with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Login {
    /// Its name.
    pub worker: String,
    /// The database, with the login of this worker alone.
    pub url: String,
}

/// The request that exchanges a token for a login.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnrolRequest {
    /// The token.
    pub token: String,
    /// The name that the worker wants.
    pub worker: String,
}

fn file(env: &Environment) -> Result<PathBuf, AppError> {
    Ok(env.state_home()?.path().join("worker.json"))
}

/// Changes a token for a login, and keeps that.
pub fn enrol(env: &Environment, server: &str, token: &str, worker: &str) -> Result<(), AppError> {
    let failed = |what: String| {
        AppError::environment(format!("the server does not let this machine in: {what}"))
            .hint("`ralph worker --new-token` on the server's machine makes a token that is good for an hour")
    };
    let url = Url::parse(&format!("{}/api/v1/fleet/enrol", server.trim_end_matches('/')))
        .map_err(|e| AppError::usage(format!("`{server}` isn't a server URL: {e}")))?;
    let asked = EnrolRequest { token: token.to_owned(), worker: worker.to_owned() };
    let body = serde_json::to_vec(&asked).map_err(|e| failed(e.to_string()))?;
    let request = Request::new(Method::POST, url).body(HeaderValue::from_static("application/json"), body);
    let proxy = ProxySettings::from_vars(&env.lookup());
    let client = Client::new(ClientOptions { proxy, ..ClientOptions::default() })
        .map_err(|e| failed(e.to_string()))?;
    let (status, _, answer) =
        client.fetch(&request, LIMIT, MAX, &mut never_stop).map_err(|error| match error {
            Failure::Transport(error) => failed(error.to_string()),
            Failure::TimedOut => failed("it did not answer in time".into()),
            Failure::Stopped(never) => match never {},
        })?;
    if status != 200 {
        let said: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
        return Err(failed(said["detail"].as_str().unwrap_or("it refused").to_owned()));
    }
    let login: Login =
        serde_json::from_slice(&answer).map_err(|e| failed(format!("its answer is not understood: {e}")))?;
    keep(env, &login)
}

fn keep(env: &Environment, login: &Login) -> Result<(), AppError> {
    let path = file(env)?;
    let write = || -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let fresh = path.with_extension("fresh");
        let _ = std::fs::remove_file(&fresh);
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        file.write_all(&serde_json::to_vec(login).unwrap_or_default())?;
        std::fs::rename(&fresh, &path)
    };
    write().map_err(|e| AppError::environment(format!("cannot write `{}`: {e}", path.display())))
}

/// The surroundings with the login that this machine was let in with, where it was. One that the variables name counts more.
pub fn with_login(env: &Environment) -> Result<Environment, AppError> {
    let path = file(env)?;
    if env.vars().filled("RALPH_DB_URL").is_some() || !path.is_file() {
        return Ok(env.clone());
    }
    let text = ralph_loop_safe_fs::read_plain(&path, MAX as u64)
        .map_err(|e| AppError::environment(format!("cannot read `{}`: {e}", path.display())))?;
    let login: Login = serde_json::from_slice(&text).map_err(|_| FleetError::Setup {
        what: format!("`{}` is damaged", path.display()),
        hint: "run `ralph worker --enrol URL --token TOKEN` to recreate it".into(),
    })?;
    let named = env.vars().filled("RALPH_WORKER").is_none().then_some(("RALPH_WORKER", login.worker));
    Ok(env.with_vars(env.vars().with(named.into_iter().chain([("RALPH_DB_URL", login.url)]))))
}
