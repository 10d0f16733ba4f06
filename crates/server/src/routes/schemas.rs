//! Request and response types of each route.

use super::list::Operation;
use super::{costs, create, demo, prepare, run};
use crate::index::{CostSums, ListQuery, Page};
use crate::routes::people::{access, session};
use crate::routes::record::{artifacts, diff, events, files, iterations, output};
use crate::routes::steer::{control, debug, diagnosis, guardrails, result, sandbox, task};
use crate::row::RunRow;
use crate::scheduler::SchedulerState;
use crate::stream::FromQuery;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// Types of a route.
pub(crate) struct Types {
    /// The query.
    pub(crate) query: Option<Value>,
    /// The body.
    pub(crate) body: Option<Value>,
    /// Status of a success.
    pub(crate) status: &'static str,
    /// The response.
    pub(crate) answer: Option<Value>,
}

struct Builder<'a> {
    asked: &'a mut SchemaGenerator,
    answers: &'a mut SchemaGenerator,
    types: Types,
}

impl Builder<'_> {
    fn query<T: JsonSchema>(mut self) -> Self {
        self.types.query = Some(self.asked.subschema_for::<T>().to_value());
        self
    }
    fn body<T: JsonSchema>(mut self) -> Self {
        self.types.body = Some(self.asked.subschema_for::<T>().to_value());
        self
    }
    fn gives<T: JsonSchema>(mut self, status: &'static str) -> Types {
        self.types.status = status;
        self.types.answer = Some(self.answers.subschema_for::<T>().to_value());
        self.types
    }
    fn plain(mut self, status: &'static str) -> Types {
        self.types.status = status;
        self.types
    }
}

/// The types of a route.
pub(crate) fn of(operation: &Operation, asked: &mut SchemaGenerator, answers: &mut SchemaGenerator) -> Types {
    let types = Types { query: None, body: None, status: "200", answer: None };
    let it = Builder { asked, answers, types };
    let path = operation.path.strip_prefix("/api/v1").unwrap_or(operation.path);
    match (operation.method, path.strip_prefix("/runs/{run}").unwrap_or(path)) {
        ("post", "/login") => it.body::<session::Login>().plain("204"),
        ("post", "/logout") => it.plain("204"),
        ("get", "/me") => it.gives::<session::Me>("200"),
        ("get", "/runs") => it.query::<ListQuery>().gives::<Page>("200"),
        ("post", "/runs") => it.body::<create::CreateRun>().gives::<RunRow>("201"),
        ("get", "/races") => it.gives::<Vec<ralph_loop_app::race::RaceView>>("200"),
        ("get", "/races/{run}") => it.gives::<ralph_loop_app::race::RaceView>("200"),
        ("get", "") => it.gives::<run::RunAnswer>("200"),
        ("get", "/events") => it.query::<events::EventsQuery>().gives::<events::EventsPage>("200"),
        ("get", "/sse") => it.query::<FromQuery>().plain("200"),
        ("get", "/ws") => it.query::<FromQuery>().plain("101"),
        ("get", "/iterations") => it.gives::<iterations::Iterations>("200"),
        ("get", "/iterations/{iteration}") => it.gives::<iterations::IterationAnswer>("200"),
        ("get", "/output/{iteration}") => it.query::<output::OutputQuery>().gives::<output::Output>("200"),
        ("get", "/output/{iteration}/search") => {
            it.query::<output::SearchQuery>().gives::<output::OutputHits>("200")
        }
        ("post", "/control") => it.body::<control::ControlBody>().gives::<control::ControlAnswer>("202"),
        ("get", "/task") => it.gives::<task::TaskAnswer>("200"),
        ("put", "/task") => it.body::<task::TextBody>().gives::<task::SavedTask>("200"),
        ("get", "/files") => it.query::<files::FolderQuery>().gives::<files::Folder>("200"),
        ("get", "/files/{path}") => it.gives::<files::FileAnswer>("200"),
        ("put", "/files/{path}") => it.body::<task::TextBody>().plain("200"),
        ("get", "/guardrails") => it.gives::<guardrails::Guardrails>("200"),
        ("get", "/diff") => it.query::<diff::DiffQuery>().gives::<diff::DiffAnswer>("200"),
        ("get", "/result") => it.gives::<result::ResultAnswer>("200"),
        ("post", "/result") => it.body::<result::TakeBody>().gives::<result::Taken>("200"),
        ("get", "/diagnosis") => it.gives::<diagnosis::DiagnosisAnswer>("200"),
        ("post", "/debug") => it.body::<debug::DebugBody>().gives::<debug::DebugAnswer>("200"),
        ("get", "/sandbox") => it.gives::<sandbox::SandboxAnswer>("200"),
        ("get", "/artifacts") => it.gives::<artifacts::Artifacts>("200"),
        ("post", "/demo") => it.body::<demo::DemoBody>().gives::<demo::DemoStarted>("201"),
        ("post", "/lint") => it.body::<prepare::LintBody>().gives::<prepare::LintAnswer>("200"),
        ("post", "/preview") => it.body::<create::CreateRun>().gives::<prepare::PreviewAnswer>("200"),
        ("get", "/templates") => it.gives::<Vec<prepare::Template>>("200"),
        ("get", "/repos") => it.gives::<Vec<prepare::RepoInfo>>("200"),
        ("get", "/suggestions") => {
            it.query::<prepare::SuggestionsQuery>().gives::<prepare::Suggestions>("200")
        }
        ("get", "/costs") => it.query::<costs::CostsQuery>().gives::<CostSums>("200"),
        ("get", "/scheduler") => it.gives::<SchedulerState>("200"),
        ("get", "/audit") => it.query::<access::AuditQuery>().gives::<access::AuditAnswer>("200"),
        ("get", "/secrets") => it.gives::<access::SecretsAnswer>("200"),
        ("put", "/secrets/{name}") => it.body::<access::SecretValue>().plain("204"),
        ("get", "/people") => it.gives::<access::PeopleAnswer>("200"),
        ("post", "/people") => it.body::<access::NewPerson>().gives::<access::PersonToken>("201"),
        ("post", "/fleet/tokens") => it.plain("201"),
        ("post", "/hooks/github") => it.plain("202"),
        ("post", "/fleet/workers/{worker}/revoke" | "/fleet/workers/{worker}/drain") => it.plain("204"),
        ("delete", _) => it.plain("204"),
        _ => it.plain("200"),
    }
}
