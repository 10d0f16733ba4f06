//! Tools whose schema is derived from the type of their arguments.

use super::custom::{CustomTool, ToolOutput};
use ralph_loop_domain::model::ToolSpec;
use ralph_loop_domain::ports::Sandbox;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::marker::PhantomData;

/// A tool of a closure over typed arguments: the model sees the JSON Schema of `A`, the closure gets an `A`.
///
/// ```
/// use ralph_loop_agents::tools::{CustomTool as _, ToolOutput, TypedTool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Deploy {
///     /// The branch to deploy.
///     branch: String,
/// }
///
/// let tool = TypedTool::new("deployPreview", "Deploy a preview of a branch.", |args: Deploy, _sandbox| {
///     Ok(ToolOutput::text(format!("https://{}.preview.example.com", args.branch)))
/// });
/// assert_eq!(tool.spec().input_schema["required"][0], "branch");
/// ```
pub struct TypedTool<A, F> {
    spec: ToolSpec,
    call: F,
    args: PhantomData<fn() -> A>,
}

impl<A, F> TypedTool<A, F>
where
    A: DeserializeOwned + JsonSchema,
    F: Fn(A, &dyn Sandbox) -> Result<ToolOutput, String> + Send + Sync,
{
    /// A tool with its name and description for the model.
    pub fn new(name: impl Into<String>, description: impl Into<String>, call: F) -> Self {
        let mut settings = schemars::generate::SchemaSettings::draft2020_12();
        // Providers need a single schema without references.
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        let schema = settings.into_generator().into_root_schema_for::<A>();
        let mut input_schema = schema.to_value();
        if let Some(object) = input_schema.as_object_mut() {
            object.remove("title");
            object.remove("$schema");
        }
        let spec = ToolSpec { name: name.into(), description: description.into(), input_schema };
        Self { spec, call, args: PhantomData }
    }
}

impl<A, F> CustomTool for TypedTool<A, F>
where
    A: DeserializeOwned + JsonSchema,
    F: Fn(A, &dyn Sandbox) -> Result<ToolOutput, String> + Send + Sync,
{
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call(&self, input: &Value, sandbox: &dyn Sandbox) -> Result<ToolOutput, String> {
        let args =
            A::deserialize(input).map_err(|error| format!("`{}` was not called: {error}", self.spec.name))?;
        (self.call)(args, sandbox)
    }
}

impl<A, F> std::fmt::Debug for TypedTool<A, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypedTool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}
