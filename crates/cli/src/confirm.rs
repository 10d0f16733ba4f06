//! Questions to whoever sits at the terminal. Headless never asks.

use crate::output::Out;

/// Whether somebody is there who sees a question and can answer it.
pub fn may_ask(out: &Out) -> bool {
    !out.json && out.live && out.asks()
}

/// Asks; everything but yes is no.
pub fn confirm(question: &str, out: &Out) -> bool {
    out.ask(&format!("{question} [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer).is_ok();
    read && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Asks for one line; nothing where it stays empty.
pub fn answer(question: &str, out: &Out) -> Option<String> {
    out.ask(question);
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).ok()?;
    Some(answer.trim().to_owned()).filter(|answer| !answer.is_empty())
}
