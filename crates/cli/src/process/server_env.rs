//! A server's environment, completed from the `.env` of its folder.

use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::read::find;
use ralph_loop_app::{App, DATABASE};
use std::path::Path;

/// Adds the `.env` of the repo around `folder`, or of the folder.
pub fn with_dotenv(app: &App, folder: &Path, out: &Out) -> Result<App, CommandError> {
    let env = app.environment().with_server_dotenv(&find::top(folder))?;
    for refused in env.refused_variables() {
        if refused.name == DATABASE {
            return Err(CommandError::needs_person("`.env` names the database of the index")
                .cause(format!("only you can allow {}", refused.ask.text))
                .hint("run `ralph trust` to allow it, or set it yourself: `export RALPH_DB_URL=URL`"));
        }
        out.say(format!("{} in `.env` isn't used; `ralph trust` allows it", refused.name));
    }
    Ok(App::new(env))
}

/// Reports a damaged index that was moved.
pub fn report_set_aside(moved: Option<&Path>, out: &Out) {
    if let Some(moved) = moved {
        out.say(format!(
            "the index was damaged: it is now `{}`, and a new one is made from the records",
            moved.display()
        ));
    }
}
