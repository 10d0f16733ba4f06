//! Asserts that a screen matches `ralph status --json`.

use super::tmux::Tmux;
use ralph_loop_testkit::TestRepo;
use serde_json::Value;
use std::cell::RefCell;
use std::ops::Deref;

/// A terminal with the program. After every key and every typed text, the screen must match the status.
pub struct Session<'a> {
    tmux: Tmux<'a>,
    repo: &'a TestRepo<'a>,
}

impl<'a> Deref for Session<'a> {
    type Target = Tmux<'a>;
    fn deref(&self) -> &Tmux<'a> {
        &self.tmux
    }
}

impl<'a> Session<'a> {
    pub fn new(tmux: Tmux<'a>, repo: &'a TestRepo<'a>) -> Self {
        Self { tmux, repo }
    }

    /// Presses a key.
    #[track_caller]
    pub fn key(&self, key: &str) {
        self.tmux.key(key);
        self.agrees();
    }

    /// Types a text.
    #[track_caller]
    pub fn types(&self, text: &str) {
        self.tmux.types(text);
        self.agrees();
    }

    /// Asserts that the screen matches the status: the status word, title, iteration, cost, passed criteria or checks, and the open
    /// tab; in a list of runs the run's row; and no run if there is none.
    #[track_caller]
    pub fn agrees(&self) {
        let last = RefCell::new(Vec::new());
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.until("the screen and the status say the same", |screen| {
                let status = self.repo.ralph(&["status", "--json"]);
                let status = (status.code == Some(0)).then(|| status.json());
                let wrong = differences(screen, status.as_ref());
                let same = wrong.is_empty();
                *last.borrow_mut() = wrong;
                same
            });
        }));
        assert!(seen.is_ok(), "missing on the screen: {:?}", last.borrow());
    }
}

/// Differences between the status and the screen.
fn differences(screen: &str, status: Option<&Value>) -> Vec<String> {
    // The program ended: the screen shows the shell.
    if screen.contains("left with ") || screen.contains("attach left ") || !screen.contains(" ralph  ") {
        return Vec::new();
    }
    let bar = screen.lines().next().unwrap_or_default();
    let of_run = bar.contains("iteration ");
    let Some(status) = status else {
        let shown = of_run || screen.contains("reading the run");
        return shown.then(|| "no run, because there is none".to_owned()).into_iter().collect();
    };
    let overlaid = OVERLAYS.iter().any(|words| screen.contains(words));
    let mut expected = match (of_run, screen.contains("Runs of this repo")) {
        (true, _) => top_bar(status),
        (false, true) if !overlaid => row(status),
        // Screens for writing a task show no runs.
        (false, _) => Vec::new(),
    };
    if of_run && screen.contains("Agent output") && !overlaid {
        expected.extend(tab(screen, status));
    }
    expected.retain(|words| !screen.contains(words.as_str()));
    expected
}

/// The overlay of a screen.
const OVERLAYS: [&str; 5] = ["Keys: ", "Quit?", "goes into all later prompts", "asks for:", "End this run"];

/// The row of the run in a list: its word, its title, its iteration.
fn row(status: &Value) -> Vec<String> {
    let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str| status[key].as_u64().unwrap_or_default();
    // A narrow list cuts it.
    let title: String = text("title").chars().take(9).collect();
    vec![text("status"), title, format!("{}/{}", number("iteration"), number("max_iterations"))]
}

/// The top bar of every run screen.
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
    let known = status["spent"]["cost_basis"] != "unknown";
    let cost = match (status["spent"]["cost_usd"].as_f64(), known) {
        (None, _) => "cost unknown".to_owned(),
        (Some(_), false) => "at least $".to_owned(),
        // Cents are enough to tell amounts apart.
        (Some(0.0), true) => "$0/".to_owned(),
        (Some(spent), true) => format!("${spent:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    };
    let title: String = text("title").chars().take(20).collect();
    vec![text("status").to_owned(), title, iteration, cost]
}

/// The text of the open tab and the column next to it.
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
