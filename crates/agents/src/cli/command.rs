//! Builds a session's command line: fills placeholders, and passes model, prompt and money cap as the CLI expects.

use ralph_loop_domain::ports::{Credentials, ExecRequest, SessionRequest, Stdin};
use ralph_loop_protocol::money::Usd;
use ralph_loop_task::config::{OutputFormat, PromptMode};
use std::path::Path;

/// Linux limits an argument to 128 KiB; leaves some room for the rest of it.
const ARG_MAX: usize = 120_000;
const MODEL: &str = "{{model}}";
const PROMPT_FILE: &str = "{{prompt_file}}";

#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(
        "the prompt has {bytes} bytes and does not fit into an argument of `{program}` (at most {ARG_MAX}): \
         set \"prompt_mode\" to \"stdin\" or \"file\""
    )]
    PromptTooLong { bytes: usize, program: String },
    /// A prompt with a zero byte can't be an argument.
    #[error(
        "the prompt holds a zero byte and cannot be an argument: set \"prompt_mode\" to \"stdin\" or \"file\""
    )]
    ZeroByte,
    #[error("agent `{0}` has no \"command_argv\": name the command that starts it")]
    NoCommand(String),
}

/// The request for the sandbox. `as_root` says whether the agent will run as root.
pub(crate) fn build(request: &SessionRequest<'_>, as_root: bool) -> Result<ExecRequest, CommandError> {
    let config = request.config;
    let model = model(request);
    let prompt_file = request.prompt_file.to_string_lossy();
    let mut argv = fill(&config.command_argv, model, &prompt_file);
    if argv.first().is_none_or(String::is_empty) {
        return Err(CommandError::NoCommand(config.name.to_string()));
    }
    if model.is_some() {
        argv.extend(fill(&config.model_argv, model, &prompt_file));
    }
    if is_claude(config.output_format) {
        cap_money(&mut argv, request.budget_left);
    }
    let stdin = match config.prompt_mode {
        PromptMode::Stdin => Stdin::File(request.prompt_file.to_path_buf()),
        PromptMode::Arg => {
            argv.push(as_argument(request.prompt, &argv[0])?);
            Stdin::Empty
        }
        PromptMode::File => {
            if !config.command_argv.iter().any(|arg| arg.contains(PROMPT_FILE)) {
                argv.push(prompt_file.clone().into_owned());
            }
            Stdin::Empty
        }
    };
    Ok(ExecRequest {
        env: environment(request, model, &prompt_file, as_root),
        stdin,
        timeout: Some(config.timeout().min(request.timeout)),
        idle_timeout: config.idle_timeout(),
        cwd: request.cwd.to_path_buf(),
        credentials: Credentials::Agent,
        ..ExecRequest::new(argv)
    })
}

pub(crate) fn model<'a>(request: &SessionRequest<'a>) -> Option<&'a str> {
    request.model.or(request.config.model.as_deref()).filter(|model| !model.is_empty())
}

/// Arguments with placeholders filled in. Without a model, an argument that is only its placeholder is dropped,
/// together with the flag before it.
fn fill(args: &[String], model: Option<&str>, prompt_file: &str) -> Vec<String> {
    let mut filled: Vec<String> = Vec::with_capacity(args.len() + 4);
    for arg in args {
        match model {
            None if arg == MODEL => {
                if filled.len() > 1 && filled.last().is_some_and(|flag| flag.starts_with('-')) {
                    filled.pop();
                }
            }
            None if arg.contains(MODEL) => {}
            _ => filled.push(arg.replace(MODEL, model.unwrap_or_default()).replace(PROMPT_FILE, prompt_file)),
        }
    }
    filled
}

fn as_argument(prompt: &str, program: &str) -> Result<String, CommandError> {
    if prompt.len() > ARG_MAX {
        return Err(CommandError::PromptTooLong { bytes: prompt.len(), program: program.to_owned() });
    }
    if prompt.contains('\0') {
        return Err(CommandError::ZeroByte);
    }
    Ok(prompt.to_owned())
}

/// Makes claude itself stop at the remaining money, unless configured otherwise.
fn cap_money(argv: &mut Vec<String>, left: Option<Usd>) {
    const FLAG: &str = "--max-budget-usd";
    let Some(left) = left else { return };
    let is_claude =
        argv.first().is_some_and(|program| Path::new(program).file_name() == Some("claude".as_ref()));
    if is_claude && !argv.iter().any(|arg| arg.split('=').next() == Some(FLAG)) {
        // Zero would mean no cap.
        argv.extend([FLAG.to_owned(), format!("{:.4}", left.dollars().max(0.0001))]);
    }
}

fn environment(
    request: &SessionRequest<'_>,
    model: Option<&str>,
    prompt_file: &str,
    as_root: bool,
) -> Vec<(String, String)> {
    let mut env = request.config.env.clone();
    let mut set = |key: &str, value: String| env.insert(key.to_owned(), value);
    set("RALPH_ITERATION", request.iteration.to_string());
    set("RALPH_ATTEMPT", request.attempt.to_string());
    set("RALPH_AGENT", request.config.name.to_string());
    set("RALPH_MODEL", model.unwrap_or_default().to_owned());
    set("RALPH_PROMPT_FILE", prompt_file.to_owned());
    if as_root && is_claude(request.config.output_format) {
        // As root, claude refuses to skip permissions unless a variable says that it runs in a sandbox.
        env.entry("IS_SANDBOX".to_owned()).or_insert_with(|| "1".to_owned());
    }
    env.into_iter().collect()
}

fn is_claude(format: OutputFormat) -> bool {
    matches!(format, OutputFormat::ClaudeJson | OutputFormat::ClaudeStreamJson)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_protocol::id::RunId;
    use ralph_loop_task::config::AgentConfig;
    use std::time::Duration;

    fn exec(
        config: &AgentConfig,
        change: impl FnOnce(&mut SessionRequest<'_>),
    ) -> Result<ExecRequest, CommandError> {
        let run = RunId::from("r");
        let mut request = SessionRequest {
            run: &run,
            iteration: 2,
            attempt: 1,
            prompt: "do it",
            prompt_file: Path::new("/p/prompt.md"),
            cwd: std::path::Path::new(""),
            model: None,
            timeout: Duration::from_secs(60),
            budget_left: None,
            config,
            now: "2026-11-15T03:00:00Z".parse().unwrap(),
            stable: &[],
            protected: &[],
            folder: std::path::Path::new(""),
        };
        change(&mut request);
        build(&request, true)
    }

    fn config(argv: &[&str], mode: PromptMode) -> AgentConfig {
        AgentConfig { prompt_mode: mode, ..AgentConfig::command("x", argv) }
    }

    #[test]
    fn the_prompt_goes_where_its_mode_says() {
        let argv = |mode, args: &[&str]| exec(&config(args, mode), |_| {}).unwrap();
        let stdin = argv(PromptMode::Stdin, &["a", "-p"]);
        assert_eq!(stdin.argv, ["a", "-p"]);
        assert!(matches!(stdin.stdin, Stdin::File(path) if path == Path::new("/p/prompt.md")));
        assert_eq!(argv(PromptMode::Arg, &["a", "-p"]).argv, ["a", "-p", "do it"]);
        assert_eq!(argv(PromptMode::File, &["a"]).argv, ["a", "/p/prompt.md"]);
        assert_eq!(
            argv(PromptMode::File, &["a", "--in={{prompt_file}}", "x"]).argv,
            ["a", "--in=/p/prompt.md", "x"]
        );
    }

    #[test]
    fn a_prompt_too_long_for_an_argument_says_what_to_do() {
        let long = "x".repeat(120_001);
        let error = exec(&config(&["a"], PromptMode::Arg), |r| r.prompt = Box::leak(long.into_boxed_str()))
            .unwrap_err();
        assert!(error.to_string().contains("\"stdin\" or \"file\""), "{error}");
    }

    #[test]
    fn models_are_filled_in_or_left_out() {
        let mut with = config(&["a", "--m", "{{model}}", "z"], PromptMode::Stdin);
        assert_eq!(exec(&with, |_| {}).unwrap().argv, ["a", "z"]);
        with.model = Some("m1".into());
        assert_eq!(exec(&with, |_| {}).unwrap().argv, ["a", "--m", "m1", "z"]);
        let mut appended = config(&["a"], PromptMode::Arg);
        appended.model_argv = vec!["--model".into(), "{{model}}".into()];
        assert_eq!(exec(&appended, |_| {}).unwrap().argv, ["a", "do it"]);
        let argv = exec(&appended, |r| r.model = Some("m2")).unwrap().argv;
        assert_eq!(argv, ["a", "--model", "m2", "do it"]);
    }

    #[test]
    fn claude_gets_the_money_cap_and_its_root_variable() {
        let mut claude = config(&["/usr/bin/claude", "-p"], PromptMode::Stdin);
        claude.output_format = OutputFormat::ClaudeStreamJson;
        let capped = exec(&claude, |r| r.budget_left = Some(Usd::from_dollars(1.5))).unwrap();
        assert_eq!(capped.argv, ["/usr/bin/claude", "-p", "--max-budget-usd", "1.5000"]);
        assert!(capped.env.contains(&("IS_SANDBOX".into(), "1".into())));
        claude.command_argv.push("--max-budget-usd=3".into());
        assert_eq!(exec(&claude, |r| r.budget_left = Some(Usd::ZERO)).unwrap().argv.len(), 3);
        claude.command_argv = vec!["my-claude".into()];
        assert_eq!(exec(&claude, |r| r.budget_left = Some(Usd::ZERO)).unwrap().argv, ["my-claude"]);
        let text = exec(&config(&["claude"], PromptMode::Stdin), |_| {}).unwrap();
        assert!(!text.env.iter().any(|(key, _)| key == "IS_SANDBOX"));
    }

    #[test]
    fn time_and_environment_are_the_sessions() {
        let mut config = config(&["a"], PromptMode::Stdin);
        config.env.insert("RALPH_AGENT".into(), "forged".into());
        config.idle_timeout_seconds = 0;
        let exec = exec(&config, |_| {}).unwrap();
        assert_eq!(exec.timeout, Some(Duration::from_secs(60)));
        assert_eq!(exec.idle_timeout, None);
        assert_eq!(exec.credentials, Credentials::Agent);
        for (key, value) in
            [("RALPH_AGENT", "x"), ("RALPH_ITERATION", "2"), ("RALPH_PROMPT_FILE", "/p/prompt.md")]
        {
            assert!(exec.env.contains(&(key.into(), value.into())), "{key}");
        }
    }
}
