//! Lists what a run would request without starting it.

use super::task;
use crate::config::{models, settings};
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::request::{RunRequest, TaskInput};
use crate::trust::consent::{TaskPrivileges, TrustRequest, TrustScan};

/// Everything the run would request that only the user can allow. Problems of the task are reported at the
/// start.
pub(crate) fn asked(env: &Environment, request: &RunRequest) -> Result<TrustRequest, AppError> {
    let top = find::top(&request.folder);
    let env = env.for_run_of(request.asked_by.as_deref()).with_dotenv(&top)?;
    let env = super::source::with_config_beside_task(env, request);
    let open = env.trusting_all();
    let (loaded, models) = (settings::load(&open, &top)?, models::load(&open, &top)?);
    let chosen = match &request.task {
        TaskInput::Issue(_) | TaskInput::Text(_) => None,
        // A task file that the user names is always examined.
        TaskInput::File(_) => Some(task::of_request(&env, request, &top, None)?),
        _ => task::of_request(&env, request, &top, None).ok(),
    };
    let task = chosen.as_ref().and_then(|chosen| {
        let source = chosen.source(request)?;
        let (settings, models) = (&chosen.settings, &chosen.model);
        Some(TaskPrivileges { source, settings, models, asks_to_publish: chosen.asks_to_publish() })
    });
    let working_dir = chosen.as_ref().and_then(|chosen| chosen.task.working_dir.as_deref());
    TrustScan { env: &env, top: &top, request, loaded: &loaded, models: &models, task, working_dir }.asked()
}
