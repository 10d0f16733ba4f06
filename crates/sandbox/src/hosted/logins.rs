//! An agent's login: in the sandbox while its program runs; renewed tokens return to the user's home.

use super::inside;
use super::tar::{Body, Member, Writer};
use crate::isolation::{AuthFile, gather, take_back};
use ralph_loop_domain::ports::{Sandbox, SandboxError};
use std::path::PathBuf;
use std::sync::Arc;

/// Which files below the user's home a command gets, by its arguments: an agent's program its own, others none.
pub type AuthFiles = Arc<dyn Fn(&[String]) -> Vec<AuthFile> + Send + Sync>;

#[derive(Clone)]
pub struct Logins {
    pub home: PathBuf,
    pub files: AuthFiles,
}

impl std::fmt::Debug for Logins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logins").field("home", &self.home).finish_non_exhaustive()
    }
}

pub(super) struct LoggedIn<'a> {
    logins: &'a Logins,
    files: Vec<(AuthFile, Vec<u8>)>,
}

impl Logins {
    pub(super) fn log_in(
        &self,
        sandbox: &dyn Sandbox,
        argv: &[String],
    ) -> Result<LoggedIn<'_>, SandboxError> {
        let mut files = gather(&self.home, (self.files)(argv));
        files.retain(|(file, _)| file.path.to_str().is_some());
        let unpacked = |error| SandboxError::Broken(format!("logins could not be packed: {error}"));
        let mut archive = Writer::default();
        for (file, bytes) in &files {
            let path = file.path.to_string_lossy().into_owned();
            archive.add(&Member { path, mode: 0o600, body: Body::File(bytes.clone()) }).map_err(unpacked)?;
        }
        if !files.is_empty() {
            inside::log_in(sandbox, archive.finish().map_err(unpacked)?)?;
        }
        Ok(LoggedIn { logins: self, files })
    }
}

impl LoggedIn<'_> {
    /// Removes them again and keeps what was renewed.
    pub(super) fn log_out(mut self, sandbox: &dyn Sandbox) -> Result<(), SandboxError> {
        if self.files.is_empty() {
            return Ok(());
        }
        let paths: Vec<&str> = self.files.iter().filter_map(|(file, _)| file.path.to_str()).collect();
        let left = inside::log_out(sandbox, &paths)?;
        take_back(&self.logins.home, &mut self.files, |path| {
            left.iter().find(|member| path.to_str() == Some(&member.path)).and_then(|member| {
                match &member.body {
                    Body::File(bytes) => Some(bytes.clone()),
                    _ => None,
                }
            })
        });
        Ok(())
    }
}
