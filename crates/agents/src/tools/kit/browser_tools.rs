//! `openBrowser` and `closeBrowser`.

use super::screenshot::shown;
use super::{Tool, ToolContext, ToolOutcome, spec};
use crate::tools::args::Args;
use crate::tools::browser::MAIN;
use crate::tools::path_rules::PathAccess;
use ralph_loop_domain::model::ToolSpec;
use serde_json::json;

pub(super) struct OpenBrowser;

impl Tool for OpenBrowser {
    fn spec(&self) -> ToolSpec {
        spec(
            "openBrowser",
            "Open a page in a headless browser: returns a picture, its text, console errors and failed requests. \
             Start the server with startProcess first.",
            json!({
                "url": {
                    "type": "string", "minLength": 1,
                    "description": "http:// or https://, or file:// with a path of the workspace",
                },
                "name": { "type": "string", "minLength": 1, "description": "The browser (default `main`)" },
            }),
            &["url"],
        )
    }
    fn what(&self, args: &Args<'_>) -> String {
        args.str("url").to_owned()
    }
    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let url = address(args.str("url"), context)?;
        let name = args.maybe("name").unwrap_or(MAIN);
        let look = context.browsers.open(name, &url, context.sandbox, context.halt)?;
        shown(look, context)
    }
}

/// The URL to open; files only of the workspace.
fn address(given: &str, context: &ToolContext<'_>) -> Result<String, String> {
    let lower = given.to_ascii_lowercase();
    if lower.starts_with("http://") || lower.starts_with("https://") || lower == "about:blank" {
        return Ok(given.to_owned());
    }
    if lower.starts_with("file://") {
        let path = given.get("file://".len()..).unwrap_or_default();
        let path = context.path_rules.file(path, PathAccess::Read)?;
        return Ok(format!("file://{}", context.sandbox.root().join(path).display()));
    }
    if !given.contains("://") && !given.contains(char::is_whitespace) && given.starts_with("localhost") {
        return Ok(format!("http://{given}"));
    }
    Err(format!("`{given}` isn't a URL that can be opened; start it with http://, https:// or file://"))
}

pub(super) struct CloseBrowser;

impl Tool for CloseBrowser {
    fn spec(&self) -> ToolSpec {
        let name = json!({ "name": { "type": "string", "minLength": 1, "description": "The browser (default `main`)" } });
        spec("closeBrowser", "Close a browser.", name, &[])
    }
    fn what(&self, args: &Args<'_>) -> String {
        args.maybe("name").unwrap_or(MAIN).to_owned()
    }
    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let name = args.maybe("name").unwrap_or(MAIN);
        context.browsers.close(name)?;
        Ok(ToolOutcome::text(format!("browser `{name}` is closed")))
    }
}
