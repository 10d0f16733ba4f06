//! `ralph probe`: sends each agent a test prompt, to see that it is installed, logged in and answers.

mod model;
mod words;

use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::parse::isolation;
use crate::process::signals;
use crate::text::table::{columns, wrap};
use ralph_loop_agents::presets;
use ralph_loop_agents::probe::{ProbeReport, ProbeStatus, probe};
use ralph_loop_app::agents::scratch::Scratch;
use ralph_loop_app::config::{models, settings};
use ralph_loop_app::read::find;
use ralph_loop_app::{App, Environment};
use ralph_loop_core::Refusals;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::duration;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_task::config::{AgentConfig, Isolation};
use std::path::Path;
use std::time::Duration;
use words::Sink;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph probe
  ralph probe claude --timeout 60
  ralph probe --isolation none    check whether the sandbox is the problem
Each probe is a real session and may cost a little.")]
pub struct ProbeArgs {
    /// Agents to probe [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Agent to probe (repeatable)
    #[arg(long, alias = "modal", value_name = "NAME")]
    pub agent: Vec<String>,
    /// Time limit per agent, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
    /// Sandbox strength: auto, bwrap, landlock, none
    #[arg(long, value_name = "HOW", value_parser = isolation)]
    pub isolation: Option<Isolation>,
}

pub fn run(args: ProbeArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let timeout = Duration::from_secs(args.timeout);
    let top = find::top(folder);
    let env = &app.environment().with_dotenv(&top)?;
    let names = [args.names.as_slice(), args.agent.as_slice()].concat();
    let mut agents = chosen(&names, configured(env, &top)?)?;
    // A known agent starts by its path, outside the repo unless allowed.
    let (programs, grants) = (settings::programs(env, &top), env.grants(&top));
    agents.retain_mut(|agent| match programs.known(&agent.command_argv) {
        Some(found) if found.ask.as_ref().is_some_and(|ask| !grants.allow(ask)) => {
            out.say(format!(
                "{} is left out: `{}` is a file of this repo (`ralph trust`)",
                agent.name,
                found.path.display()
            ));
            false
        }
        Some(found) => {
            agent.command_argv[0] = found.path.display().to_string();
            true
        }
        None => true,
    });
    if agents.is_empty() {
        return Err(CommandError::environment(
            "no agent to probe: none is configured, and none of claude, codex, gemini, opencode, qwen is installed",
        )
        .hint("`ralph doctor` shows how to install one; `ralph demo` needs none"));
    }
    let redactor = env.redactor(&top);
    let cancel = signals::install();
    let loaded = settings::load(env, &top)?;
    let own = args.isolation.or(loaded.user_isolation).unwrap_or_default();
    let mut reports = Vec::new();
    for agent in &agents {
        if cancel.get().is_some() {
            break;
        }
        out.say(format!("asking {} …", agent.name));
        let now = SystemClock::default().now();
        let mut report = match agent.kind.calls_model() {
            true => model::ask(env, agent, &models::load(env, &top)?, timeout, &cancel, now),
            false => {
                let settings = loaded.alone(agent, Some(own));
                let refusals = Refusals::default();
                let scratch = Scratch::for_agents(env, "probe", &top, &settings, &refusals)?;
                let mut sink = Sink::new(agent, &cancel, &redactor, out);
                let mut report = probe(agent, &scratch.sandbox, timeout, now, &mut sink);
                sink.add_to(&mut report);
                mend(&mut report, settings.isolation);
                report_refusals(&mut report, &refusals);
                report
            }
        };
        clean(&mut report, &redactor);
        if !out.json {
            print(&report, out);
        }
        reports.push(report);
    }
    if out.json {
        out.value(&reports);
    }
    if cancel.get().is_some() {
        return Ok(130);
    }
    Ok(if reports.iter().any(|r| r.ok) { 0 } else { 4 })
}

/// Adds hosts the sandbox blocked, a possible cause.
fn report_refusals(report: &mut ProbeReport, refusals: &Refusals) {
    let hosts: Vec<String> = refusals.hosts().into_iter().map(|(host, _)| format!("`{host}`")).collect();
    if report.ok || hosts.is_empty() {
        return;
    }
    let hosts = hosts[..hosts.len().min(5)].join(", ");
    let hint = report.hint.take().unwrap_or_default();
    report.hint = Some(format!(
        "the sandbox refused access to {hosts}; allow it with `--allow-host` or in your own `allowed_hosts`; {hint}"
    ));
}

/// Configured agents, and the list of those that take part.
struct Configured {
    all: Vec<AgentConfig>,
    priority: Option<Vec<AgentName>>,
}

fn configured(env: &Environment, top: &Path) -> Result<Configured, CommandError> {
    let file = settings::load(env, top)?.file;
    let all = match file.agents {
        Some(agents) if !agents.is_empty() => agents,
        _ => settings::detected_agents(env, top),
    };
    Ok(Configured { all, priority: file.agent_priority })
}

/// The named agents (configured or presets), else those of a run here.
fn chosen(names: &[String], configured: Configured) -> Result<Vec<AgentConfig>, CommandError> {
    let Configured { all: known, priority } = configured;
    if names.is_empty() {
        let Some(order) = priority else { return Ok(known) };
        let one = |name: &AgentName| {
            known.iter().find(|agent| agent.name == *name).cloned().or_else(|| presets::preset(name.as_str()))
        };
        return Ok(order.iter().filter_map(one).collect());
    }
    let find = |name: &String| {
        let found = known.iter().find(|a| a.name.as_str() == name).cloned().or_else(|| presets::preset(name));
        found.ok_or_else(|| {
            let mut all: Vec<&str> = known.iter().map(|a| a.name.as_str()).collect();
            all.extend(presets::NAMES.iter().filter(|n| !known.iter().any(|a| a.name.as_str() == **n)));
            CommandError::usage(format!("agent `{name}` doesn't exist"))
                .hint(format!("known here: {}", all.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

/// Redacts: an agent's text may quote a key.
fn clean(report: &mut ProbeReport, redactor: &Redactor) {
    report.message = redactor.text(&report.message).into_owned();
}

/// Adds hints for common failures that the agent's text doesn't explain.
fn mend(report: &mut ProbeReport, isolation: Isolation) {
    let said = report.message.to_lowercase();
    let name = &report.name;
    let asks_login = said.contains("http")
        || ["login", "log in", "sign in", "authenticate", "browser"].iter().any(|w| said.contains(w));
    let login = presets::login_hint(name.as_str()).unwrap_or("log in by hand, outside the sandbox");
    let sandboxed = match isolation {
        Isolation::None => "",
        _ => "; `ralph probe --isolation none` shows whether it is the sandbox",
    };
    let hint = match report.status {
        ProbeStatus::Ok => return,
        ProbeStatus::Timeout if asks_login => format!(
            "it waits for a login: {login}; then `ralph probe --agent {name}` again, or `ralph run --agents …` leaves it out{sandboxed}"
        ),
        ProbeStatus::Timeout => format!(
            "run `{name}` by hand: it may wait for a login, or in silence for a provider that is at its limit; `--timeout 900` waits longer, `ralph run --agents …` leaves it out{sandboxed}"
        ),
        _ if ["keychain", "keytar", "libsecret"].iter().any(|w| said.contains(w)) => {
            "the sandbox can't reach the system keychain; use a key instead, such as GEMINI_API_KEY"
                .to_owned()
        }
        _ if said.contains("node") && said.contains("no such file") => {
            "Node.js is not found through PATH: install version 20 or newer, or add its folder to PATH"
                .to_owned()
        }
        _ => return,
    };
    report.hint = Some(hint);
}

fn print(report: &ProbeReport, out: &Out) {
    let (sign, tone) = if report.ok { (Sign::Good, Tone::Good) } else { (Sign::Bad, Tone::Bad) };
    let time = if report.seconds > 0.0 {
        format!(" ({})", duration(Duration::from_secs_f64(report.seconds)))
    } else {
        String::new()
    };
    let text = format!("{}: {}{time}", report.name, report.message);
    for (n, line) in wrap(&text, columns() - 3).iter().enumerate() {
        out.line(if n == 0 {
            format!("{} {line}", out.out(tone, out.sign(sign)))
        } else {
            format!("  {line}")
        });
    }
    let hint = report.hint.iter().filter(|_| !report.ok).flat_map(|hint| wrap(hint, columns() - 9));
    for (n, line) in hint.enumerate() {
        out.line(if n == 0 {
            format!("  {} {line}", out.out(Tone::Plain, "next:"))
        } else {
            format!("        {line}")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_chosen_by_name_from_the_configuration_or_the_presets() {
        let all = || vec![AgentConfig::command("mine", &["mine"]), AgentConfig::command("idle", &["idle"])];
        let known = || Configured { all: all(), priority: Some(vec!["mine".into()]) };
        let names = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|s| (*s).to_owned()).collect();
            chosen(&wanted, known()).map(|list| list.iter().map(|a| a.name.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap(), ["mine"]);
        assert_eq!(names(&["codex", "mine"]).unwrap(), ["codex", "mine"]);
        assert_eq!(
            names(&["idle"]).unwrap(),
            ["idle"],
            "a named agent is probed even if it isn't configured"
        );
        let free = chosen(&[], Configured { all: all(), priority: None }).unwrap();
        assert_eq!(free.len(), 2);
        let error = names(&["emacs"]).unwrap_err();
        assert_eq!(
            error.hint.as_deref(),
            Some("known here: mine, idle, claude, codex, gemini, opencode, qwen")
        );
    }

    #[test]
    fn common_causes_get_their_own_hint() {
        let hint = |status, message: &str| {
            let (message, hint) = (message.to_owned(), Some("as before".to_owned()));
            let mut report = ProbeReport {
                name: "gemini".into(),
                ok: false,
                status,
                end: None,
                seconds: 1.0,
                message,
                hint,
            };
            mend(&mut report, Isolation::None);
            report.hint.unwrap()
        };
        assert!(hint(ProbeStatus::NotFound, "env: 'node': No such file or directory").contains("Node.js"));
        assert!(hint(ProbeStatus::Failed, "Keychain initialization failed").contains("GEMINI_API_KEY"));
        assert!(hint(ProbeStatus::Timeout, "no answer within 5 min").contains("--timeout"));
        assert_eq!(hint(ProbeStatus::Failed, "exit code 1"), "as before");
        let login =
            hint(ProbeStatus::Timeout, "no answer within 5 s; it printed: open https://example.org/login");
        assert!(login.contains("waits for a login") && login.contains("leaves it out"), "{login}");
    }

    #[test]
    fn a_key_in_an_agents_words_is_not_shown() {
        let redactor =
            Redactor::from_vars([("OPENAI_API_KEY".to_owned(), "sk-very-secret-value-123456".to_owned())]);
        let mut report = ProbeReport {
            name: "codex".into(),
            ok: false,
            status: ProbeStatus::Auth,
            end: None,
            seconds: 1.0,
            message: "bad key sk-very-secret-value-123456".into(),
            hint: None,
        };
        clean(&mut report, &redactor);
        assert!(!report.message.contains("very-secret"), "{}", report.message);
    }
}
