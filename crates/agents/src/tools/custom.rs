//! Tools that the calling program brings.

use ralph_loop_domain::model::{Image, ToolSpec};
use ralph_loop_domain::ports::Sandbox;
use serde_json::Value;

/// A tool of the calling program. A pair of a [`ToolSpec`] and a closure is one.
///
/// An implementer guarantees: a call ends by itself (it cannot be interrupted), and what it changes is in the sandbox.
pub trait CustomTool: Send + Sync {
    /// How the model sees it. A name that a built-in tool has takes that tool's place.
    fn spec(&self) -> ToolSpec;
    /// One call. `Err` says in words what went wrong; the model reads it.
    fn call(&self, input: &Value, sandbox: &dyn Sandbox) -> Result<ToolOutput, String>;
}

/// What a tool gives back to the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// In words.
    pub text: String,
    /// Pictures for the model to see.
    pub images: Vec<Image>,
}

impl ToolOutput {
    /// Words without pictures.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), images: Vec::new() }
    }
}

impl<T: CustomTool + ?Sized> CustomTool for std::sync::Arc<T> {
    fn spec(&self) -> ToolSpec {
        (**self).spec()
    }
    fn call(&self, input: &Value, sandbox: &dyn Sandbox) -> Result<ToolOutput, String> {
        (**self).call(input, sandbox)
    }
}

impl<F> CustomTool for (ToolSpec, F)
where
    F: Fn(&Value, &dyn Sandbox) -> Result<ToolOutput, String> + Send + Sync,
{
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }
    fn call(&self, input: &Value, sandbox: &dyn Sandbox) -> Result<ToolOutput, String> {
        (self.1)(input, sandbox)
    }
}
