//! Who makes sandboxes on this machine: the one list that every command asks.

use ralph_domain::ports::SandboxProvider;
use ralph_providers::{Daytona, DaytonaOptions, E2b, E2bOptions, Vercel, VercelOptions};
use ralph_sandbox::docker::{DockerOptions, DockerProvider};
use ralph_sandbox::sbx::{SbxOptions, SbxProvider, Tool};

/// Every provider that is configured here, whether it answers or not: a container engine whose address is known, a tool for
/// microVMs on the `PATH`, and clouds whose keys are set.
pub fn providers() -> Vec<Box<dyn SandboxProvider>> {
    let mut all: Vec<Box<dyn SandboxProvider>> = Vec::new();
    if let Some(options) = DockerOptions::found() {
        all.push(Box::new(DockerProvider::new(options)));
    }
    if let Some(tool) = Tool::find() {
        all.push(Box::new(SbxProvider::new(SbxOptions::new(tool))));
    }
    // A cloud is configured where its key is; half a configuration is as good as none here.
    let vars = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Ok(options) = DaytonaOptions::from_env(&vars) {
        all.push(Box::new(Daytona::new(options)));
    }
    if let Ok(options) = E2bOptions::from_env(&vars) {
        all.push(Box::new(E2b::new(options)));
    }
    if let Ok(options) = VercelOptions::from_env(&vars) {
        all.push(Box::new(Vercel::new(options)));
    }
    all
}
