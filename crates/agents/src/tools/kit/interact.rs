//! `interact`: page interactions.

use super::screenshot::shown;
use super::{Tool, ToolContext, ToolOutcome, spec};
use crate::tools::args::Args;
use crate::tools::browser::{MAIN, PageInput};
use ralph_loop_domain::model::ToolSpec;
use serde_json::json;

pub(super) struct Interact;

impl Tool for Interact {
    fn spec(&self) -> ToolSpec {
        spec(
            "interact",
            "Act on the page in a browser and see the result: click, type (replaces the field's text), press (a key), \
             scroll (pixels), hover, wait (for an element, or milliseconds).",
            json!({
                "action": {
                    "type": "string", "enum": ["click", "type", "press", "scroll", "hover", "wait"],
                },
                "selector": { "type": "string", "minLength": 1, "description": "CSS selector of the element" },
                "value": {
                    "type": "string",
                    "description": "type: the text. press: the key. scroll: pixels. wait: milliseconds",
                },
                "position": {
                    "type": "object",
                    "properties": { "x": { "type": "number" }, "y": { "type": "number" } },
                    "required": ["x", "y"], "additionalProperties": false,
                    "description": "A point of the window, instead of a selector",
                },
                "name": { "type": "string", "minLength": 1, "description": "The browser (default `main`)" },
            }),
            &["action"],
        )
    }
    fn what(&self, args: &Args<'_>) -> String {
        [args.str("action"), args.str("selector"), args.str("value")].join(" ")
    }
    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let touch = PageInput {
            action: args.str("action"),
            selector: args.maybe("selector"),
            value: args.maybe("value"),
            position: args.point("position"),
        };
        shown(context.browsers.touch(args.maybe("name").unwrap_or(MAIN), touch, context.halt)?, context)
    }
}
