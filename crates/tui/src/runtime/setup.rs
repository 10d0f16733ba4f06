//! Setup: agent probes and the configuration.

use super::perform::World;
use crate::data::{AgentState, Problem};
use crate::msg::Msg;
use ralph_loop_app::steering::own_program;
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{AppError, RunRequest};
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_task::config::ConfigFile;
use serde_json::{Value, json};

/// Probes an agent like `ralph probe`.
pub fn probe(world: &World, agent: &str, seconds: u64) {
    let seconds = seconds.to_string();
    let args = ["probe", agent, "--timeout", &seconds];
    let state = match own_program::answer(world.env(), &world.folder, &args, &|| false) {
        Err(error) => AgentState::Fails(error.into()),
        Ok(reports) => {
            let report = &reports[0];
            let said = |key: &str| one_line(report[key].as_str().unwrap_or_default(), 300);
            match report["ok"].as_bool() {
                Some(true) => AgentState::Works(one_line(&said("message"), 40)),
                _ => {
                    let hint = Some(said("hint")).filter(|hint| !hint.is_empty());
                    let fix = hint.unwrap_or_else(|| format!("run `{agent}` by hand to see what it says"));
                    AgentState::Fails(Problem { what: said("message"), why: Vec::new(), fix })
                }
            }
        }
    };
    world.tell(Msg::Probed(agent.to_owned(), state));
}

/// Saves the choices; creates a missing configuration with `ralph init`.
pub fn save(world: &World, choices: &Value) -> Result<(), AppError> {
    let top = world.top();
    let path = RalphDir::of(&top).config();
    let is_new = path.symlink_metadata().is_err();
    if is_new {
        own_program::answer(world.env(), &world.folder, &["init"], &|| false)?;
    }
    let text = repo_file::read_text(&path).map_err(|e| repo_file::unreadable(&path, &e))?;
    let mut config: Value = serde_json::from_str(&text).map_err(|e| {
        AppError::usage(format!("`{}` isn't valid JSON: {e}", path.display())).hint("fix it, or move it away")
    })?;
    lay_over(&mut config, choices)?;
    let text = format!("{config:#}\n");
    ConfigFile::parse(&text).map_err(|e| AppError::usage(e.message).hint(e.hint))?;
    repo_file::write(&path, text.as_bytes())?;
    if is_new && let Ok(asked) = world.app.asked(&RunRequest::in_folder(&top)) {
        // Approves only a file just written on the user's behalf; an existing one needs the user's approval.
        asked.allow_file(".ralph/config.json")?;
    }
    world.tell(Msg::Saved("saved .ralph/config.json".into()));
    Ok(())
}

fn lay_over(config: &mut Value, choices: &Value) -> Result<(), AppError> {
    let text = |key: &str| choices[key].as_str().unwrap_or_default().trim().to_owned();
    let number = |key: &str, what: &str| match text(key).parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(AppError::usage(format!("`{}` isn't a valid number of {what}", text(key)))
            .hint("give a number above 0")),
    };
    config["agent_selection"] = text("agent_selection").into();
    config["max_iterations"] = (number("max_iterations", "iterations")? as u64).into();
    config["max_wall_time_minutes"] = number("max_wall_time_minutes", "minutes")?.into();
    config["max_cost_usd_estimate"] = number("max_cost_usd_estimate", "dollars")?.into();
    if !text("completion_promise").is_empty() {
        config["completion_promise"] = text("completion_promise").into();
    }
    let chosen = choices["agents"].as_array().cloned().unwrap_or_default();
    let has = |name: &Value| {
        config["agents"].as_array().is_some_and(|list| list.iter().any(|a| a["name"] == *name))
    };
    if !chosen.is_empty() && chosen.iter().all(has) {
        config["agent_priority"] = chosen.into();
    }
    let verify = text("verify");
    let is_there = config["verifiers"].as_array().is_some_and(|list| {
        list.iter().any(|one| {
            let argv: Vec<&str> =
                one["command_argv"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            argv.join(" ") == verify || argv.last() == Some(&verify.as_str())
        })
    });
    if !verify.is_empty() && !is_there {
        config["verifiers"] = json!([{ "name": "tests", "command_argv": ["sh", "-c", verify] }]);
        if let Some(keys) = config.as_object_mut() {
            keys.remove("required_verifiers");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_merged_into_existing_settings() {
        let choices = json!({
            "agents": ["b"], "agent_selection": "priority", "verify": "make test", "max_iterations": "7",
            "max_wall_time_minutes": "30", "max_cost_usd_estimate": "2.5", "completion_promise": "DONE",
        });
        let mut config = json!({ "agents": [{ "name": "a" }, { "name": "b" }], "isolation": "auto" });
        lay_over(&mut config, &choices).unwrap();
        assert_eq!(config["agent_priority"], json!(["b"]));
        assert_eq!(config["verifiers"][0]["command_argv"], json!(["sh", "-c", "make test"]));
        assert_eq!(
            (config["max_iterations"].as_u64(), config["isolation"].as_str()),
            (Some(7), Some("auto"))
        );
        let kept = config.clone();
        lay_over(&mut config, &choices).unwrap();
        assert_eq!(config, kept, "the second time changes nothing");
        let bad = json!({ "max_iterations": "many" });
        assert!(lay_over(&mut config, &bad).unwrap_err().message.contains("many"));
    }
}
