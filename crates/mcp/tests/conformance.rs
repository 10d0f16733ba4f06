//! The official conformance client over HTTP, against this server with the tools and resources that the client
//! expects. Unsupported features (prompts, sampling, subscriptions) are expected to fail, by name, in
//! `conformance-expected.yml`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::routing::any;
use ralph_loop_app::{App, Environment};
use ralph_loop_domain::vars::Vars;
use ralph_loop_mcp::{RalphServer, Role, http_service};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// A picture of one pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const TOOLS: &[&str] = &[
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_progress",
];

/// The server with what the client expects.
#[derive(Clone)]
struct Fixtures(RalphServer);

fn schema(value: Value) -> Arc<serde_json::Map<String, Value>> {
    Arc::new(value.as_object().unwrap().clone())
}

fn schema_2020() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": false,
    })
}

fn embedded(uri: &str, mime: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime))
}

fn content(tool: &str) -> Vec<ContentBlock> {
    match tool {
        "test_image_content" => vec![ContentBlock::image(PNG, "image/png")],
        "test_audio_content" => vec![ContentBlock::audio(WAV, "audio/wav")],
        "test_embedded_resource" => {
            vec![embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
        }
        "test_multiple_content_types" => vec![
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(PNG, "image/png"),
            embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ],
        "test_error_handling" => {
            vec![ContentBlock::text("This tool intentionally returns an error for testing")]
        }
        _ => vec![ContentBlock::text("This is a simple text response for testing.")],
    }
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        self.0.get_info()
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.0.list_tools(page, context).await?;
        let empty = schema(json!({"type": "object", "properties": {}}));
        listed.tools.extend(TOOLS.iter().map(|name| Tool::new(*name, "For tests", empty.clone())));
        listed.tools.push(Tool::new("json_schema_2020_12_tool", "For tests", schema(schema_2020())));
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.to_string();
        if !TOOLS.contains(&name.as_str()) {
            return self.0.call_tool(request, context).await;
        }
        if name == "test_tool_with_progress"
            && let Some(token) = context.meta.get_progress_token()
        {
            for done in [0.0, 50.0, 100.0] {
                let note = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
                let _ = context.peer.notify_progress(note).await;
            }
        }
        Ok(match name.as_str() {
            "test_error_handling" => CallToolResult::error(content(&name)).into(),
            _ => CallToolResult::success(content(&name)).into(),
        })
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = self.0.list_resources(page, context).await?;
        listed.resources.push(Resource::new("test://static-text", "text").with_mime_type("text/plain"));
        listed.resources.push(Resource::new("test://static-binary", "binary").with_mime_type("image/png"));
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = self.0.list_resource_templates(page, context).await?;
        listed.resource_templates.push(ResourceTemplate::new("test://template/{id}/data", "template"));
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        let content = match uri.as_str() {
            "test://static-text" => {
                ResourceContents::text("This is the content of the static text resource.", uri)
                    .with_mime_type("text/plain")
            }
            "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
            "test://template/123/data" => {
                let text = r#"{"id":"123","templateTest":true,"data":"Data for ID: 123"}"#;
                ResourceContents::text(text, uri).with_mime_type("application/json")
            }
            _ => return self.0.read_resource(request, context).await,
        };
        Ok(ReadResourceResult::new(vec![content]).into())
    }
}

/// The folder of the client's programs; `None`, with a message, if it is left out.
fn client() -> Option<PathBuf> {
    if std::env::var("RALPH_MCP_CONFORMANCE").is_ok_and(|value| value == "0") {
        ralph_loop_testkit::skip("the conformance client is left out (RALPH_MCP_CONFORMANCE=0)");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp-conformance");
    let done = Command::new(script).output().unwrap();
    assert!(done.status.success(), "scripts/mcp-conformance: {}", String::from_utf8_lossy(&done.stderr));
    Some(String::from_utf8(done.stdout).unwrap().trim().into())
}

/// Serves on a free port until the runtime ends.
fn serve(folder: &Path) -> (tokio::runtime::Runtime, u16) {
    let vars: Vars = [("HOME", folder.display().to_string())].into_iter().collect();
    let app = App::new(Environment::new(vars, folder));
    let server = Fixtures(RalphServer::new(app, folder.to_owned(), Role::Operator));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let handler = move |request: Request| {
        let service = http_service(server.clone(), &["localhost", "127.0.0.1"]);
        async move { service.handle(request).await.map(Body::new) }
    };
    runtime.spawn(
        async move { axum::serve(listener, Router::new().route("/mcp", any(handler))).await.unwrap() },
    );
    (runtime, port)
}

#[test]
fn the_official_client_finds_only_what_is_expected() {
    let Some(programs) = client() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_runtime, port) = serve(folder.path());
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance-expected.yml");
    let path = std::env::var("PATH").unwrap_or_default();
    let done = Command::new(programs.join("conformance"))
        .args(["server", "--url", &format!("http://127.0.0.1:{port}/mcp"), "--expected-failures"])
        .arg(expected)
        .env("PATH", format!("{}:{path}", programs.display()))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let told = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(done.status.success(), "{told}");
}
