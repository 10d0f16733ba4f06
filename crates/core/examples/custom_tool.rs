//! Gives a model a tool of this program. Its schema is derived from the type of its arguments. The model here is a few
//! lines of code that call the tool once, so that the example runs offline; `ralph_loop_agents::HttpModelClient` calls real ones.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use ralph_loop_agents::ToolsAgent;
use ralph_loop_agents::tools::{ToolOutput, TypedTool};
use ralph_loop_core::{Completion, LoopAgent};
use ralph_loop_domain::model::{
    ModelClient, ModelError, ModelReply, ModelRequest, ModelSink, ReplyPart, StopReason, ToolCall,
};
use ralph_loop_domain::ports::WriteMode;
use ralph_loop_sandbox::memory::{MemorySandbox, MemoryWorkspace};
use ralph_loop_task::config::{AgentConfig, AgentKind, Models, Profile};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

/// The tool's arguments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Deploy {
    /// The branch to deploy.
    branch: String,
}

/// Calls the tool, then stops.
struct TinyModel;

impl ModelClient for TinyModel {
    fn call(
        &self,
        _: &Profile,
        request: &ModelRequest,
        _: &mut dyn ModelSink,
    ) -> Result<ModelReply, ModelError> {
        let called = request.messages.len() > 1;
        let (part, stop) = match called {
            false => {
                let input = serde_json::json!({ "branch": "main" });
                let call = ToolCall { id: "1".into(), name: "deployPreview".into(), input };
                (ReplyPart::ToolCall(call), StopReason::ToolUse)
            }
            true => (
                ReplyPart::Text { text: "Deployed.\n\n<promise>COMPLETE</promise>".into() },
                StopReason::EndTurn,
            ),
        };
        Ok(ModelReply { parts: vec![part], stop, tokens: None, cost: None, model: None, tries: 1 })
    }
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let temp = tempfile::tempdir()?;
    let deploy = TypedTool::new("deployPreview", "Deploy a preview of a branch.", |args: Deploy, sandbox| {
        let url = format!("https://{}.preview.example.com\n", args.branch);
        let path = Path::new("preview.txt");
        sandbox.write(path, url.as_bytes(), WriteMode::Replace).map_err(|error| error.to_string())?;
        Ok(ToolOutput::text(url))
    });
    let mut config = AgentConfig::model("model", AgentKind::Tools, "example/tiny");
    // Only this program's tool, and `done`.
    config.disable_default_tools = true;
    let pricing = Arc::new(|_: &str, _: &ralph_loop_protocol::money::Tokens| None);
    let model = ToolsAgent::new(
        config.clone(),
        Models::default(),
        pricing,
        Arc::new(TinyModel),
        vec![Box::new(deploy)],
    );
    println!("the model sees: {:?}", model.tools().iter().map(|tool| &tool.name).collect::<Vec<_>>());
    let sandbox = MemorySandbox::default();
    let agent = LoopAgent::builder()
        .workspace(MemoryWorkspace::new(&sandbox))
        .sandbox(sandbox)
        .agent_with(config, model)
        .task("Deploy a preview of `main`.")
        .repo(temp.path().join("repo"))
        .records(temp.path().join("records"))
        .completion(Completion::argv(["grep", "main.preview", "preview.txt"]))
        .build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let result = runtime.block_on(agent.run());
    println!("{}", result.summary);
    assert!(result.success, "{result:?}");
    Ok(())
}
