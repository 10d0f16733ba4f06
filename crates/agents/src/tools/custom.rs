//! The calling program's tools.

use ralph_loop_domain::model::{Image, ToolSpec};
use ralph_loop_domain::ports::Sandbox;
use serde_json::Value;

/// A tool of the calling program. A pair of a [`ToolSpec`] and a closure is one.
///
/// Implementations guarantee: a call returns (it can't be interrupted), and it only changes the sandbox.
pub trait CustomTool: Send + Sync {
    /// How the model sees it. A built-in tool's name replaces that tool.
    fn spec(&self) -> ToolSpec;
    /// Calls the tool. The model reads the error.
    fn call(&self, input: &Value, sandbox: &dyn Sandbox) -> Result<ToolOutput, String>;
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    pub text: String,
    pub images: Vec<Image>,
}

impl ToolOutput {
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
