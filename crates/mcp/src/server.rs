//! The protocol layer: lists tools and resources, and checks permissions.

use crate::answers::{result, words};
use crate::desk::RunService;
use crate::resources;
use crate::tools::{self, Arguments, TOOLS};
use crate::watch::{Listener, blocking, watch};
use ralph_loop_app::{App, AppError};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The caller's permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Read only.
    Viewer,
    #[default]
    Operator,
}

const INSTRUCTIONS: &str = "ralph runs a coding task through fresh agent sessions until the result is proven. Check a task with `lint_task`, start it with `start_run` (it runs in the background and costs money), follow it with `watch_run` or `run_status`, and read `run_result` at the end: only `done` with a proof is a result. `note` and `nudge` send text to the sessions; `pause_run`, `resume_run` and `stop_run` steer.";
const WATCH_SECONDS: u64 = 60;

#[derive(Debug, Clone)]
pub struct RalphServer {
    app: App,
    place: Place,
    role: Role,
}

#[derive(Debug, Clone)]
enum Place {
    Folder(PathBuf),
    RunService(Arc<dyn RunService>),
}

impl RalphServer {
    pub fn new(app: App, folder: PathBuf, role: Role) -> Self {
        Self { app, place: Place::Folder(folder), role }
    }

    /// A server for one caller of another server, which decides about changes.
    pub fn at_desk(app: App, desk: Arc<dyn RunService>, role: Role) -> Self {
        Self { app, place: Place::RunService(desk), role }
    }

    fn desk(&self) -> Option<&Arc<dyn RunService>> {
        match &self.place {
            Place::Folder(_) => None,
            Place::RunService(desk) => Some(desk),
        }
    }

    async fn folder(&self, named: Option<String>, must_be_clear: bool) -> Result<PathBuf, AppError> {
        match &self.place {
            Place::Folder(folder) => Ok(folder.clone()),
            Place::RunService(desk) => {
                let desk = desk.clone();
                blocking(move || desk.folder(named.as_deref(), must_be_clear)).await
            }
        }
    }

    fn may(&self, looks: bool) -> bool {
        looks || self.role == Role::Operator
    }
}

/// Serves on standard input and output until the client disconnects.
///
/// # Errors If the client doesn't speak the protocol.
pub fn serve_stdio(server: RalphServer) -> Result<(), AppError> {
    let failed =
        |why: String| AppError::environment("the Model Context Protocol could not be served").cause(why);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| failed(e.to_string()))?;
    let served = runtime.block_on(async {
        let running = server.serve(rmcp::transport::stdio()).await.map_err(|e| e.to_string())?;
        running.waiting().await.map(drop).map_err(|e| e.to_string())
    });
    // A thread that waits for standard input ends with the process.
    runtime.shutdown_background();
    match served {
        Ok(()) => Ok(()),
        // The client left without a message.
        Err(why) if why.contains("connection closed") => Ok(()),
        Err(why) => Err(failed(why)),
    }
}

/// Sends progress if the call requested it.
struct Progress {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
}

impl Listener for Progress {
    async fn send_progress(&mut self, number: u64, sentence: String) -> bool {
        let Some(token) = self.token.clone() else { return true };
        let note = ProgressNotificationParam::new(token, number as f64).with_message(sentence);
        self.peer.notify_progress(note).await.is_ok()
    }
}

impl ServerHandler for RalphServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("ralph", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let here = self.desk().is_none();
        let tools = TOOLS.iter().filter(|tool| self.may(tool.looks)).map(|tool| tool.listed(here));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = TOOLS.iter().find(|tool| tool.name == request.name && self.may(tool.looks));
        let Some(tool) = tool else {
            return Err(ErrorData::invalid_params(format!("unknown tool `{}`", request.name), None));
        };
        let args = Arguments::of(tool, request.arguments, self.desk().is_none())
            .map_err(|why| ErrorData::invalid_params(why, None))?;
        let folder = match self.folder(args.folder(), tool.name == "lint_task").await {
            Ok(folder) => folder,
            Err(error) => return Ok(result(Err(error)).into()),
        };
        let (app, desk) = (self.app.clone(), self.desk().cloned());
        let outcome = if tool.name == "watch_run" {
            let token = context.meta.get_progress_token();
            let mut listener = Progress { peer: context.peer.clone(), token };
            let longest = Duration::from_secs(args.number("seconds").unwrap_or(WATCH_SECONDS).clamp(1, 3600));
            let run = args.run().map(str::to_owned);
            tokio::select! {
                seen = watch(app, folder, run, longest, &mut listener) => seen,
                () = context.ct.cancelled() => Err(AppError::usage("the call was cancelled; the run continues")),
            }
        } else {
            let here = tools::Here { app, folder, desk };
            blocking(move || tools::call(&here, tool.name, &args)).await
        };
        Ok(result(outcome).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (app, everywhere) = (self.app.clone(), self.desk().is_some());
        let found = match self.folder(None, false).await {
            Ok(folder) => blocking(move || resources::list(&app, &folder, everywhere)).await,
            Err(error) => Err(error),
        };
        found
            .map(ListResourcesResult::with_all_items)
            .map_err(|error| ErrorData::internal_error(words(&error), None))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (app, everywhere, uri) = (self.app.clone(), self.desk().is_some(), request.uri.clone());
        let missing = |why: String| ErrorData::resource_not_found(why, None);
        let folder = self.folder(None, false).await.map_err(|error| missing(words(&error)))?;
        match blocking(move || resources::read(&app, &folder, everywhere, &uri)).await {
            Ok(Some((text, mime))) => {
                let content = ResourceContents::text(text, request.uri).with_mime_type(mime);
                Ok(ReadResourceResult::new(vec![content]).into())
            }
            Ok(None) => Err(missing(format!("unknown resource `{}`", request.uri))),
            Err(error) => Err(missing(words(&error))),
        }
    }
}
