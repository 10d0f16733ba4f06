//! `ralph schema`: JSON Schemas of input and output files.

use crate::error::CommandError;
use crate::output::Out;
use serde_json::{Value, json};
use std::path::Path;

/// Name, description and text.
struct Schema {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

/// Generated from the types (`scripts/generate`) except `actions`, which is written by hand; tests compare
/// them with the code.
const SCHEMAS: &[Schema] = &[
    Schema {
        name: "ralph.json",
        about: "a task as ralph.json, version 2",
        text: include_str!("../../../schemas/ralph.schema.json"),
    },
    Schema {
        name: "tasks.json",
        about: "the stories of a plan",
        text: include_str!("../../../schemas/tasks.schema.json"),
    },
    Schema {
        name: "config.json",
        about: ".ralph/config.json and the user's own configuration",
        text: include_str!("../../../schemas/config.schema.json"),
    },
    Schema {
        name: "models.yaml",
        about: "model profiles",
        text: include_str!("../../../schemas/models.schema.json"),
    },
    Schema {
        name: "frontmatter",
        about: "the frontmatter of ralph_task.md",
        text: include_str!("../../../schemas/frontmatter.schema.json"),
    },
    Schema {
        name: "events",
        about: "one line of a run's events.jsonl",
        text: include_str!("../../../schemas/events.schema.json"),
    },
    Schema {
        name: "proof",
        about: "a run's proof.json",
        text: include_str!("../../../schemas/proof.schema.json"),
    },
    Schema {
        name: "actions",
        about: "the answer of an agent of kind `actions`",
        text: include_str!("../../../schemas/actions.schema.json"),
    },
    Schema {
        name: "diagnosis",
        about: "the report of a doctor",
        text: include_str!("../../../schemas/diagnosis.schema.json"),
    },
    Schema {
        name: "receipt",
        about: "the receipt.json of one iteration",
        text: include_str!("../../../schemas/receipt.schema.json"),
    },
    Schema {
        name: "result",
        about: "the result of a run, the last line of `ralph run --json`",
        text: include_str!("../../../schemas/result.schema.json"),
    },
    Schema {
        name: "control",
        about: "one line of a run's inbox.jsonl",
        text: include_str!("../../../schemas/control.schema.json"),
    },
    Schema {
        name: "view",
        about: "the state of a run",
        text: include_str!("../../../schemas/view.schema.json"),
    },
];

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph schema                                  list the names
  ralph schema ralph.json > ralph.schema.json")]
pub struct SchemaArgs {
    /// Schema to print [default: list the names]
    pub name: Option<String>,
}

pub fn run(args: SchemaArgs, _folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let Some(name) = args.name else {
        list(out);
        return Ok(0);
    };
    let names = || SCHEMAS.iter().map(|schema| schema.name);
    let Some(schema) = SCHEMAS.iter().find(|schema| schema.name == name) else {
        let hint = match ralph_loop_protocol::display::text::nearest(&name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
        };
        return Err(CommandError::usage(format!("schema `{name}` doesn't exist")).hint(hint));
    };
    if out.json {
        // One value on one line.
        out.value(&serde_json::from_str::<Value>(schema.text).unwrap_or_default());
    } else {
        out.own(schema.text.as_bytes());
    }
    Ok(0)
}

fn list(out: &Out) {
    if out.json {
        let all: Vec<Value> = SCHEMAS.iter().map(|s| json!({ "name": s.name, "about": s.about })).collect();
        out.value(&all);
        return;
    }
    for schema in SCHEMAS {
        out.line(format!("{:<12} {}", schema.name, schema.about));
    }
}
