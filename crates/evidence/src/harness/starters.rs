//! Programs that start another one in surroundings of its own: `uv run`, `poetry run`, `npx`.

use super::shell::program_name;

/// Programs that start the one behind them, with the word that must stand between.
const STARTERS: &[(&str, &str)] = &[
    ("npx", ""),
    ("bunx", ""),
    ("pnpx", ""),
    ("uvx", ""),
    ("uv", "run"),
    ("poetry", "run"),
    ("pdm", "run"),
    ("hatch", "run"),
    ("pipenv", "run"),
    ("bundle", "exec"),
    ("pnpm", "exec"),
    ("c8", ""),
    ("nyc", ""),
    ("coverage", "run"),
    ("xvfb-run", ""),
];

/// Options of programs that start others, with a value of their own.
const STARTERS_VALUED: &[&str] = &[
    "--with",
    "--extra",
    "--group",
    "--python",
    "--project",
    "--package",
    "-p",
    "--env-file",
    "--directory",
    "--rcfile",
];

/// The words of the command that `words` start by way of another program, `-m` and a module included: `uv run python x.py`.
pub(super) fn started(words: &[String]) -> Option<&[String]> {
    let name = program_name(words.first()?);
    let (_, word) = STARTERS.iter().find(|(starter, _)| *starter == name)?;
    let rest = &words[1..];
    let mut rest =
        if word.is_empty() { rest } else { rest.strip_prefix(&[(*word).to_owned()]).unwrap_or(&[]) };
    while let [option, more @ ..] = rest
        && option.starts_with('-')
        && option != "-m"
    {
        rest = if STARTERS_VALUED.contains(&option.as_str()) { more.get(1..).unwrap_or(&[]) } else { more };
    }
    Some(rest)
}
