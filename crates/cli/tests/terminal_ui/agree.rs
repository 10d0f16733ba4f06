//! Whether a screen says what `ralph status --json` says.

use super::tmux::Tmux;
use ralph_testkit::TestRepo;
use serde_json::Value;

/// Presses a key; then the screen and the status say the same.
#[track_caller]
pub fn press(tmux: &Tmux<'_>, repo: &TestRepo<'_>, key: &str) {
    tmux.key(key);
    agrees(tmux, repo);
}

/// The screen shows what the status says: its word, the title, the iteration, the cost, how many criteria or checks hold, and
/// what the open tab is about.
#[track_caller]
pub fn agrees(tmux: &Tmux<'_>, repo: &TestRepo<'_>) {
    let last = std::cell::RefCell::new(Vec::new());
    let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        tmux.until("the screen and the status say the same", |screen| {
            let status = repo.ralph(&["status", "--json"]).exits(0).json();
            let wrong = differences(screen, &status);
            let same = wrong.is_empty();
            *last.borrow_mut() = wrong;
            same
        });
    }));
    assert!(seen.is_ok(), "missing on the screen: {:?}", last.borrow());
}

/// What the status says and the screen does not.
fn differences(screen: &str, status: &Value) -> Vec<String> {
    let mut expected = top_bar(status);
    if screen.contains("Agent output") {
        expected.extend(tab(screen, status));
    }
    expected.retain(|words| !screen.contains(words.as_str()));
    expected
}

/// What stands at the top of every screen of a run.
fn top_bar(status: &Value) -> Vec<String> {
    let text = |key: &str| status[key].as_str().unwrap_or_default();
    let budget = |name: &str| {
        let all = status["budgets"].as_array().into_iter().flatten();
        all.clone().find(|budget| budget["budget"] == name).map(|budget| budget["limit"].as_f64().unwrap())
    };
    let now = status["current"]["iteration"].as_u64().or(status["iterations"].as_u64()).unwrap();
    let iteration = match budget("iterations") {
        Some(most) => format!("iteration {now}/{most}"),
        None => format!("iteration {now}"),
    };
    let spent = status["spent"]["cost_usd"].as_f64().unwrap();
    let known = status["spent"]["cost_basis"] != "unknown";
    let cost = match (known, spent == 0.0) {
        (false, true) => "cost unknown".to_owned(),
        (false, false) => "at least $".to_owned(),
        // Cents are enough to know one sum from another.
        (true, true) => "$0/".to_owned(),
        (true, false) => format!("${spent:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    };
    let title: String = text("title").chars().take(20).collect();
    vec![text("status").to_owned(), title, iteration, cost]
}

/// What the open tab and the column beside it show.
fn tab(screen: &str, status: &Value) -> Vec<String> {
    let list = |key: &str| status[key].as_array().cloned().unwrap_or_default();
    let wide = screen.lines().map(|line| line.chars().count()).max().unwrap_or_default() >= 100;
    let (criteria, checks) = (list("criteria"), list("checks"));
    let mut expected = Vec::new();
    let sign = |met: bool, looked: bool| match (met, looked) {
        (true, _) => "✓",
        (false, true) => "✗",
        (false, false) => "○",
    };
    let passed = |check: &Value| check["passed"] == true;
    let beside = wide && ["Criteria", "Checks"].iter().any(|title| screen.contains(&format!("│ {title}")));
    if beside && criteria.is_empty() {
        expected.extend(checks.iter().map(|check| {
            let name = check["name"].as_str().unwrap();
            format!("{} {name}", sign(passed(check), !check["passed"].is_null()))
        }));
    } else if beside {
        let met = criteria.iter().filter(|one| one["met"] == true);
        expected.extend(met.map(|one| format!("✓ {}", one["id"].as_str().unwrap())));
    } else if !wide && criteria.is_empty() {
        expected.push(format!(
            "{} of {} checks pass",
            checks.iter().filter(|check| passed(check)).count(),
            checks.len()
        ));
    } else if !wide {
        let met = criteria.iter().filter(|one| one["met"] == true).count();
        expected.push(format!("{met} of {} criteria met", criteria.len()));
    }
    // The timeline has a card for every finished iteration that fits, the newest first.
    if screen.contains("run created") || screen.contains("snapshot taken") {
        let cards = list("history").into_iter().rev().take(2);
        expected.extend(cards.map(|it| {
            format!("{:>3}  {}", it["iteration"].as_u64().unwrap(), it["agent"].as_str().unwrap())
        }));
    }
    expected
}
