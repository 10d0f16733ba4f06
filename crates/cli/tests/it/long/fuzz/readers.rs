//! The readers. Each returns a number for what it has seen, so that inputs with a new number are mutated further.

use ralph_loop_agents::actions::{Action, intake, patch};
use ralph_loop_agents::cli::replay;
use ralph_loop_domain::decide::decide;
use ralph_loop_domain::ports::{ExecEnd, ExecOutcome, SessionReport, SessionSink, StopCause, Stream};
use ralph_loop_domain::redact::{RedactStream, Redactor};
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::view::{ViewContext, view};
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_protocol::control::Letter;
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::event::Event;
use ralph_loop_protocol::money::receipt::Receipt;
use ralph_loop_protocol::proof::Proof;
use ralph_loop_task::config::{ConfigFile, ModelsFile, OutputFormat, Wire};
use ralph_loop_task::dialect::plan::{plan_edit, prd_tasks};
use ralph_loop_task::dialect::{Dialect, TaskTexts, parse};
use ralph_loop_task::lint::{LintFacts, apply_fixes, lint};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// A number for anything.
pub fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// An error's text without the quoted input: its kind.
fn kind(error: impl std::fmt::Display) -> u64 {
    let text = error.to_string();
    hash(text.chars().filter(|c| c.is_ascii_alphabetic()).take(60).collect::<String>())
}

fn text(input: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(input)
}

/// A frozen definition for folding events.
fn a_spec() -> ralph_loop_task::spec::RunSpec {
    let text = include_bytes!("corpus/spec/of-a-run.json");
    ralph_loop_journal::folder::snapshot::parse_spec(Path::new("spec.json"), text)
        .expect("the kept definition")
}

/// Lines of a journal: parsed, printed, folded, and used for decisions.
pub fn journal(input: &[u8]) -> u64 {
    let mut state = RunState::new(a_spec());
    let mut seen = Vec::new();
    for line in input.split(|b| *b == b'\n').take(200) {
        match serde_json::from_slice::<Event>(line) {
            Ok(event) => {
                let sentence = ralph_loop_protocol::describe::describe(&event);
                state.apply(&event);
                seen.push(hash(sentence.map(|(tone, _)| format!("{tone:?}"))));
                seen.push(hash(std::mem::discriminant(&event.body)));
            }
            Err(error) => seen.push(kind(error)),
        }
    }
    let step = decide(&state);
    view(&state, &ViewContext::default());
    seen.push(hash(std::mem::discriminant(&step)));
    // The original file, as every command reads it.
    let folder = folder();
    std::fs::write(folder.path().join("events.jsonl"), input).expect("a journal");
    let read =
        ralph_loop_journal::journal::read::read_from(&folder.path().join("events.jsonl"), 0, &mut |_| {});
    seen.push(read.map_or_else(kind, |_| 0));
    seen.truncate(12);
    hash(seen)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// `spec.json`.
pub fn spec(input: &[u8]) -> u64 {
    match ralph_loop_journal::folder::snapshot::parse_spec(Path::new("spec.json"), input) {
        Ok(spec) => {
            let state = RunState::new(spec);
            hash((state.status().to_string(), std::mem::discriminant(&decide(&state))))
        }
        Err(error) => kind(error),
    }
}

/// Controls in an inbox.
pub fn inbox(input: &[u8]) -> u64 {
    let folder = folder();
    let run = RunDir::at(folder.path());
    std::fs::write(run.inbox(), input).expect("an inbox");
    let mut seen = Vec::new();
    let mut from = 0;
    for (letter, after) in ralph_loop_journal::inbox::read(&run, 0).expect("an inbox is read") {
        assert!(after > from && after <= input.len() as u64, "places only go forward");
        from = after;
        seen.push(match letter {
            Ok(Letter { control, .. }) => hash(std::mem::discriminant(&control)),
            Err(why) => {
                assert!(why.len() < 1000, "{}", why.len());
                kind(why)
            }
        });
    }
    seen.truncate(6);
    hash(seen)
}

/// `receipt.json`.
pub fn receipt(input: &[u8]) -> u64 {
    match serde_json::from_slice::<Receipt>(input) {
        Ok(receipt) => {
            let again = serde_json::to_vec(&receipt).expect("what was read can be written");
            serde_json::from_slice::<Receipt>(&again).expect("and read again");
            hash(again.len() / 64)
        }
        Err(error) => kind(error),
    }
}

/// `proof.json`.
pub fn proof(input: &[u8]) -> u64 {
    match Proof::parse(input) {
        Ok(proof) => {
            let again = serde_json::to_vec(&proof).expect("what was read can be written");
            Proof::parse(&again).expect("and read again");
            hash(again.len() / 64)
        }
        Err(error) => kind(error),
    }
}

/// `.ralph/config.json`.
pub fn config(input: &[u8]) -> u64 {
    match ConfigFile::parse(&text(input)) {
        Ok(file) => {
            let both = file.clone().overlaid(file);
            hash(serde_json::to_string(&both.resolve()).map_or(0, |text| text.len() / 32))
        }
        Err(error) => hash((kind(&error.message), error.hint.len())),
    }
}

/// `models.yaml`.
pub fn models(input: &[u8]) -> u64 {
    match ModelsFile::parse(&text(input)) {
        Ok(file) => {
            let models = file.models();
            hash((models.profiles.len(), models.check().map_err(|(message, _)| kind(message))))
        }
        Err(error) => kind(&error.message),
    }
}

/// `.env`.
pub fn dotenv(input: &[u8]) -> u64 {
    hash(ralph_loop_app::read_anything(&text(input)))
}

fn task(dialect: Dialect, input: &[u8]) -> u64 {
    let name = dialect.main_file();
    let mut text = text(input).into_owned();
    let mut seen = Vec::new();
    for _ in 0..4 {
        let files = TaskTexts::new(name, text.clone());
        let report = lint(dialect, &files, &LintFacts::default());
        seen.push(parse(dialect, &files).map_or(0, |task| 1 + task.title.len().min(1)) as u64);
        seen.extend(report.diagnostics.iter().take(4).map(|found| hash(found.rule)));
        let fixed = apply_fixes(&text, &report.diagnostics);
        if fixed == text {
            break;
        }
        text = fixed;
    }
    hash(seen)
}

/// `PROMPT.md`.
pub fn task_prompt(input: &[u8]) -> u64 {
    task(Dialect::PromptMd, input)
}

/// `ralph_task.md`.
pub fn task_markdown(input: &[u8]) -> u64 {
    task(Dialect::RalphTaskMd, input)
}

/// `ralph.json`.
pub fn task_json(input: &[u8]) -> u64 {
    task(Dialect::RalphJson, input)
}

/// `ralph/tasks.json`, and setting `passes` in it.
pub fn task_plan(input: &[u8]) -> u64 {
    let text = text(input);
    if let Ok(plan) = prd_tasks::parse_text(&text) {
        let wanted = plan.user_stories.iter().take(20).map(|story| (story.id.as_str(), !story.passes));
        if let Ok(set) = plan_edit::set_all_passes(&text, &wanted.collect()) {
            assert!(prd_tasks::parse_text(&set).is_ok(), "a plan stays one");
        }
    }
    task(Dialect::Plan, input)
}

const FORMATS: [OutputFormat; 7] = [
    OutputFormat::ClaudeJson,
    OutputFormat::ClaudeStreamJson,
    OutputFormat::CodexJson,
    OutputFormat::GeminiJson,
    OutputFormat::OpencodeJson,
    OutputFormat::QwenJson,
    OutputFormat::Text,
];

struct Deaf;

impl SessionSink for Deaf {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn activity(&mut self, line: &str) {
        assert!(line.len() <= 200 && !line.contains('\n'), "{line:?}");
    }
    fn action(&mut self, json_line: &str) {
        assert!(json_line.len() <= 4096 && !json_line.contains('\n'), "{json_line:?}");
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

fn session(format: OutputFormat, bytes: &[u8], code: i32, chunk: usize) -> SessionReport {
    let outcome = ExecOutcome { end: ExecEnd::Exited(code), duration: Duration::ZERO, survivors: 0 };
    let pieces = [Stream::Stderr, Stream::Stdout]
        .into_iter()
        .flat_map(|stream| bytes.chunks(chunk).map(move |piece| (stream, piece)));
    replay(format, pieces, &outcome, jiff::Timestamp::UNIX_EPOCH, &mut Deaf)
}

/// Agent output in every format; the result doesn't depend on chunk borders.
pub fn agent_streams(input: &[u8]) -> u64 {
    let [choice, size, bytes @ ..] = input else { return 0 };
    let format = FORMATS[usize::from(*choice) % FORMATS.len()];
    let mut seen = Vec::new();
    for code in [0, 1] {
        let whole = session(format, bytes, code, bytes.len().max(1));
        let cut = session(format, bytes, code, usize::from(*size) + 1);
        assert_eq!(whole.end, cut.end);
        assert_eq!(whole.final_message, cut.final_message);
        assert_eq!(whole.usage, cut.usage);
        assert_eq!(whole.response, cut.response);
        seen.push(hash((*choice % 7, format!("{:?}", std::mem::discriminant(&whole.end)))));
        seen.push(u64::from(whole.final_message.len().max(1).ilog2()));
    }
    hash(seen)
}

/// Model answers on every wire.
pub fn model_streams(input: &[u8]) -> u64 {
    let [size, bytes @ ..] = input else { return 0 };
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(*size).max(1)).collect();
    let mut seen = Vec::new();
    for wire in [Wire::Anthropic, Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Gemini] {
        let told = ralph_loop_agents::models::read_anything(wire, &pieces, true);
        assert!(told <= 3 * bytes.len(), "{told}");
        seen.push(told);
        seen.push(ralph_loop_agents::models::read_anything(wire, &pieces, false));
    }
    hash(seen)
}

/// A model's answer as actions, with a diff.
pub fn model_actions(input: &[u8]) -> u64 {
    let text = text(input);
    let mut seen = Vec::new();
    match intake::read(&text) {
        Ok((contract, _)) => {
            assert!(!contract.summary.is_empty() && contract.actions.len() <= 200);
            for action in &contract.actions {
                seen.push(hash(std::mem::discriminant(action)));
                if let Action::Patch { path, patch, .. } = action {
                    let _ = patch::apply(Path::new(path), patch, Some(text.as_bytes()));
                }
            }
        }
        Err(error) => seen.push(kind(format!("{error:?}"))),
    }
    let (file, diff) = text.split_at(text.floor_char_boundary(text.len() / 2));
    seen.push(
        patch::apply(Path::new("a"), diff, Some(file.as_bytes()))
            .map_or_else(|e| kind(format!("{e:?}")), |_| 1),
    );
    seen.truncate(8);
    hash(seen)
}

/// Git output, and git's index.
pub fn git_answers(input: &[u8]) -> u64 {
    let [size, bytes @ ..] = input else { return 0 };
    let cut = ralph_loop_git::read_anything(bytes, usize::from(*size) + 1);
    hash((cut, ralph_loop_git::read_anything(bytes, bytes.len().max(1))))
}

/// The archive in which a remote sandbox sends files.
pub fn archive(input: &[u8]) -> u64 {
    let held = ralph_loop_sandbox::hosted::read_anything(input);
    hash(if held == 0 { 0 } else { held.ilog2() })
}

/// Requests of a sandboxed command to the proxy.
pub fn proxy(input: &[u8]) -> u64 {
    let host = ralph_loop_sandbox::egress::read_anything(input);
    if let Some(host) = &host {
        assert!(!host.is_empty() && !host.contains(['\r', '\n', ' ', '/', '@']), "{host:?}");
    }
    hash(host.map(|host| host.len()))
}

/// Test runner output.
pub fn test_output(input: &[u8]) -> u64 {
    let text = text(input);
    let mut report = ralph_loop_proof::report::scanner::TestScanner::default();
    for piece in input.chunks(7) {
        report.feed(piece);
    }
    let fault = ralph_loop_proof::report::environment::fault(Some(1), &text, &|_| false);
    hash((
        ralph_loop_proof::report::failing::failing_tests(&text).len(),
        ralph_loop_proof::report::failing::problems(&text).is_some(),
        ralph_loop_proof::report::failing::gap(&text).is_some(),
        ralph_loop_proof::report::numbers::measured(&text).len(),
        report.finish().is_some(),
        fault.is_some(),
    ))
}

/// An agent's patches, and the files that checks refer to.
pub fn patches(input: &[u8]) -> u64 {
    let text = text(input);
    let found = ralph_loop_proof::suppressions::added(&text).len();
    let (old, new) = text.split_at(text.floor_char_boundary(text.len() / 2));
    for path in ["package.json", "pyproject.toml", "Cargo.toml", "go.mod", "composer.json"] {
        ralph_loop_proof::harness::manifest::is_dependency_edit(path, old, new);
    }
    let inline = ralph_loop_proof::harness::rust_inline::with_tests_of(Some(old), new).len();
    hash((found, inline))
}

/// Sanitized text: no control sequence is left.
pub fn terminal(input: &[u8]) -> u64 {
    let text = text(input);
    let mut stream = sanitize::BlockStream::default();
    let mut streamed = String::new();
    for piece in input.chunks(29) {
        streamed += &stream.push(piece);
    }
    streamed += &stream.finish();
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    for shown in [sanitize::block(&text).as_ref(), streamed.as_str()] {
        assert!(!shown.contains(steers), "{shown:?}");
    }
    let line = sanitize::line(&text);
    assert!(!line.contains(|c: char| steers(c) || c == '\n'), "{line:?}");
    hash(line.len() == text.len())
}

/// Redaction: no output has a known secret, however the input is split.
pub fn secrets(input: &[u8]) -> u64 {
    const VALUE: &str = "Zq7-long-secret/Value+9";
    let redactor = Redactor::new([("SECRET_KEY", VALUE)]);
    let (front, back) = input.split_at(input.len() / 2);
    let whole = [front, VALUE.as_bytes(), back].concat();
    let size = usize::from(input.first().copied().unwrap_or(1)) % 40 + 1;
    let mut stream = RedactStream::default();
    let mut out = Vec::new();
    for piece in whole.chunks(size) {
        out.extend(stream.push(&redactor, piece));
    }
    out.extend(stream.finish(&redactor));
    for shown in [out, redactor.bytes(&whole).into_owned()] {
        assert!(!shown.windows(VALUE.len()).any(|piece| piece == VALUE.as_bytes()), "a secret is shown");
    }
    hash(redactor.text(&text(input)).len() == input.len())
}

/// Paths, queries and bodies of server requests.
pub fn server_requests(input: &[u8]) -> u64 {
    let (understood, stays) = ralph_loop_server::routes::read_anything(input);
    assert!(stays, "a path leads out of the workspace");
    hash(understood)
}
