//! A model with content for every screen.

use crate::data::{
    AgentFact, AgentState, Baseline, Happened, LintLine, Message, Problem, RepoFacts, RunRow, Screen,
    ToneLine,
};
use crate::draft::Draft;
use crate::log::Kind;
use crate::model::{BaselineState, Model, Reviewer};
use crate::msg::{Effect, Live, Msg};
use crate::update::update;
use crate::view::view;
use crate::widget::theme::{Depth, Theme};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ralph_loop_app::task::lint::probe::ProbeEnd;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::race::{RaceBy, RaceRun, RaceView};
use ralph_loop_protocol::display::view::RunView;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::{Cost, Usd};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use ratatui::style::{Color, Modifier};
use serde_json::{Value, json};

pub const COLORS: Theme = Theme { depth: Depth::Sixteen, light: false, unicode: true };

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub fn model(theme: Theme, size: (u16, u16)) -> Model {
    let mut model = Model::new(theme, size, at("2026-11-15T14:40:00Z"), TimeZone::UTC);
    let agent = |name: &str, state: AgentState, detail: &str| AgentFact {
        name: name.into(),
        state,
        detail: detail.into(),
    };
    let facts = RepoFacts {
        path: "~/work/router".into(),
        branch: "main".into(),
        changed: Some(2),
        has_commit: true,
        configured: true,
        isolation: "sandboxed (bubblewrap), network: allowlist".into(),
        sandboxed: true,
        agents: vec![
            agent("claude", AgentState::Works("answered: OK".into()), "/usr/bin/claude"),
            agent("codex", AgentState::Found, "/usr/bin/codex"),
            agent("gemini", AgentState::Missing, "npm install -g @google/gemini-cli"),
        ],
        tasks: vec!["PROMPT.md".into()],
        tests: vec!["cargo test".into()],
        verifiers: vec!["cargo test".into()],
        promise: "COMPLETE".into(),
        selection: "each in turn (round_robin)".into(),
        limits: (30, 120, "$10".into()),
        problem: None,
    };
    let run = |id: &str, title: &str, status: &str, driven: bool, age: &str| RunRow {
        id: id.into(),
        title: title.into(),
        status: status.into(),
        driven,
        iteration: "7/30".into(),
        cost: "$1.34".into(),
        at: at(age),
        folder: "/home/ana/work/router".into(),
        here: true,
        waits: false,
    };
    update(&mut model, Msg::Repo(Box::new(facts)));
    update(
        &mut model,
        Msg::Runs(vec![
            run("20261114-090000-aaaa", "Fix flaky test 日本語", "done", false, "2026-11-14T10:00:00Z"),
            run(
                "20261115-143307-k3f9",
                "Keep the order of messages",
                "working",
                true,
                "2026-11-15T14:39:56Z",
            ),
        ]),
    );
    model
}

/// A run in progress.
pub fn run_view() -> RunView {
    serde_json::from_value(run_json()).unwrap()
}

fn check(name: &str, passed: bool) -> Value {
    json!({
        "name": name, "tree": "1111111111111111111111111111111111111111", "passed": passed,
        "why": if passed { Value::Null } else { "exit code 101".into() }, "exit_code": if passed { 0 } else { 101 },
        "duration_ms": 4100, "tests": { "passed": 41, "failed": if passed { 0 } else { 3 } },
        "log": "iterations/6/check.log", "log_digest": "0".repeat(64),
        "failing": if passed { json!([]) } else { json!(["drain::keeps_order"]) },
        "last_lines": if passed { json!([]) } else { json!(["expected [1, 2, 3], got [1, 3, 2]"]) },
    })
}

pub fn run_json() -> Value {
    let iteration = |n: u32, agent: &str, passed: u64, failed: u64, message: &str| {
        json!({
            "iteration": n, "agent": agent, "verdict": "checks_fail", "end": { "how": "completed" }, "message": message,
            "files": 4, "added": 41, "removed": 12, "cost_usd": 0.21, "cost_basis": "reported", "duration_ms": 178_000,
            "loop_score": 0.1 * f64::from(n), "tests": { "passed": passed, "failed": failed },
            "ended_at": "2026-11-15T14:36:00Z",
        })
    };
    let tokens = json!({ "input": 120_000, "output": 9000, "cached": 80_000, "cache_write": 0 });
    let agent = |name: &str, standing: &str| {
        json!({
            "name": name, "standing": standing, "sessions": 3, "cost_usd": 0.67, "cost_basis": "reported", "tokens": tokens,
        })
    };
    let mut resting = agent("gemini", "resting");
    resting["until"] = "2026-11-15T14:52:03Z".into();
    resting["reason"] = "rate limit".into();
    let budget = |name: &str, used: f64, limit: f64| json!({ "budget": name, "used": used, "limit": limit, "share": used / limit });
    json!({
        "run_id": "20261115-143307-k3f9", "title": "Keep the order of messages", "status": "working",
        "now": "codex is working · last output 4 s ago · at src/router.rs", "driven": true, "orphaned": false, "seq": 44,
        "created_at": "2026-11-15T14:33:07Z", "last_event_at": "2026-11-15T14:39:50Z",
        "elapsed_seconds": 413.0, "working_seconds": 400.0,
        "current": { "iteration": 7, "attempt": 1, "agent": "codex", "started_at": "2026-11-15T14:36:48Z" },
        "criteria": [
            { "id": "M1.1", "text": "the router keeps the order", "check": "cargo test order", "claimed": true, "met": true },
            { "id": "M1.2", "text": "no flake in 200 runs", "check": "scripts/flake", "claimed": false, "met": false, "last": check("M1.2", false) },
            { "id": "M2.1", "text": "lint is clean", "check": "cargo clippy", "claimed": false, "met": false },
        ],
        "checks": [
            { "name": "tests", "command": "cargo test", "required": true, "last": check("tests", false), "current_tree": true },
            { "name": "lint", "command": "cargo clippy", "required": false, "current_tree": false },
        ],
        "budgets": [budget("iterations", 7.0, 30.0), budget("time", 2520.0, 7200.0), budget("cost", 8.4, 10.0)],
        "spent": { "cost_usd": 8.4, "cost_basis": "reported", "saved_usd": 0.4, "tokens": tokens, "sessions": 7 },
        "agents": [agent("codex", "working"), agent("claude", "free"), resting],
        "iterations": 6,
        "history": [
            iteration(4, "claude", 38, 6, "Looked at the drain path."),
            iteration(5, "codex", 39, 5, "Renamed a field."),
            iteration(6, "claude", 41, 3, "Narrowed the race to the drain path; added a test that shows it. 日本語 👩\u{200d}💻"),
        ],
        "loop_score": 0.3, "branch": "ralph/keep-the-order",
        "workspace": "/home/ana/work/router", "origin": "/home/ana/work/router",
    })
}

pub fn with_run(model: &mut Model) {
    model.run.id = "20261115-143307-k3f9".into();
    model.screen = Screen::Run;
    update(model, Msg::View(Box::new(run_view())));
    let happened = |time: &str, tone: Tone, text: &str| Happened {
        at: at(time),
        line: ToneLine::new(tone, text),
        details: Vec::new(),
    };
    let live = vec![
        Live::Line(Kind::Did, "reading src/router.rs".into()),
        Live::Piece(Kind::Said, "I see the race: the drain path does not hold the lock.\nNow I ".into()),
        Live::Piece(Kind::Said, "add a test.\n\u{1b}]0;owned\u{7}\u{1b}[2Jnot cleared\n".into()),
        Live::Line(Kind::Did, "running `cargo test order`".into()),
        Live::Result(false, (1..9).map(|n| format!("output {n}\n")).collect::<String>() + "1 test failed"),
    ];
    let told = vec![
        happened("2026-11-15T14:33:07Z", Tone::Plain, "run created"),
        happened("2026-11-15T14:36:00Z", Tone::Bad, "iteration 6: checks fail (tests)"),
    ];
    update(model, Msg::Told(told, live));
}

/// A race of two; the first is [`run_view`].
pub fn race(winner: Option<&str>) -> RaceView {
    let run = |name: &str, id: &str, cost: f64| RaceRun {
        name: name.into(),
        run_id: RunId::new(id),
        begun: true,
        status: if winner == Some(id) { "done".into() } else { "working".into() },
        detail: "iteration 2/10".into(),
        iteration: 2,
        max_iterations: 10,
        cost: Cost::reported(Usd::from_dollars(cost)),
        best: None,
        proven: winner == Some(id),
        exit_code: None,
    };
    RaceView {
        id: RunId::new("20261115-143307-k3f9"),
        title: "Keep the order".into(),
        by: RaceBy::First,
        budget_usd: Usd::from_dollars(10.0),
        cost: Cost::reported(Usd::from_dollars(1.5)),
        winner: winner.map(RunId::new),
        ended: winner.map(|_| "codex was proven first".into()),
        over: winner.is_some(),
        looked_after: true,
        runs: vec![run("claude", "20261115-143307-k3f9", 1.0), run("codex", "20261115-143307-k3fb", 0.5)],
    }
}

pub fn finished() -> RunView {
    let mut view = run_json();
    view["status"] = "done".into();
    view["driven"] = false.into();
    view["now"] = "proven".into();
    view.as_object_mut().unwrap().remove("current");
    view["finished"] = json!({ "reason": "completed", "summary": "all checks pass in a clean checkout", "at": "2026-11-15T14:39:50Z" });
    view["proof"] = json!({
        "commit": "2222222222222222222222222222222222222222", "over": true, "passed": true, "clean": true,
        "headline": "proven, independent", "level": "independent", "watched": "watched",
        "difference": ["tests: failed before, passes now"],
    });
    view["pr"] = json!({ "number": 41, "url": "https://code.example/acme/router/pull/41", "draft": false });
    serde_json::from_value(view).unwrap()
}

pub fn needs_you() -> RunView {
    let mut view = run_json();
    view["status"] = "needs you".into();
    view["driven"] = false.into();
    view["needs"] = json!({
        "reason": "tests_changed", "message": "2 tests that were there at the start were changed; with the original ones 1 of 44 fails",
        "next": "`ralph approve` accepts them, `ralph nudge` says no", "details": ["tests/order.rs: assertion removed"],
    });
    serde_json::from_value(view).unwrap()
}

/// The asked agent answers.
pub fn answer(model: &mut Model, answer: Result<&str, Problem>) -> Vec<Effect> {
    let (thread, agent) = (model.studio.thread.clone(), "claude".to_owned());
    update(model, Msg::Answered { thread, agent, answer: answer.map(str::to_owned) })
}

/// The model with this screen open.
pub fn on(screen: Screen, theme: Theme, size: (u16, u16)) -> Model {
    let mut model = model(theme, size);
    let draft = Draft::new(
        "# Keep the order\n\n## Task\n\nMessages of one sender arrive in order.\n\n## Acceptance\n\n- `cargo test order` passes\n\n## Verification\n\n```sh\ncargo test\n```\n",
    );
    match screen {
        Screen::Welcome => {}
        Screen::Setup => {
            press(&mut model, KeyCode::Char('e'), KeyModifiers::CONTROL);
            let wrong = Problem::new(
                "no answer within 60 s; it printed: open https://example.org/login",
                "it waits for a login: run `codex login`",
            );
            model.setup.agents[1].1 = AgentState::Fails(wrong);
            model.setup.at = 1;
        }
        Screen::Studio | Screen::Review | Screen::Finalize => {
            type_text(&mut model, "Keep the order of messages");
            press(&mut model, KeyCode::Char('p'), KeyModifiers::CONTROL);
            answer(&mut model, Ok("I understand. Is the order per sender?"));
            model.studio.messages.push(Message {
                who: "you".into(),
                text: "Yes, per sender. 日本語".into(),
                draft: String::new(),
            });
            model.studio.change(draft);
            model.studio.input.insert("and no new dependency");
        }
        Screen::Start => {
            press(&mut model, KeyCode::Char('r'), KeyModifiers::CONTROL);
        }
        Screen::Run => with_run(&mut model),
        Screen::Summary => {
            with_run(&mut model);
            update(&mut model, Msg::View(Box::new(finished())));
            let lines = vec![
                ToneLine::new(Tone::Good, "new          +40 −0  tests/order.rs"),
                ToneLine::new(Tone::Plain, "changed      +12 −3  src/router.rs"),
            ];
            update(&mut model, Msg::Tab(3, lines));
        }
    }
    if screen == Screen::Review {
        model.studio.agents = vec!["claude".into(), "codex".into()];
        press(&mut model, KeyCode::Char('v'), KeyModifiers::CONTROL);
        let answer = r#"{"findings":[{"severity":"blocker","text":"Nothing says what happens when a sender reconnects","section":"Acceptance","line":"after a reconnect the order still holds"},{"severity":"nice","text":"A line in the changelog"}]}"#;
        update(&mut model, Msg::Reviewed("codex".into(), Ok(answer.into())));
        model.review.reviewers.push(("gemini".into(), Reviewer::Reading));
    }
    if screen == Screen::Finalize {
        press(&mut model, KeyCode::Char('f'), KeyModifiers::CONTROL);
        let lint = vec![LintLine {
            error: false,
            line: 3,
            message: "there is no section `Constraints`".into(),
            fix: "say what must not change".into(),
        }];
        let checks = vec!["cargo test (PROMPT.md:14)".to_owned()];
        update(&mut model, Msg::Linted { found: lint, checks });
        let baseline = Baseline {
            checks: vec![(
                "cargo test (PROMPT.md:14)".into(),
                ProbeEnd::Fails,
                vec!["test result: FAILED. 41 passed; 3 failed".into()],
            )],
            ..Baseline::default()
        };
        model.finalize.baseline = BaselineState::Over(baseline);
    }
    model
}

pub fn press(model: &mut Model, code: KeyCode, held: KeyModifiers) -> Vec<Effect> {
    let effects = update(model, Msg::Key((code, held)));
    // Hits come from a frame.
    let _ = draw(model);
    effects
}

pub fn type_text(model: &mut Model, text: &str) {
    for c in text.chars() {
        press(model, KeyCode::Char(c), KeyModifiers::NONE);
    }
}

pub fn draw(model: &mut Model) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(model.size.0, model.size.1)).unwrap();
    let mut drawn = crate::view::Drawn::default();
    terminal.draw(|frame| drawn = view(model, frame)).unwrap();
    model.hits = drawn.hits;
    model.run.height = drawn.height;
    terminal.backend().buffer().clone()
}

/// A frame's text.
pub fn text(buffer: &Buffer) -> String {
    let area = *buffer.area();
    let mut out = String::new();
    for y in 0..area.height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..area.width {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = crate::widget::text::width(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// A frame's styles, one letter per styled cell.
pub fn styles(buffer: &Buffer) -> String {
    let area = *buffer.area();
    let mut out = String::new();
    for y in 0..area.height {
        let line: String = (0..area.width).map(|x| letter(&buffer[(x, y)])).collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn letter(cell: &ratatui::buffer::Cell) -> char {
    let base = match cell.fg {
        Color::Reset => ' ',
        Color::Cyan => 'c',
        Color::Green => 'g',
        Color::Yellow => 'y',
        Color::Red => 'r',
        Color::Blue | Color::LightBlue => 'b',
        Color::Magenta | Color::LightMagenta => 'm',
        Color::LightCyan => 'C',
        _ => '?',
    };
    match (base, cell.modifier) {
        (' ', m) if m.contains(Modifier::REVERSED) => '#',
        (' ', m) if m.contains(Modifier::BOLD) => '*',
        (' ', m) if m.contains(Modifier::DIM) => '.',
        (base, _) => base,
    }
}
