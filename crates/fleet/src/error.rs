//! What goes wrong in a fleet.

use ralph_loop_app::AppError;

/// Something of the fleet did not work.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The database refused or did not answer.
    #[error("the database of the fleet: {0}")]
    Database(String),
    /// Another worker drives the run now.
    #[error("run {run} is held by another worker")]
    Held {
        /// The run.
        run: String,
    },
    /// Nothing more is to be done for the run.
    #[error("run {run} is over")]
    Over {
        /// The run.
        run: String,
    },
    /// There is no such run in the fleet.
    #[error("the fleet has no run {run}")]
    NoRun {
        /// The run.
        run: String,
    },
    /// The artifact store refused or did not answer.
    #[error("the artifact store: {0}")]
    Store(String),
    /// Something is not set up as it must be.
    #[error("{what}")]
    Setup {
        /// What.
        what: String,
        /// What helps.
        hint: String,
    },
}

impl From<sqlx::Error> for FleetError {
    fn from(error: sqlx::Error) -> Self {
        // A login that was taken away comes back by nothing that can be waited for.
        if error.as_database_error().and_then(|said| said.code()).is_some_and(|code| code.starts_with("28")) {
            return Self::Setup {
                what: "the database does not let this machine in: its login was revoked, or is another one"
                    .into(),
                hint:
                    "`ralph worker --enrol URL --token TOKEN` lets a worker in again; else check RALPH_DB_URL"
                        .into(),
            };
        }
        // An address may stand in the words of a connection that failed; it may hold a password.
        let said = match &error {
            sqlx::Error::Configuration(_) => "its address cannot be read".to_owned(),
            other => ralph_loop_protocol::display::text::one_line(&other.to_string(), 300),
        };
        Self::Database(said)
    }
}

impl From<object_store::Error> for FleetError {
    fn from(error: object_store::Error) -> Self {
        Self::Store(ralph_loop_protocol::display::text::one_line(&error.to_string(), 300))
    }
}

impl From<FleetError> for AppError {
    fn from(error: FleetError) -> Self {
        let hint = match &error {
            FleetError::Database(_) => "check RALPH_DB_URL, and that Postgres runs there".to_owned(),
            FleetError::Held { run } => {
                format!(
                    "it can be taken over when its lease has run out; `ralph worker --list` shows who has run {run}"
                )
            }
            FleetError::Over { .. } => "the page shows how it ended; a new run does the rest".to_owned(),
            FleetError::NoRun { .. } => "the page and `GET /api/v1/fleet/runs` list them".to_owned(),
            FleetError::Store(_) => "check RALPH_ARTIFACTS, and that this machine may write there".to_owned(),
            FleetError::Setup { hint, .. } => hint.clone(),
        };
        Self::environment(error.to_string()).hint(hint)
    }
}
