//! What a run assumes because the user didn't specify it: the installed agents, and the command that tests
//! the repo.

use crate::agents::installed;
use crate::config::model_access;
use crate::config::models::LoadedModels;
use crate::config::settings;
use crate::environment::Environment;
use crate::task::project;
use crate::task::project::ProjectCommand;
use ralph_loop_agents::presets;
use ralph_loop_domain::repo::installed::{InstalledFolder, InstalledUse};
use ralph_loop_protocol::id::AgentName;
use ralph_loop_task::config::{CommandLine, ConfigFile, VerifierConfig};
use std::path::Path;

#[derive(Debug, Clone, Default)]
pub struct Assumptions {
    /// The task is a sentence, so no file configures this run.
    pub by_sentence: bool,
    /// The agents were detected on this machine.
    pub agents: bool,
    /// Agents that the configuration lists without describing them and that aren't installed.
    pub absent: Vec<AgentName>,
    /// The detected check, followed by alternatives.
    pub checks: Vec<ProjectCommand>,
    /// Setup that a clean checkout needs first.
    pub setup: Vec<CommandLine>,
    pub installed: Vec<InstalledFolder>,
}

impl Assumptions {
    pub fn is_empty(&self) -> bool {
        !self.by_sentence && self.checks.is_empty() && self.absent.is_empty()
    }

    /// Fills in the agents: the installed ones if none are named, else the default model; and presets that a
    /// list names without describing. A listed preset that isn't installed is dropped if another agent
    /// remains, unless a flag named it.
    pub(crate) fn add_agents(
        &mut self,
        env: &Environment,
        top: &Path,
        models: &LoadedModels,
        file: &mut ConfigFile,
        flags: &[String],
    ) {
        let described = |file: &ConfigFile| -> Vec<AgentName> {
            file.agents.iter().flatten().map(|agent| agent.name.clone()).collect()
        };
        let listed = match flags {
            [] => file.agent_priority.clone().unwrap_or_default(),
            flags => flags.iter().map(|name| AgentName::from(name.as_str())).collect(),
        };
        let known = described(file);
        let missing = listed.iter().filter(|name| !known.contains(name));
        let presets: Vec<_> = missing.filter_map(|name| presets::preset(name.as_str())).collect();
        if file.agents.as_ref().is_none_or(Vec::is_empty) && (presets.is_empty() || flags.is_empty()) {
            let mut found = settings::detected_agents(env, top);
            if found.is_empty() {
                found.extend(model_access::default_agent(env, models));
            }
            self.agents = true;
            file.agents = Some(found);
        }
        let programs = settings::programs(env, top);
        for preset in presets {
            if described(file).contains(&preset.name) {
                continue;
            }
            if flags.is_empty() && programs.known(&preset.command_argv).is_none() {
                self.absent.push(preset.name);
            } else {
                file.agents.get_or_insert_default().push(preset);
            }
        }
        let names = described(file);
        // If none of the list is installed, each agent's own check reports it.
        if listed.iter().any(|name| names.contains(name)) {
            let absent = &self.absent;
            file.agent_priority.iter_mut().for_each(|list| list.retain(|name| !absent.contains(name)));
        } else {
            for name in std::mem::take(&mut self.absent) {
                file.agents.get_or_insert_default().extend(presets::preset(name.as_str()));
            }
        }
    }

    /// Adds the repo's own test command if nothing else checks the result. A project in `folder`, where the
    /// user is, comes first.
    pub(crate) fn add_check(
        &mut self,
        env: &Environment,
        (top, folder): (&Path, &Path),
        file: &mut ConfigFile,
    ) {
        let there = project::tests_where_one_stands(top, folder);
        let (checks, setup) =
            there.unwrap_or_else(|| (project::test_commands(top), project::setup_commands(top)));
        self.checks = checks;
        self.installed = installed::for_repo(env, top);
        self.use_environment_outside();
        let path = env.path();
        // Commands that can run come before those whose program is missing.
        self.checks.sort_by_key(|check| {
            let program = check.argv.first().map(String::as_str).unwrap_or_default();
            !program.contains('/') && presets::find_program(program, &path).is_none()
        });
        let Some(first) = self.checks.first() else { return };
        file.verifiers = Some(vec![VerifierConfig::command("tests", first.argv.clone())]);
        if file.setup_commands.is_none() {
            self.setup = setup;
            file.setup_commands = Some(self.setup.clone());
        }
    }
    /// Starts a virtual environment outside the repo by its path: in the sandbox its tool could pick another
    /// one.
    fn use_environment_outside(&mut self) {
        let outside = self.installed.iter().filter(|folder| folder.usage == InstalledUse::Outside);
        let mut all = outside.flat_map(|folder| &folder.environments);
        let Some(environment) = all.find(|path| path.join("bin/pytest").is_file()) else { return };
        let python = environment.join("bin/python").display().to_string();
        if let Some(first) = self.checks.first_mut()
            && !first.argv[0].contains('/')
            && first.argv.last().is_some_and(|word| word == "pytest")
        {
            first.argv = vec![python, "-m".to_owned(), "pytest".to_owned()];
        }
    }
}
