//! The sandbox providers configured on this machine.

use crate::environment::Environment;
use crate::error::AppError;
use ralph_loop_domain::ports::SandboxProvider;
use ralph_loop_providers::{Daytona, DaytonaOptions, E2b, E2bOptions, Prices, Vercel, VercelOptions};
use ralph_loop_sandbox::docker::{DOCKERFILE, DockerOptions, DockerProvider};
use ralph_loop_sandbox::sbx::{SbxOptions, SbxProvider, Tool};
use ralph_loop_task::config::ProviderName;
use std::sync::Arc;

/// A configured provider, not contacted yet.
#[derive(Debug, Clone)]
pub enum ConfiguredProvider {
    /// A container engine with a known URL.
    Docker(Box<DockerOptions>),
    /// A microVM tool on the `PATH`.
    Sbx(SbxOptions),
    /// A cloud with its key set.
    Daytona(DaytonaOptions),
    E2b(E2bOptions),
    Vercel(VercelOptions),
}

impl ConfiguredProvider {
    /// The provider of this name, or what to set. `None` for `local`.
    pub fn find(env: &Environment, name: ProviderName) -> Result<Option<Self>, AppError> {
        let vars = env.lookup_filled();
        let no_key = |error: ralph_loop_providers::ProviderError| {
            AppError::environment(error.to_string())
                .hint(format!("set it for `--provider {0}`, in the environment or in `.env`; `--provider local` works on this machine", name.as_str()))
        };
        Ok(Some(match name {
            ProviderName::Local => return Ok(None),
            ProviderName::Docker => {
                let found = DockerOptions::found(env.vars()).ok_or_else(|| {
                    AppError::environment("no container engine was found on this machine")
                        .hint("start Docker or podman, or set DOCKER_HOST to its socket (`unix:///…`) or address (`tcp://…`)")
                })?;
                Self::Docker(Box::new(found))
            }
            ProviderName::Sbx => {
                let tool = Tool::find(env.vars()).ok_or_else(|| {
                    AppError::environment("neither `sbx` nor `docker sandbox` is installed")
                        .hint("install Docker Sandboxes (`sbx`), then sign in with `sbx login`")
                })?;
                Self::Sbx(SbxOptions::new(tool, env.vars()))
            }
            ProviderName::Daytona => {
                let mut options = DaytonaOptions::from_env(&vars).map_err(no_key)?;
                options.prices = Some(Prices::DAYTONA);
                options.dockerfile = Some(DOCKERFILE.to_owned());
                Self::Daytona(options)
            }
            ProviderName::E2b => {
                let mut options = E2bOptions::from_env(&vars).map_err(no_key)?;
                options.prices = Some(Prices::E2B);
                Self::E2b(options)
            }
            ProviderName::Vercel => Self::Vercel(VercelOptions::from_env(&vars).map_err(no_key)?),
        }))
    }

    /// The provider, without a workspace.
    pub fn provider(self) -> Box<dyn SandboxProvider> {
        match self {
            Self::Docker(options) => Box::new(DockerProvider::new(*options)),
            Self::Sbx(options) => Box::new(SbxProvider::new(options)),
            Self::Daytona(options) => Box::new(Daytona::new(options)),
            Self::E2b(options) => Box::new(E2b::new(options)),
            Self::Vercel(options) => Box::new(Vercel::new(options)),
        }
    }
}

/// Every configured provider, reachable or not; incomplete configurations are skipped.
pub fn providers(env: &Environment) -> Vec<Arc<dyn SandboxProvider>> {
    use ProviderName::{Daytona, Docker, E2b, Sbx, Vercel};
    let found =
        [Docker, Sbx, Daytona, E2b, Vercel].map(|name| ConfiguredProvider::find(env, name).ok().flatten());
    found.into_iter().flatten().map(|found| Arc::from(found.provider())).collect()
}
