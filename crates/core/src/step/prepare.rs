//! Prepare: the start snapshot, the marker for hooks, the link to the current run's iterations.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::proof::surroundings;
use ralph_domain::event::EventBody;
use ralph_domain::ports::Surroundings;
use ralph_domain::protect::CI_FILES;
use ralph_domain::spec::RunSpec;

impl Driver {
    pub(crate) fn prepare(&mut self) -> Result<(), DriveError> {
        self.ctx.boundary("prepare.before");
        self.show();
        let protected = protected_patterns(&self.ctx.state.spec);
        let baseline = self.workspace.begin(&protected)?;
        self.ctx.boundary("prepare.snapshot");
        for path in baseline.left_out.clone() {
            self.ctx.notice(format!(
                "`{path}` is too large for the snapshot: it is left alone and cannot be restored"
            ))?;
        }
        let surroundings = match self.sandbox.capabilities().surroundings {
            Surroundings::Host => surroundings::sealed(&self.fingerprints()),
            Surroundings::Own => Default::default(),
        };
        self.ctx.record(EventBody::Prepared { baseline, surroundings })?;
        self.ctx.flush()?;
        self.ctx.boundary("prepare.after");
        Ok(())
    }

    /// What the checks depend on of this machine. Nothing of the workspace is among it, by whichever path checks see it.
    pub(crate) fn fingerprints(&self) -> surroundings::Fingerprints {
        let spec = &self.ctx.state.spec;
        surroundings::fingerprints(&self.ctx.vars, &spec.settings, [&spec.workspace, self.sandbox.root()])
    }

    /// What people and agents see of the run in `.ralph/`: its record, and `iterations`, which leads to the current run's.
    /// A session may have removed it.
    pub(crate) fn show(&self) {
        self.ctx.show_record();
        let target =
            std::path::Path::new("runs").join(self.ctx.state.spec.run_id.as_str()).join("iterations");
        for dir in [&self.ctx.home, &self.ctx.dir] {
            let _ = dir.link("iterations", &target);
        }
    }

    /// `.ralph/active.json`: tells hooks inside a session that a loop is active.
    pub(crate) fn write_marker(&self) -> Result<(), DriveError> {
        let state = &self.ctx.state;
        let marker = serde_json::json!({
            "timestamp": self.ctx.clock.now(),
            "pid": std::process::id(),
            "run_id": state.spec.run_id,
            "max_iterations": state.spec.settings.budgets.max_iterations,
            "mode": "autonomous",
        });
        self.ctx.dir.write("active.json", &serde_json::to_vec(&marker).unwrap_or_default())?;
        Ok(())
    }

    pub(crate) fn clear_marker(&self) {
        let _ = self.ctx.dir.remove("active.json");
    }
}

/// What must stay as it is: what the user named, the task, the configuration, the scripts that verifiers and the setup run, CI files.
pub(crate) fn protected_patterns(spec: &RunSpec) -> Vec<String> {
    let mut patterns = spec.settings.protected_paths.clone();
    patterns.push(spec.task.source.clone());
    let setup = spec.settings.setup_commands.iter().map(|command| command.argv());
    for argv in spec.settings.verifiers.iter().map(|v| v.command_argv.clone()).chain(setup) {
        let scripts = scripts_of(&argv);
        patterns.extend(scripts.into_iter().filter(|script| spec.workspace.join(script).is_file()));
    }
    patterns.extend(CI_FILES.iter().map(|p| (*p).to_owned()));
    let mut seen = std::collections::BTreeSet::new();
    patterns.retain(|p| !p.is_empty() && seen.insert(p.clone()));
    patterns
}

/// The files that a command runs: what stands in command position, and the first argument of an interpreter. A file that
/// a command only reads (`grep done todo.txt`) is the agent's to change.
fn scripts_of(argv: &[String]) -> Vec<String> {
    if let [shell, flag, line, ..] = argv
        && is_interpreter(shell)
        && flag.starts_with('-')
        && flag.ends_with('c')
    {
        let separators = [";", "&&", "||", "|", "\n", "(", ")", "{", "}"];
        let mut text = line.clone();
        for separator in separators {
            text = text.replace(separator, "\n");
        }
        return text
            .lines()
            .flat_map(|command| {
                let words: Vec<String> = command
                    .split_whitespace()
                    .skip_while(|w| {
                        w.contains('=')
                            || ["if", "then", "do", "while", "until", "!", "exec", "time"].contains(w)
                    })
                    .map(|w| w.trim_matches(['\'', '"']).to_owned())
                    .collect();
                scripts_of(&words)
            })
            .collect();
    }
    let first = argv.first().map(String::as_str).unwrap_or_default();
    let script = match is_interpreter(first) {
        true => argv.iter().skip(1).find(|arg| !arg.starts_with('-')),
        false => argv.first().filter(|program| program.contains('/')),
    };
    script
        .map(|path| path.trim_start_matches("./").to_owned())
        .filter(|path| !path.is_empty() && !path.starts_with('/'))
        .into_iter()
        .collect()
}

fn is_interpreter(program: &str) -> bool {
    const NAMES: &[&str] = &[
        "sh", "bash", "dash", "zsh", "ksh", "python", "python3", "node", "ruby", "perl", "deno", "bun",
        "php", ".", "source",
    ];
    let name = program.rsplit('/').next().unwrap_or(program);
    NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scripts(argv: &[&str]) -> Vec<String> {
        scripts_of(&argv.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_a_check_runs_is_protected_and_what_it_reads_is_not() {
        assert_eq!(scripts(&["sh", "test.sh"]), ["test.sh"]);
        assert_eq!(scripts(&["./run.sh", "x"]), ["run.sh"]);
        assert_eq!(scripts(&["python3", "-u", "tools/check.py", "data.csv"]), ["tools/check.py"]);
        assert_eq!(
            scripts(&["bash", "-lc", "A=1 ./a.sh && sh b.sh | tee out; . ./c.sh"]),
            ["a.sh", "b.sh", "c.sh"]
        );
        assert_eq!(scripts(&["sh", "-c", "grep -q done todo.txt"]), Vec::<String>::new());
        assert_eq!(scripts(&["cargo", "test"]), Vec::<String>::new());
        assert_eq!(scripts(&["/bin/true"]), Vec::<String>::new());
    }
}
