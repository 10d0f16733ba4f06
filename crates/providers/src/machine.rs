//! What a vendor must implement; everything else is shared.

use crate::error::ProviderError;
use crate::http::{VendorClient, Watch, never_stop};
use crate::script::quoted;
use ralph_loop_domain::ports::Preview;
use std::time::Duration;

pub(crate) const SHORT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub(crate) struct Shell {
    pub code: i32,
    pub out: String,
}

/// A vendor's machine. Paths are absolute.
pub(crate) trait Machine: Send + Sync + 'static {
    fn kind(&self) -> &'static str;
    fn id(&self) -> &str;
    /// The URL of the vendor's API that the machine was found with.
    fn server(&self) -> &str;
    /// Runs a short `sh` script.
    fn shell(&self, http: &VendorClient, script: &str, watch: Watch<'_>) -> Result<Shell, ProviderError>;
    /// Writes a file, creating its folders; `mode` is that of the file it replaces.
    fn put(
        &self,
        http: &VendorClient,
        path: &str,
        bytes: &[u8],
        mode: Option<u32>,
    ) -> Result<(), ProviderError>;
    fn get(&self, http: &VendorClient, path: &str) -> Result<Vec<u8>, ProviderError>;
    fn start(&self, http: &VendorClient) -> Result<(), ProviderError>;
    fn stop(&self, http: &VendorClient) -> Result<(), ProviderError>;
    fn destroy(&self, http: &VendorClient) -> Result<(), ProviderError>;
    fn preview(&self, http: &VendorClient, port: u16) -> Result<Preview, ProviderError>;
    fn keep_alive(&self, http: &VendorClient) -> Result<(), ProviderError>;
    /// How often a long command extends the machine's lifetime.
    fn keep_alive_every(&self) -> Duration;

    fn names(&self, http: &VendorClient, folder: &str) -> Result<Vec<String>, ProviderError> {
        let script = format!(
            "cd {} && for f in * .*; do [ -e \"$f\" ] || [ -L \"$f\" ] || continue; case \"$f\" in .|..) ;; *) printf '%s\\n' \"$f\";; esac; done; exit 0",
            quoted(folder)
        );
        let out = self.done(http, "list a folder", &script)?;
        Ok(out.lines().map(str::to_owned).collect())
    }
    fn make_dir(&self, http: &VendorClient, path: &str) -> Result<(), ProviderError> {
        self.done(http, "make a folder", &format!("mkdir -p {} 2>&1", quoted(path))).map(drop)
    }
    fn delete(&self, http: &VendorClient, path: &str) -> Result<(), ProviderError> {
        self.done(http, "remove a file", &format!("rm -f {} 2>&1", quoted(path))).map(drop)
    }
    fn set_mode(&self, http: &VendorClient, path: &str, mode: u32) -> Result<(), ProviderError> {
        self.done(http, "set permissions", &format!("chmod {mode:o} {} 2>&1", quoted(path))).map(drop)
    }

    /// Runs a script that must succeed.
    fn done(&self, http: &VendorClient, what: &str, script: &str) -> Result<String, ProviderError> {
        let shell = self.shell(http, script, &mut never_stop)?;
        if shell.code == 0 {
            return Ok(shell.out);
        }
        Err(http.garbled(what, format!("exit code {}: {}", shell.code, shell.out.trim())))
    }
}
