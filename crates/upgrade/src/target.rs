//! What this program was built for.

/// The triple by which archives are named. Like `x86_64-unknown-linux-gnu`.
pub fn target() -> String {
    let system = match (std::env::consts::OS, cfg!(target_env = "musl")) {
        ("macos", _) => "apple-darwin".to_owned(),
        ("linux", true) => "unknown-linux-musl".to_owned(),
        ("linux", false) => "unknown-linux-gnu".to_owned(),
        (other, _) => format!("unknown-{other}"),
    };
    format!("{}-{system}", std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_the_words_of_a_triple() {
        assert!(target().split('-').count() >= 3, "{}", target());
    }
}
