//! `ralph plan`: from a request or existing requirements to a plan, with an agent's questions or the form.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

use crate::RALPH;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};

/// A plan as an agent would return it, in the order schema, logic, API.
fn plan(criterion: &str) -> Value {
    let story = |number: usize, title: &str, after: &[&str]| {
        json!({
            "id": format!("US-00{number}"), "title": title, "description": format!("{title}."),
            "acceptanceCriteria": [criterion], "priority": number, "passes": false, "notes": "", "dependsOn": after,
        })
    };
    json!({
        "prd": "# Invoices\n\n## Summary\n\nInvoices can be exported as CSV.\n\n## Open Questions\n\nNone.\n",
        "tasks": {
            "project": "Invoices", "branchName": "ralph/invoices", "description": "Export of invoices as CSV.",
            "verifyCommands": ["test -d ."],
            "userStories": [
                story(1, "Table of exports", &[]),
                story(2, "Rows become CSV", &["US-001"]),
                story(3, "A route that sends the file", &["US-002"]),
            ],
        },
    })
}

const CRITERION: &str = "`sh tests/run.sh` prints 3 passed";

/// A machine with an agent that prints a file for each turn: `turn-1.json`, `turn-2.json`, … It keeps its prompts.
fn with_agent<'a>(env: &'a TestEnv, turns: &[Value]) -> TestRepo<'a> {
    env.user_config(&json!({"isolation": "none"}));
    let repo = TestRepo::new(env, "repo", &[("README.md", "# Shop\n\nA shop.\n")]);
    for (number, turn) in turns.iter().enumerate() {
        std::fs::write(env.path(&format!("turn-{}.json", number + 1)), turn.to_string()).unwrap();
    }
    let place = env.path("x").parent().unwrap().display().to_string();
    let script = format!(
        "cd {place}; n=$(($(cat turns 2>/dev/null || echo 0) + 1)); echo $n > turns; cat > asked-$n.txt; ls -ld \"${{RALPH_PROMPT_FILE%/*}}\" > place.txt; cat turn-$n.json"
    );
    repo.configure(&[repo.agent("stub", &script)], "true", &json!({}));
    repo
}

fn prompt_of_turn(env: &TestEnv, turn: usize) -> String {
    std::fs::read_to_string(env.path(&format!("asked-{turn}.txt"))).unwrap()
}

/// `ralph plan` on a terminal, with these lines typed; `None` if `script` isn't installed.
fn typed(repo: &TestRepo<'_>, env: &TestEnv, args: &str, lines: &str) -> Option<Finished> {
    let mut child = terminal(repo, env, args)?;
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines.as_bytes()).unwrap();
    let done = TestEnv::wait(child);
    drop(stdin);
    Some(done)
}

fn terminal(repo: &TestRepo<'_>, env: &TestEnv, args: &str) -> Option<Child> {
    let mut shell = env.command("script", &repo.dir);
    shell.args(["-q", "-e", "-c", &format!("{RALPH} plan {args}"), "/dev/null"]).env("TERM", "xterm");
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = shell.spawn().ok();
    if child.is_none() {
        ralph_loop_testkit::skip("`script` makes the terminal");
    }
    child
}

fn assert_nothing_written(repo: &TestRepo<'_>) {
    assert!(!repo.dir.join("ralph").exists(), "something was written");
}

#[test]
fn agent_questions_lead_to_a_confirmed_plan() {
    let env = TestEnv::new(RALPH);
    let questions = json!({"questions": [
        {"question": "Which separator?", "choices": ["comma", "semicolon"], "recommended": "comma"},
        {"question": "Who may export?", "choices": [], "recommended": "admins"},
    ]});
    let more = json!({"questions": [{"question": "Which encoding?"}]});
    let repo = with_agent(&env, &[questions, more, plan(CRITERION)]);
    let lines = "2\n\nUTF-8 with a mark\ny\n";
    let Some(done) = typed(&repo, &env, "'Export invoices as CSV'", lines) else { return };
    assert_eq!(done.code, Some(0), "{}", done.stdout);
    for shown in [
        "Which separator?",
        "2 semicolon",
        "US-002  Rows become CSV (after US-001)",
        "3 stories",
        "wrote ralph/tasks.json",
    ] {
        assert!(done.stdout.contains(shown), "{shown}: {}", done.stdout);
    }
    assert!(
        prompt_of_turn(&env, 1).contains("Export invoices as CSV")
            && prompt_of_turn(&env, 1).contains("A shop.")
    );
    let heard = prompt_of_turn(&env, 3);
    for said in
        ["Which separator?: semicolon", "Who may export?: admins", "Which encoding?: UTF-8 with a mark"]
    {
        assert!(heard.contains(said), "{said}: {heard}");
    }
    let tasks: Value = serde_json::from_str(&repo.read("ralph/tasks.json")).unwrap();
    let order: Vec<&str> =
        tasks["userStories"].as_array().unwrap().iter().map(|story| story["id"].as_str().unwrap()).collect();
    assert_eq!(order, ["US-001", "US-002", "US-003"]);
    assert!(repo.read("ralph/prd.md").contains("Invoices can be exported"));
    repo.ralph(&["lint", "--json"]).exits(0);
}

#[test]
fn user_can_revise_the_plan_or_quit() {
    let env = TestEnv::new(RALPH);
    let repo =
        with_agent(&env, &[plan(CRITERION), plan("`sh tests/run.sh` prints 4 passed"), plan(CRITERION)]);
    let Some(done) = typed(&repo, &env, "'Export invoices'", "four tests, please\nyes\n") else { return };
    assert_eq!(done.code, Some(0), "{}", done.stdout);
    assert!(
        prompt_of_turn(&env, 2).contains("must be different: four tests, please"),
        "{}",
        prompt_of_turn(&env, 2)
    );
    assert!(repo.read("ralph/tasks.json").contains("prints 4 passed"));
    // An existing plan is the user's work.
    let Some(there) = typed(&repo, &env, "'Something else'", "") else { return };
    assert_eq!(there.code, Some(2), "{}", there.stdout);
    assert!(there.stdout.contains("a plan already exists"), "{}", there.stdout);
    let Some(no) = typed(&repo, &env, "--force 'Something else'", "n\n") else { return };
    assert_eq!(no.code, Some(2), "{}", no.stdout);
    assert!(repo.read("ralph/tasks.json").contains("prints 4 passed"), "it was replaced all the same");
}

#[test]
fn stories_are_made_from_existing_requirements() {
    let env = TestEnv::new(RALPH);
    let mut answer = plan(CRITERION);
    answer.as_object_mut().unwrap().remove("prd");
    let repo = with_agent(&env, &[answer]);
    let prd = "# Export\n\n## Summary\n\nInvoices as CSV, for the people of the books.\n";
    repo.write("ralph/prd.md", prd);
    let done = repo.ralph(&["plan", "--prd", "ralph/prd.md", "--yes", "--json"]).exits(0).json();
    assert_eq!(done["stories"], 3, "{done}");
    assert_eq!(repo.read("ralph/prd.md"), prd, "requirements stay as they are");
    let heard = prompt_of_turn(&env, 1);
    assert!(
        heard.contains("people of the books") && heard.contains("Decide open questions yourself"),
        "{heard}"
    );
    // Another file would replace them.
    repo.write("other.md", "# Import\n\n## Summary\n\nInvoices are read from CSV, too.\n");
    let said = repo.ralph(&["plan", "--prd", "other.md", "--yes", "--force"]).exits(2);
    assert!(said.stderr.contains("`ralph/prd.md` has other requirements"), "{}", said.stderr);
    assert_eq!(repo.read("ralph/prd.md"), prd);
    let empty = TestRepo::new(&env, "empty", &[("prd.md", "soon\n")]);
    let said = empty.ralph(&["plan", "--prd", "prd.md", "--yes"]).exits(2);
    assert!(said.stderr.contains("is too short to derive stories from"), "{}", said.stderr);
}

#[test]
fn new_plan_never_replaces_existing_requirements_or_stories() {
    let env = TestEnv::new(RALPH);
    let repo = with_agent(&env, &[plan(CRITERION), plan(CRITERION)]);
    let prd = "# Export\n\nTwo rows for each invoice.\n";
    repo.write("ralph/prd.md", prd);
    let done = repo.ralph(&["plan", "Export invoices", "--yes"]).exits(0);
    assert!(done.stderr.contains("`ralph/prd.md` is unchanged"), "{}", done.stderr);
    assert_eq!(repo.read("ralph/prd.md"), prd);
    assert!(prompt_of_turn(&env, 1).contains("Two rows for each invoice"), "{}", prompt_of_turn(&env, 1));
    let mut stories: Value = serde_json::from_str(&repo.read("ralph/tasks.json")).unwrap();
    stories["userStories"][0]["title"] = json!("The first small step");
    for theirs in [stories.to_string(), "{ a half-written plan".to_owned()] {
        repo.write("ralph/tasks.json", &theirs);
        let said = repo.ralph(&["plan", "Export invoices", "--yes"]).exits(2);
        assert!(said.stderr.contains("a plan already exists"), "{}", said.stderr);
        assert_eq!(repo.read("ralph/tasks.json"), theirs);
    }

    // The templates of `init` are replaced.
    let fresh = TestEnv::new(RALPH);
    let repo = with_agent(&fresh, &[plan(CRITERION)]);
    repo.ralph(&["init", "--plan"]).exits(0);
    repo.ralph(&["plan", "Export invoices", "--yes"]).exits(0);
    assert!(repo.read("ralph/prd.md").contains("Invoices can be exported"));
    assert!(repo.read("ralph/tasks.json").contains("US-003"));
}

#[test]
fn three_invalid_plans_end_the_conversation() {
    let env = TestEnv::new(RALPH);
    let repo = with_agent(&env, &vec![json!("I would rather talk about the weather"); 5]);
    let said = repo.ralph(&["plan", "--yes", "Export invoices"]).exits(4);
    assert!(said.stderr.contains("3 answers in a row that aren't a plan"), "{}", said.stderr);
    assert!(said.stderr.contains("talk about the weather"), "{}", said.stderr);
    assert!(env.path("asked-3.txt").exists() && !env.path("asked-4.txt").exists());
    assert_nothing_written(&repo);
}

#[test]
fn plan_with_lint_errors_goes_back_to_the_agent() {
    let env = TestEnv::new(RALPH);
    let mut twice = plan(CRITERION);
    twice["tasks"]["userStories"][1]["id"] = json!("US-001");
    let repo = with_agent(&env, &[json!("no plan at all"), twice, plan(CRITERION)]);
    let done = repo.ralph(&["plan", "--yes", "Export invoices", "--json"]).exits(0).json();
    assert_eq!(done["stories"], 3);
    assert!(prompt_of_turn(&env, 2).contains("Answer with the object alone"), "{}", prompt_of_turn(&env, 2));
    assert!(prompt_of_turn(&env, 3).contains("US-001"), "{}", prompt_of_turn(&env, 3));

    let other = TestEnv::new(RALPH);
    let mut bad = plan(CRITERION);
    bad["tasks"]["userStories"][1]["id"] = json!("US-001");
    let repo = with_agent(&other, &vec![bad; 14]);
    let said = repo.ralph(&["plan", "--yes", "Export invoices"]);
    assert_ne!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains("nothing was written"), "{}", said.stderr);
    assert_nothing_written(&repo);
}

#[test]
fn planning_prompt_is_kept_in_a_private_folder() {
    let env = TestEnv::new(RALPH);
    let repo = with_agent(&env, &[plan(CRITERION)]);
    repo.ralph(&["plan", "--yes", "Export invoices"]).exits(0);
    let place = std::fs::read_to_string(env.path("place.txt")).unwrap();
    assert!(place.starts_with("drwx------"), "{place}");
}

#[test]
fn headless_plan_needs_yes_and_an_agent() {
    let env = TestEnv::new(RALPH);
    let repo = with_agent(&env, &[]);
    let said = repo.ralph(&["plan", "Export invoices"]).exits(2);
    assert!(said.stderr.contains("`ralph plan` needs a terminal"), "{}", said.stderr);
    let said = repo.ralph(&["plan", "--form", "--yes", "Export invoices"]).exits(2);
    assert!(said.stderr.contains("`ralph plan` needs a terminal"), "{}", said.stderr);
    let said = repo.ralph(&["plan", "--yes", "  "]).exits(2);
    assert!(said.stderr.contains("no feature described"), "{}", said.stderr);
    // The agent prints nothing.
    let said = repo.ralph(&["plan", "--yes", "Export invoices"]);
    assert!(said.code != Some(0) && said.stderr.contains("stub"), "{}", said.stderr);
    assert_nothing_written(&repo);
}

#[test]
fn the_form_asks_layer_by_layer() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("README.md", "# Shop\n")]);
    let lines = [
        "Invoices",
        // Six sections of the requirements.
        "People copy numbers by hand",
        "",
        "",
        "",
        "",
        "",
        "test -d .",
        // Schema: one story with a criterion.
        "Table of exports",
        "`ls tables` names exports",
        "",
        "",
        // Logic: one without criteria, which is dropped; then one with two.
        "Something vague",
        "",
        "n",
        "Rows become CSV",
        "`./csv 1` prints a,b",
        "`./csv 0` exits with 1",
        "",
        "",
        // No API, no UI, no integration.
        "",
        "",
        "",
        "y",
        "",
    ]
    .join("\n");
    let Some(done) = typed(&repo, &env, "--form 'Export invoices as CSV'", &lines) else { return };
    assert_eq!(done.code, Some(0), "{}", done.stdout);
    let tasks: Value = serde_json::from_str(&repo.read("ralph/tasks.json")).unwrap();
    let stories = tasks["userStories"].as_array().unwrap();
    assert_eq!(stories.len(), 2, "{tasks}");
    assert_eq!(
        (&stories[1]["title"], &stories[1]["dependsOn"]),
        (&json!("Rows become CSV"), &json!(["US-001"]))
    );
    assert_eq!(stories[1]["priority"], 2);
    assert_eq!(tasks["branchName"], "ralph/invoices");
    assert!(repo.read("ralph/prd.md").contains("## Problem\n\nPeople copy numbers by hand"));
    assert!(repo.dir.join("ralph/prompt.md").exists() && repo.dir.join("ralph/progress.txt").exists());
}

#[test]
fn ctrl_c_ends_planning_without_leftovers() {
    let env = TestEnv::new(RALPH);
    let repo = with_agent(&env, &[json!({"questions": [{"question": "Which separator?"}]})]);
    let Some(mut child) = terminal(&repo, &env, "'Export invoices'") else { return };
    let mut screen = child.stdout.take().unwrap();
    let mut shown = String::new();
    while !shown.contains("answer: ") {
        let mut piece = [0; 256];
        let count = screen.read(&mut piece).unwrap();
        assert_ne!(count, 0, "it ended before its question: {shown}");
        shown.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"\x03").unwrap();
    screen.read_to_string(&mut shown).unwrap();
    assert_ne!(TestEnv::wait(child).code, Some(0), "{shown}");
    assert!(shown.contains("you left the conversation; nothing was written"), "{shown}");
    drop(stdin);
    assert_nothing_written(&repo);

    let slow = TestEnv::new(RALPH);
    slow.user_config(&json!({"isolation": "none"}));
    let repo = TestRepo::new(&slow, "repo", &[("README.md", "# Shop\n")]);
    let begun = slow.path("begun");
    repo.configure(
        &[repo.agent("stub", &format!("touch {}; exec sleep 600", begun.display()))],
        "true",
        &json!({}),
    );
    let Some(mut child) = terminal(&repo, &slow, "'Export invoices'") else { return };
    until("the agent to think", || begun.exists().then_some(()));
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"\x03").unwrap();
    let done = TestEnv::wait(child);
    drop(stdin);
    assert_ne!(done.code, Some(0), "{}", done.stdout);
    assert!(done.stdout.contains("nothing was written"), "{}", done.stdout);
    assert_nothing_written(&repo);
}
