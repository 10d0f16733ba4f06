//! The built-in scenarios.

use super::fault::{Fault, FaultKind as Kind};
use super::script::{Action, Script, Stop, Turn};

const DONE: &str = "All work is finished.\n\n<promise>COMPLETE</promise>";
/// Length of the line that `hugeline` answers.
const HUGE: usize = 2 * 1024 * 1024;
/// The duration of the answer of `slow`.
const SLOW_MS: u64 = 30_000;

/// All names, each with a one-line description, as shown by `ralph-model-server --list`.
pub const SCENARIOS: &[(&str, &str)] = &[
    ("ok", "writes hello.txt, runs a command, answers the promise"),
    ("text", "answers the promise at once"),
    ("notdone", "writes hello.txt, says that work is left"),
    ("stopearly", "writes hello.txt, then an answer cut by its length limit"),
    ("alt", "alternates between two commands for ever"),
    ("deny", "asks for a command that permissions refuse (sudo, harmless), then answers the promise"),
    ("badtool", "calls a tool that does not exist, then answers the promise"),
    ("loop", "runs the same command for ever"),
    ("parallel", "two files and a command in one turn, then the promise"),
    ("slow", "an answer that takes 30 s"),
    ("slowfirst", "30 s of silence, then as ok"),
    ("stall", "first bytes, then silence"),
    ("refusal", "declines"),
    ("garbled", "no JSON, broken events"),
    ("hugeline", "a line of 2 MiB, then the promise"),
    ("rl429", "429 with Retry-After 1, always"),
    ("rl429once", "429 once, then as ok"),
    ("rl429long", "429 with Retry-After 3600, always"),
    ("usagelimit", "the plan's window is used up, resets in an hour"),
    ("quota", "429, no quota left"),
    ("auth", "401"),
    ("forbidden", "403"),
    ("credit", "400, no credit (Gemini: a key that is not valid)"),
    ("overloaded", "529, always"),
    ("overloaded1", "529 once, then as ok"),
    ("unavail", "503, always"),
    ("err500", "500, always"),
    ("toolong", "400, the prompt is longer than the context"),
    ("nomodel", "404, no such model"),
    ("streamerr", "an overloaded event inside a stream, always"),
    ("streamrl", "a rate limit event inside a stream, always"),
    ("streamcut", "the connection ends in the middle of the answer, always"),
    ("streamcut1", "the same once, then as ok"),
    ("hangup", "the connection ends before the first byte, always"),
];

fn ok() -> Script {
    Script::turns([
        Action::write("hello.txt", "hello from the scripted model\n"),
        Action::shell("echo shell-ran >> hello.txt && cat hello.txt"),
        Action::text(DONE),
    ])
}

fn failing(fault: Fault) -> Script {
    ok().with_fault(fault)
}

fn spoken(text: &str) -> Script {
    Script::turns([Action::text(text)])
}

/// Numbers, because clients with loop detection stop at repeated text.
fn huge_line() -> String {
    let mut line = String::with_capacity(HUGE + 8);
    for number in 0_u32.. {
        if line.len() >= HUGE {
            break;
        }
        line.push_str(&number.to_string());
        line.push(' ');
    }
    line
}

pub(super) fn built_in(name: &str) -> Option<Script> {
    let always = |kind| Some(failing(Fault::always(kind)));
    let once = |kind| Some(failing(Fault::times(kind, 1)));
    let wrote = || Turn::from(Action::write("hello.txt", "hello from the scripted model\n"));
    match name {
        "ok" => Some(ok()),
        "text" => Some(spoken(DONE)),
        "notdone" => {
            Some(Script::turns([wrote(), Action::text("One part is written. More work is left.").into()]))
        }
        "stopearly" => Some(Script::turns([
            wrote(),
            Turn::from(Action::text("Now I will continue with the")).with_stop(Stop::MaxTokens),
        ])),
        "alt" => Some(Script {
            cycle: true,
            ..Script::turns([Action::shell("echo ping"), Action::shell("echo pong")])
        }),
        "deny" => Some(Script::turns([Action::shell("sudo -n true"), Action::text(DONE)])),
        "badtool" => Some(Script::turns([
            Action::tool("no_such_tool", serde_json::json!({"x": 1})),
            Action::text(DONE),
        ])),
        "loop" => Some(Script::turns([Action::shell("echo the same again")])),
        "parallel" => Some(Script::turns([
            Turn::new([
                Action::text("Three things at once."),
                Action::write("one.txt", "1\n"),
                Action::write("two.txt", "2\n"),
                Action::shell("echo three > three.txt"),
            ]),
            Action::text(DONE).into(),
        ])),
        "slow" => Some(Script::turns([Turn { spread_ms: SLOW_MS, ..Turn::from(Action::text(DONE)) }])),
        "refusal" => Some(Script::turns([
            Turn::from(Action::text("I cannot help with that.")).with_stop(Stop::Refusal)
        ])),
        "hugeline" => Some(spoken(&format!("{}\n{DONE}", huge_line()))),
        "slowfirst" => always(Kind::SlowFirst { ms: SLOW_MS }),
        "stall" => always(Kind::Stall { ms: 600_000 }),
        "garbled" => always(Kind::Garbled),
        "rl429" => always(Kind::RateLimit { retry_after_s: 1 }),
        "rl429once" => once(Kind::RateLimit { retry_after_s: 1 }),
        "rl429long" => always(Kind::RateLimit { retry_after_s: 3600 }),
        "usagelimit" => always(Kind::UsageLimit { resets_in_s: 3600 }),
        "quota" => always(Kind::Quota),
        "auth" => always(Kind::Auth),
        "forbidden" => always(Kind::Forbidden),
        "credit" => always(Kind::Credit),
        "overloaded" => always(Kind::Overloaded),
        "overloaded1" => once(Kind::Overloaded),
        "unavail" => always(Kind::Unavailable),
        "err500" => always(Kind::ServerError),
        "toolong" => always(Kind::TooLong),
        "nomodel" => always(Kind::NoModel),
        "streamerr" => always(Kind::StreamError),
        "streamrl" => always(Kind::StreamRateLimit),
        "streamcut" => always(Kind::Cut),
        "streamcut1" => once(Kind::Cut),
        "hangup" => always(Kind::Hangup),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_a_scenario() {
        for (name, _) in SCENARIOS {
            assert!(built_in(name).is_some(), "{name} is listed and missing");
        }
    }
}
