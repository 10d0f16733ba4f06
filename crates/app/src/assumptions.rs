//! What a run takes for granted because nobody said it: the agents of this machine, and the command that tests the repo.

use crate::environment::Environment;
use crate::installed;
use crate::model_access;
use crate::models::LoadedModels;
use crate::project::{self, ProjectCommand};
use crate::settings;
use ralph_loop_agents::presets;
use ralph_loop_domain::installed::{InstalledFolder, InstalledUse};
use ralph_loop_protocol::id::AgentName;
use ralph_loop_task::config::{CommandLine, ConfigFile, VerifierConfig};
use std::path::Path;

/// What was found out for one run.
#[derive(Debug, Clone, Default)]
pub struct Assumptions {
    /// The task is a sentence, so nothing was written down for this run.
    pub by_sentence: bool,
    /// The agents are those that were found on this machine.
    pub agents: bool,
    /// Agents that a list of the configuration names, but nobody described and this machine does not have.
    pub absent: Vec<AgentName>,
    /// The command that checks the result, and further ones that could.
    pub checks: Vec<ProjectCommand>,
    /// What a clean checkout needs first.
    pub setup: Vec<CommandLine>,
    /// What is installed already.
    pub installed: Vec<InstalledFolder>,
}

impl Assumptions {
    /// Whether there is something to tell.
    pub fn is_empty(&self) -> bool {
        !self.by_sentence && self.checks.is_empty() && self.absent.is_empty()
    }

    /// Fills in the agents: where nobody named any, those that are installed, else the default model; and the presets that
    /// a list names without describing them. A preset that only the configuration's list names and this machine lacks is
    /// left out as long as another agent is there; one of the flags is wanted as it is.
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
        // Where nobody of the list is there, what is missing is told by the check of each.
        if listed.iter().any(|name| names.contains(name)) {
            let absent = &self.absent;
            file.agent_priority.iter_mut().for_each(|list| list.retain(|name| !absent.contains(name)));
        } else {
            for name in std::mem::take(&mut self.absent) {
                file.agents.get_or_insert_default().extend(presets::preset(name.as_str()));
            }
        }
    }

    /// The verifier that the repo itself speaks of, where nothing else checks the result.
    /// `folder` is where the user stands: a project below the top is meant there.
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
        // One that can be run comes before one that a file speaks of and this machine does not have.
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
    /// An environment of this repo that a tool keeps elsewhere is started by its path: its tool may choose another one in a
    /// sandbox, where it does not see all that it sees outside.
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
