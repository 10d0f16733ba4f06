//! Errors as `application/problem+json` with the next step.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ralph_loop_app::{AppError, ErrorKind};
use ralph_loop_journal::JournalError;
use serde_json::{Map, Value, json};

/// An error for users and programs.
#[derive(Debug, Clone)]
pub struct Problem(Box<Said>);

#[derive(Debug, Clone)]
struct Said {
    status: StatusCode,
    title: String,
    detail: String,
    hint: Option<String>,
    more: Map<String, Value>,
}

impl Problem {
    /// A problem with this status; `detail` says what failed, naming the input.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("It did not work").to_owned();
        Self(Box::new(Said { status, title, detail: detail.into(), hint: None, more: Map::new() }))
    }
    /// The request is invalid.
    pub fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }
    /// Not found.
    pub fn missing(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }
    /// The caller's role doesn't allow it.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }
    /// Conflicts with the current state.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }
    /// Understood and rejected.
    pub fn refused(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }
    /// A server error.
    pub fn internal(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }
    /// Adds the next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }
    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.more.insert(name.to_owned(), value.into());
        self
    }
    pub fn status(&self) -> StatusCode {
        self.0.status
    }
    pub fn detail(&self) -> &str {
        &self.0.detail
    }
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let said = *self.0;
        let mut body = json!({
            "type": "about:blank", "title": said.title, "status": said.status.as_u16(), "detail": said.detail,
            "hint": said.hint,
        });
        for (name, value) in said.more {
            body[name] = value;
        }
        let mut response = (said.status, body.to_string()).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

impl From<AppError> for Problem {
    fn from(error: AppError) -> Self {
        let status = match error.kind {
            ErrorKind::Usage | ErrorKind::NothingChecks => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorKind::NeedsPerson | ErrorKind::Stopped => StatusCode::CONFLICT,
            ErrorKind::Environment => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let detail = match &error.cause {
            Some(cause) => format!("{}\n{cause}", error.message),
            None => error.message.clone(),
        };
        Self::new(status, detail).hint(error.next())
    }
}

impl From<JournalError> for Problem {
    fn from(error: JournalError) -> Self {
        Self::from(AppError::from(error))
    }
}

impl From<ralph_loop_git::Error> for Problem {
    fn from(error: ralph_loop_git::Error) -> Self {
        Self::from(AppError::from(error))
    }
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        Self::internal(format!("can't use the index: {error}"))
            .hint("run `ralph index rebuild`; nothing else is lost")
    }
}
