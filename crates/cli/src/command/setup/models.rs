//! `ralph models`: lists this folder's model profiles, or tests one.

use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::process::signals;
use crate::question::tiny_question;
use crate::text::table::{Cell, Table, columns};
use ralph_loop_agents::HttpModelClient;
use ralph_loop_agents::models::Route;
use ralph_loop_app::config::models::{LoadedModels, load};
use ralph_loop_app::read::find;
use ralph_loop_app::{App, Environment};
use ralph_loop_core::CancelToken;
use ralph_loop_domain::model::{ModelClient as _, ModelErrorKind, ModelSink};
use ralph_loop_domain::ports::StopCause;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::outcome::ErrorCode;
use ralph_loop_task::config::{PriceConfig, Profile};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph models                       list the profiles
  ralph models check                 ask the default profile a tiny question
  ralph models check strong-doctor")]
pub struct ModelsArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: Option<ModelsAction>,
}

#[derive(Debug, clap::Subcommand)]
pub enum ModelsAction {
    /// Ask a model a tiny question, for a fraction of a cent
    #[command(after_help = "Examples:\n  ralph models check strong-doctor")]
    Check(CheckArgs),
}

#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Profile or PROVIDER/MODEL [default: the default profile]
    pub profile: Option<String>,
}

pub fn run(args: ModelsArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let top = find::top(folder);
    let env = &app.environment().with_dotenv(&top)?;
    let loaded = load(env, &top)?;
    match args.action {
        None => {
            list(env, &loaded, out);
            Ok(0)
        }
        Some(ModelsAction::Check(args)) => check(env, &loaded, args.profile.as_deref(), &top, out),
    }
}

/// A displayed profile.
struct ProfileLine {
    profile: Profile,
    route: Result<Route, String>,
    key: Key,
    prices: Option<PriceConfig>,
    role: &'static str,
    from: String,
    from_word: &'static str,
}

/// Whether a profile has its key.
enum Key {
    NotNeeded,
    Set(String),
    Missing(String),
}

fn lines(env: &Environment, loaded: &LoadedModels) -> Vec<ProfileLine> {
    let models = &loaded.models;
    let vars = env.lookup();
    let line = |name: &String| {
        let profile = models.get(name)?;
        let route = Route::of(&profile, &vars);
        let key = match &route {
            Ok(route) => match (route.key_vars.first(), route.key_var(&vars)) {
                (None, _) => Key::NotNeeded,
                (_, Some(set)) => Key::Set(set.to_owned()),
                (Some(first), None) => Key::Missing(first.clone()),
            },
            Err(_) => Key::NotNeeded,
        };
        let table = || loaded.prices.price(&profile.litellm_model).map(|p| p.rates());
        let role = match name.as_str() {
            name if name == models.default_name() => "default",
            name if models.fallback.as_deref() == Some(name) => "fallback",
            _ => "",
        };
        let origin = loaded.origins.get(name);
        Some(ProfileLine {
            prices: profile.prices.or_else(table),
            route: route.map_err(|e| match e.hint {
                Some(hint) => format!("{} ({hint})", e.message),
                None => e.message,
            }),
            key,
            role,
            from: origin.map(|o| o.shown()).unwrap_or_default(),
            from_word: origin.map_or("", |o| o.word()),
            profile,
        })
    };
    models.profiles.keys().filter_map(line).collect()
}

fn list(env: &Environment, loaded: &LoadedModels, out: &Out) {
    let lines = lines(env, loaded);
    if out.json {
        out.value(&lines.iter().map(as_json).collect::<Vec<_>>());
        return;
    }
    let mut table = Table::new(1);
    let head = ["PROFILE", "MODEL", "SERVER", "KEY", "IN/OUT $ PER 1M", "FROM"];
    table.row(head.map(|h| Cell::toned(Tone::Muted, h)));
    for line in &lines {
        let role = if line.role.is_empty() { String::new() } else { format!(" ({})", line.role) };
        let server = line.route.as_ref().map_or_else(|_| "?".to_owned(), Route::server);
        let key = match &line.key {
            Key::NotNeeded => Cell::new("not needed"),
            Key::Set(name) => Cell::toned(Tone::Good, format!("{name} {}", out.sign(Sign::Good))),
            Key::Missing(name) => Cell::toned(Tone::Bad, format!("{name} not set")),
        };
        let price = line.prices.map_or("unknown".to_owned(), |p| format!("{} / {}", p.input, p.output));
        table.row([
            Cell::new(format!("{}{role}", line.profile.name)),
            Cell::new(line.profile.litellm_model.clone()),
            Cell::new(server),
            key,
            Cell::new(price),
            Cell::toned(Tone::Muted, line.from.clone()),
        ]);
    }
    for text in table.lines(columns().max(160), out) {
        out.line(text);
    }
    for line in &lines {
        if let Err(problem) = &line.route {
            out.say(format!("{} {problem}", out.err(Tone::Bad, out.sign(Sign::Bad))));
        }
    }
    out.say("run `ralph models check PROFILE` to test one");
}

fn as_json(line: &ProfileLine) -> Value {
    let profile = &line.profile;
    let (variable, set) = match &line.key {
        Key::NotNeeded => (None, None),
        Key::Set(name) => (Some(name), Some(true)),
        Key::Missing(name) => (Some(name), Some(false)),
    };
    let route = line.route.as_ref().ok();
    json!({
        "name": profile.name,
        "litellm_model": profile.litellm_model,
        "provider": route.map(|r| r.provider.name),
        "server": route.map(Route::server),
        "wire": route.map(|r| r.wire.as_str()),
        "key_variable": variable,
        "key_set": set,
        "prices": line.prices,
        "tags": profile.tags,
        "default": line.role == "default",
        "fallback": line.role == "fallback",
        "from": line.from_word,
        "file": if line.from_word == "built-in" { None } else { Some(&line.from) },
        "problem": line.route.as_ref().err(),
    })
}

/// Cancels the call on a signal.
struct Stopper {
    cancel: Arc<CancelToken>,
}

impl ModelSink for Stopper {
    fn text(&mut self, _: &str) {}
    fn waiting(&mut self, _: Duration, _: &str) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        if self.cancel.get().is_some() {
            ControlFlow::Break(StopCause::Cancelled)
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn check(
    env: &Environment,
    loaded: &LoadedModels,
    name: Option<&str>,
    top: &Path,
    out: &Out,
) -> Result<u8, CommandError> {
    let name = name.unwrap_or_else(|| loaded.models.default_name());
    let profile = loaded.models.get(name).ok_or_else(|| {
        let known = || loaded.models.profiles.keys().map(String::as_str);
        let hint = match ralph_loop_protocol::display::text::nearest(name, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", known().collect::<Vec<_>>().join(", ")),
        };
        CommandError::usage(format!("model profile `{name}` doesn't exist")).hint(hint)
    })?;
    if let Some((_, ask)) = loaded.asks.iter().find(|(of, _)| of == name && loaded.waiting.contains(of)) {
        return Err(CommandError::needs_person(format!("profile `{name}` asks for {}", ask.text))
            .hint("`ralph trust` shows and allows that; or put this profile into your own models.yaml"));
    }
    // One retry, so that a transient failure doesn't look like a wrong setting.
    let asked = Profile { max_retries: Some(1), ..profile.clone() };
    let request = tiny_question();
    let redactor = env.redactor(top);
    let mut sink = Stopper { cancel: signals::install() };
    let started = Instant::now();
    let reply = HttpModelClient::new(env.lookup()).call(&asked, &request, &mut sink);
    let took = started.elapsed();
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) if matches!(error.kind, ModelErrorKind::Stopped(_)) => return Ok(130),
        Err(error) => {
            let said = redactor.text(&error.message);
            let message = if said.starts_with("profile `") {
                said.into_owned()
            } else {
                format!("profile `{name}`: {said}")
            };
            let failed = CommandError::environment(message).code(match error.kind {
                ModelErrorKind::Auth | ModelErrorKind::Billing => ErrorCode::AuthFailed,
                ModelErrorKind::NotFound | ModelErrorKind::BadRequest => ErrorCode::InvalidInput,
                _ => ErrorCode::IterationFailed,
            });
            return Err(match error.hint {
                Some(hint) => failed.hint(hint),
                None => failed,
            });
        }
    };
    let cost = reply.cost.or_else(|| Some(loaded.prices.cost_of(&profile, &reply.tokens?)?.cost));
    let server = Route::of(&profile, &env.lookup()).map(|r| r.server()).unwrap_or_default();
    if out.json {
        out.value(&json!({
            "success": true, "profile": name, "litellm_model": profile.litellm_model, "server": server,
            "model": reply.model, "seconds": took.as_secs_f64(), "tokens": reply.tokens, "cost_usd": cost,
            "tries": reply.tries,
        }));
        return Ok(0);
    }
    let sign = out.out(Tone::Good, out.sign(Sign::Good));
    let tokens = reply.tokens.map_or(String::new(), |t| format!(", {} tokens", t.total()));
    let cost = cost.map_or(", price unknown".to_owned(), |c| format!(", {c}"));
    out.line(format!(
        "{sign} {name}: {} at {server} answered in {:.1} s{tokens}{cost}",
        profile.litellm_model,
        took.as_secs_f64()
    ));
    Ok(0)
}
