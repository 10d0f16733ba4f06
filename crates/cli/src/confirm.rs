//! Questions on the terminal. Without one, never asks.

use crate::output::Out;
use crate::process::signals;
use nix::errno::Errno;

/// Whether the user can see and answer a question.
pub fn may_ask(out: &Out) -> bool {
    !out.json && out.live && out.asks()
}

/// Asks; only yes is yes.
pub fn confirm(question: &str, out: &Out) -> bool {
    out.ask(&format!("{question} [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer).is_ok();
    read && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Length limit of an answer.
const ANSWER_MAX: usize = 64 * 1024;

/// The user left the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left;

/// Asks for one line; `None` if it is empty. Ctrl-D and Ctrl-C leave, even if the command handles the signal:
/// the standard library would keep reading.
pub fn answer(question: &str, out: &Out) -> Result<Option<String>, Left> {
    out.ask(question);
    let mut line = Vec::new();
    let mut byte = [0_u8];
    while !signals::came() && line.len() < ANSWER_MAX {
        match nix::unistd::read(std::io::stdin(), &mut byte) {
            Ok(0) if line.is_empty() => return Err(Left),
            Ok(0) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) => line.push(byte[0]),
            Err(Errno::EINTR) => {}
            Err(_) => break,
        }
    }
    if signals::came() {
        return Err(Left);
    }
    let answer = String::from_utf8_lossy(&line).trim().to_owned();
    Ok(Some(answer).filter(|answer| !answer.is_empty()))
}
