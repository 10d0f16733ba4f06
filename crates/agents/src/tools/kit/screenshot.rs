//! `screenshot`: a picture of a browser's page.

use super::{Tool, ToolContext, ToolOutcome, spec};
use crate::tools::args::Args;
use crate::tools::browser::{MAIN, PageView, Shot};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ralph_loop_domain::model::{Image, ToolSpec};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write as _;

pub(super) struct Screenshot;

impl Tool for Screenshot {
    fn spec(&self) -> ToolSpec {
        spec(
            "screenshot",
            "Take a picture of what a browser shows: the window, the whole page or one element.",
            json!({
                "name": { "type": "string", "minLength": 1, "description": "The browser (default `main`)" },
                "selector": { "type": "string", "minLength": 1, "description": "CSS selector of one element" },
                "fullPage": { "type": "boolean", "description": "The whole page instead of the window" },
            }),
            &[],
        )
    }
    fn what(&self, args: &Args<'_>) -> String {
        args.maybe("selector")
            .unwrap_or(if args.flag("fullPage") { "whole page" } else { "window" })
            .to_owned()
    }
    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let shot = match (args.maybe("selector"), args.flag("fullPage")) {
            (Some(_), true) => return Err("take `selector` or `fullPage`, not both".to_owned()),
            (Some(selector), false) => Shot::Element(selector),
            (None, true) => Shot::FullPage,
            (None, false) => Shot::Window,
        };
        let look = context.browsers.shoot(args.maybe("name").unwrap_or(MAIN), shot, context.halt)?;
        shown(look, context)
    }
}

/// A page as a result: the text, the picture for the model, and the picture as a file for users.
pub(super) fn shown(look: PageView, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
    let (base64, width, height) = look.picture;
    let bytes = STANDARD.decode(&base64).map_err(|error| format!("the picture is broken: {error}"))?;
    let name = format!("screenshot-{}.png", context.number);
    let path = context.folder.join(&name);
    // A name that a command has put there isn't followed.
    std::fs::remove_file(&path).ok();
    let kept =
        OpenOptions::new().write(true).create_new(true).open(&path).and_then(|mut f| f.write_all(&bytes));
    // The model sees it anyway; only users miss the file.
    let place = if kept.is_ok() { format!(", kept as {name}") } else { String::new() };
    let line = format!("picture of {width}×{height}{place}");
    Ok(ToolOutcome {
        text: format!("{line}\n{}", look.text),
        line,
        images: vec![Image { media_type: "image/png".to_owned(), base64 }],
        ..ToolOutcome::default()
    })
}
