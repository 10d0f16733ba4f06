//! Who makes sandboxes on this machine: the one list that every command asks.

use ralph_domain::ports::SandboxProvider;
use ralph_sandbox::docker::{DockerOptions, DockerProvider};
use ralph_sandbox::sbx::{SbxOptions, SbxProvider, Tool};

/// Every provider that is configured here, whether it answers or not: a container engine whose address is known, and a tool
/// for microVMs on the `PATH`.
pub fn providers() -> Vec<Box<dyn SandboxProvider>> {
    let mut all: Vec<Box<dyn SandboxProvider>> = Vec::new();
    if let Some(options) = DockerOptions::found() {
        all.push(Box::new(DockerProvider::new(options)));
    }
    if let Some(tool) = Tool::find() {
        all.push(Box::new(SbxProvider::new(SbxOptions::new(tool))));
    }
    all
}
