//! An agent's tools by name: the built-in ones and the calling program's.

use super::args::Args;
use super::custom::CustomTool;
use super::kit::{self, Tool, ToolContext, ToolOutcome};
use ralph_loop_domain::model::{ToolCall, ToolSpec};
use ralph_loop_protocol::display::text;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Bytes of a custom tool's text that the model sees.
const WORDS_MAX: usize = 32 * 1024;

pub(crate) struct Toolbox {
    own: Vec<(ToolSpec, Box<dyn Tool>)>,
    custom: Vec<(ToolSpec, Box<dyn CustomTool>)>,
}

impl Toolbox {
    /// The built-in tools, unless disabled, and `custom`, which replace those of the same name.
    pub(crate) fn new(custom: Vec<Box<dyn CustomTool>>, only_custom: bool) -> Self {
        let mut brought: Vec<(ToolSpec, Box<dyn CustomTool>)> = Vec::new();
        for tool in custom {
            let spec = tool.spec();
            brought.retain(|(other, _)| other.name != spec.name);
            brought.push((spec, tool));
        }
        let own = if only_custom { kit::only_done() } else { kit::all() };
        let own = own
            .into_iter()
            .map(|tool| (tool.spec(), tool))
            .filter(|(spec, _)| !brought.iter().any(|(other, _)| other.name == spec.name))
            .collect();
        Self { own, custom: brought }
    }

    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        let own = self.own.iter().map(|(spec, _)| spec);
        own.chain(self.custom.iter().map(|(spec, _)| spec)).cloned().collect()
    }

    /// Whether a call may run in parallel.
    pub(crate) fn beside_others(&self, call: &ToolCall) -> bool {
        self.own(call).is_some_and(|(_, tool)| tool.beside_others())
    }

    /// A call's target, in one line.
    pub(crate) fn what(&self, call: &ToolCall) -> String {
        let words = match self.own(call) {
            Some((spec, tool)) => match Args::check(spec, &call.input) {
                Ok(args) => tool.what(&args),
                Err(_) => call.input.to_string(),
            },
            None => call.input.to_string(),
        };
        text::one_line(&words, 160)
    }

    /// Makes a call. Every failure becomes text for the model.
    pub(crate) fn call(&self, call: &ToolCall, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let work = AssertUnwindSafe(|| self.call_unguarded(call, context));
        catch_unwind(work).unwrap_or_else(|_| Err(format!("`{}` broke; try another way", call.name)))
    }

    fn call_unguarded(&self, call: &ToolCall, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        if let Some((spec, tool)) = self.own(call) {
            return tool.call(&Args::check(spec, &call.input)?, context);
        }
        let Some((spec, tool)) = self.custom.iter().find(|(spec, _)| spec.name == call.name) else {
            return Err(self.unknown(&call.name));
        };
        Args::check(spec, &call.input)?;
        let output =
            tool.call(&call.input, context.sandbox).map_err(|why| text::head(&why, WORDS_MAX).to_owned())?;
        let mut text = text::head(&output.text, WORDS_MAX).to_owned();
        if text.len() < output.text.len() {
            let path = context.folder.join(format!("tool-{}.log", context.number));
            let whole = context.redactor.text(&output.text);
            std::fs::remove_file(&path).ok();
            let place = match std::fs::write(&path, whole.as_bytes()) {
                Ok(()) => format!("; all of it is in {}", path.display()),
                Err(_) => String::new(),
            };
            text.push_str(&format!("\n[cut after {WORDS_MAX} bytes{place}]"));
        }
        Ok(ToolOutcome { images: output.images, ..ToolOutcome::text(text) })
    }

    fn own(&self, call: &ToolCall) -> Option<&(ToolSpec, Box<dyn Tool>)> {
        self.own.iter().find(|(spec, _)| spec.name == call.name)
    }

    fn unknown(&self, name: &str) -> String {
        let specs = self.specs();
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        match text::nearest(name, names.iter().copied()) {
            Some(near) => format!("there is no tool `{name}`; did you mean `{near}`?"),
            None => format!("there is no tool `{name}`; there are: {}", names.join(", ")),
        }
    }
}
