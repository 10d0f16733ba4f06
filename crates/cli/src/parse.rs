//! Values of flags that several commands take.

use ralph_domain::config::Isolation;
use ralph_domain::dialect::Publish;

/// Reads the value of `--isolation`.
pub fn isolation(text: &str) -> Result<Isolation, String> {
    match text {
        "auto" => Ok(Isolation::Auto),
        "bwrap" => Ok(Isolation::Bwrap),
        "landlock" => Ok(Isolation::Landlock),
        "none" => Ok(Isolation::None),
        _ => Err("one of auto, bwrap, landlock, none".into()),
    }
}

/// Reads the value of `--publish`.
pub fn publish(text: &str) -> Result<Publish, String> {
    match text {
        "none" => Ok(Publish::None),
        "push" => Ok(Publish::Push),
        "pr" => Ok(Publish::Pr),
        _ => Err("one of none, push, pr".into()),
    }
}
