//! What the guard of `ralph hook pre-tool-use` is measured with: dangerous commands, each in many disguises, and commands of
//! published packages. Nothing in here is ever run.
//!
//! A *technique* is a way to hide a command. Whole techniques are held out: rules are chosen on [`Half::Tune`] alone, and
//! what they are worth is what they catch of [`Half::HeldOut`].

mod payloads;
mod techniques;

pub use payloads::{CATEGORIES, PAYLOADS, Payload};
pub use techniques::{TECHNIQUES, Technique};

/// Which half of the corpus a technique belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Rules are chosen on it.
    Tune,
    /// What the rules are worth is measured on it.
    HeldOut,
}

/// A dangerous command in a disguise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disguised {
    /// How it is hidden.
    pub technique: &'static str,
    /// Which half that technique belongs to.
    pub half: Half,
    /// What it would do.
    pub category: &'static str,
    /// The command.
    pub command: String,
}

/// Every dangerous command: each payload as it is, and one or more of each category in every disguise that fits it.
pub fn dangerous() -> Vec<Disguised> {
    let mut all = Vec::new();
    for (number, technique) in TECHNIQUES.iter().enumerate() {
        for (place, category) in CATEGORIES.iter().enumerate() {
            let of_category: Vec<&Payload> = PAYLOADS.iter().filter(|p| p.category == *category).collect();
            let from = (number + 3 * place) % of_category.len();
            let turned = of_category[from..].iter().chain(&of_category[..from]);
            let disguised = turned.filter_map(|payload| (technique.disguise)(payload));
            let wanted = if technique.name == "plain" { usize::MAX } else { 1 };
            all.extend(disguised.take(wanted).map(|command| Disguised {
                technique: technique.name,
                half: technique.half,
                category,
                command,
            }));
        }
    }
    all
}

/// What a command of a published package is known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// Nothing that a guard should refuse.
    Harmless,
    /// Names a thing in plain words that the guard refuses by definition, such as `sudo` or `npm publish`.
    Meant,
}

/// A command of a published package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// What it is known to be.
    pub label: Label,
    /// The command.
    pub command: &'static str,
}

const PUBLISHED: &str = include_str!("published.tsv");

/// Commands from the `package.json`, Makefiles and CI files of published packages (`scripts/guard-corpus` collected them).
pub fn published() -> Vec<Published> {
    PUBLISHED
        .lines()
        .filter_map(|line| {
            let (label, command) = line.split_once('\t')?;
            let label = if label == "meant" { Label::Meant } else { Label::Harmless };
            Some(Published { label, command })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_corpus_is_as_large_as_it_must_be() {
        let all = dangerous();
        let different: BTreeSet<&str> = all.iter().map(|one| one.command.as_str()).collect();
        assert!(different.len() >= 400, "{}", different.len());
        let held_out = all.iter().filter(|one| one.half == Half::HeldOut).count();
        assert!(held_out * 5 >= all.len() * 2, "{held_out} of {}", all.len());
        assert_eq!(CATEGORIES.len(), 18);
        assert!(published().len() >= 2000, "{}", published().len());
    }
}
