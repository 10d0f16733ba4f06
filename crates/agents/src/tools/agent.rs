//! The agent: a model with tools, one fresh conversation per session.

#[cfg(feature = "browser")]
use super::browser::Browsers;
use super::conversation;
use super::custom::CustomTool;
use super::process::Processes;
use super::toolbox::Toolbox;
use crate::session::Pricing;
use ralph_loop_domain::model::{ModelClient, ToolSpec};
use ralph_loop_domain::ports::{
    Agent, AgentResources, ReleaseWhen, Sandbox, SandboxError, SessionReport, SessionRequest, SessionSink,
};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_task::config::{AgentConfig, Models};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// The default system prompt.
const GUIDE: &str = include_str!("../../templates/tools.md");

/// A model with managed tools, until it stops.
///
/// Processes and browsers of a session may live on for the next one; [`Agent::release_resources`] ends them, at the
/// latest dropping the agent does.
pub struct ToolsAgent {
    config: AgentConfig,
    models: Models,
    pricing: Pricing,
    client: Arc<dyn ModelClient>,
    resources: SessionResources,
}

/// What an agent's sessions share: tools, and the processes and browsers that outlive a session.
pub(crate) struct SessionResources {
    pub(crate) toolbox: Toolbox,
    pub(crate) processes: Processes,
    #[cfg(feature = "browser")]
    pub(crate) browsers: Browsers,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) done_file: PathBuf,
}

/// Where `done` writes its summary: in the engine's folder, which is never handed over.
const DONE_FILE: &str = ".ralph/DONE.md";

impl ToolsAgent {
    /// An agent with the built-in tools and those of the calling program.
    pub fn new(
        config: AgentConfig,
        models: Models,
        pricing: Pricing,
        client: Arc<dyn ModelClient>,
        custom: Vec<Box<dyn CustomTool>>,
    ) -> Self {
        let resources = SessionResources {
            toolbox: Toolbox::new(custom, config.disable_default_tools),
            processes: Processes::default(),
            #[cfg(feature = "browser")]
            browsers: Browsers::default(),
            redactor: Arc::new(Redactor::default()),
            done_file: PathBuf::from(DONE_FILE),
        };
        Self { config, models, pricing, client, resources }
    }

    /// Redacts these secrets in tool results and files.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Arc<Redactor>) -> Self {
        self.resources.redactor = redactor;
        self
    }

    /// Puts browser files here instead of in `/tmp`, if the sandbox shares the whole machine.
    #[cfg(feature = "browser")]
    #[must_use]
    pub fn with_temp_dir(mut self, folder: PathBuf) -> Self {
        self.resources.browsers.temp = folder;
        self
    }

    /// Lets `done` write its summary there instead: a run may wait for that file.
    #[must_use]
    pub fn with_done_file(mut self, path: PathBuf) -> Self {
        self.resources.done_file = path;
        self
    }

    pub fn tools(&self) -> Vec<ToolSpec> {
        self.resources.toolbox.specs()
    }

    /// Ends what is idle or broken at `now`; [`ReleaseWhen::Idle`] with an explicit clock.
    fn tidy(&self, now: Instant) {
        self.resources.processes.tidy(now);
        // A browser takes some hundred megabytes, and a new one opens in a second.
        self.end_browsers();
    }

    fn end_browsers(&self) {
        #[cfg(feature = "browser")]
        self.resources.browsers.end_all();
    }
}

impl std::fmt::Debug for ToolsAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolsAgent").field("name", &self.config.name).finish_non_exhaustive()
    }
}

impl Agent for ToolsAgent {
    fn name(&self) -> &AgentName {
        &self.config.name
    }

    fn config(&self) -> Option<&AgentConfig> {
        Some(&self.config)
    }

    fn preamble(&self) -> String {
        self.config.system_prompt.as_deref().unwrap_or(GUIDE).to_owned()
    }

    fn session(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError> {
        let model = conversation::SessionModel {
            config: &self.config,
            models: &self.models,
            pricing: &self.pricing,
            client: &*self.client,
            resources: &self.resources,
        };
        conversation::session(&model, request, sandbox, sink)
    }

    fn resources(&self) -> AgentResources {
        let processes = self.resources.processes.list().into_iter().map(Into::into).collect();
        #[cfg(feature = "browser")]
        let browsers = self.resources.browsers.list();
        #[cfg(not(feature = "browser"))]
        let browsers = Vec::new();
        AgentResources { processes, browsers }
    }

    fn release_resources(&self, moment: ReleaseWhen) {
        match moment {
            ReleaseWhen::Idle => self.tidy(Instant::now()),
            ReleaseWhen::Everything => {
                self.end_browsers();
                self.resources.processes.end_all();
            }
        }
    }
}
