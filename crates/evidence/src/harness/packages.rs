//! From a command to what packages define: scripts of `package.json`, aliases of `cargo` and the programs behind them.

use super::beside::is_helper;
use super::shell::join;
use super::test_places::TestPlace;
use super::{Via, Walk};
use serde_json::Value;

impl Walk<'_> {
    /// `cargo xtask ci`, by its alias; `cargo run -p xtask`: a program of the repo that checks.
    pub(super) fn cargo(&mut self, words: &[String], folder: &str, depth: u32) {
        let rest: Vec<&String> = words[1..].iter().filter(|w| !w.starts_with('+')).collect();
        let Some(command) = rest.first() else { return };
        if matches!(command.as_str(), "run" | "r") {
            let at = rest.iter().position(|w| matches!(w.as_str(), "-p" | "--package" | "--bin"));
            let named = at.and_then(|at| rest.get(at + 1)).map(|name| (*name).clone());
            let name =
                named.or_else(|| rest.iter().find_map(|w| w.strip_prefix("--package=")).map(str::to_owned));
            let Some(name) = name.filter(|name| name == "xtask" || is_helper(name)) else { return };
            for place in [name.clone(), format!("crates/{name}"), format!("tools/{name}")] {
                let found =
                    join(folder, &place).filter(|p| (self.read)(&format!("{p}/Cargo.toml")).is_some());
                self.reach.tests.extend(found.map(TestPlace::whole));
            }
            return;
        }
        let files = [".cargo/config.toml", ".cargo/config"].into_iter().filter_map(|f| join(folder, f));
        let Some(text) = files.filter_map(|file| (self.read)(&file)).next() else { return };
        let value = text.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim().trim_start_matches("alias.") == command.as_str()).then(|| value.to_owned())
        });
        let Some(value) = value else { return };
        let quiet = |c: char| c.is_whitespace() || "[]\"',".contains(c);
        let alias = value.split(quiet).filter(|word| !word.is_empty()).map(str::to_owned);
        let line: Vec<String> = std::iter::once("cargo".to_owned()).chain(alias).collect();
        self.command(&line, folder, Via::Definition, depth + 1);
    }

    /// `npm exec -c 'node tools/verify.js'`, `pnpm exec node tools/verify.js`.
    fn package_exec(&mut self, words: &[String], folder: &str, depth: u32) {
        let line = words.iter().position(|w| matches!(w.as_str(), "-c" | "--call"));
        if let Some(line) = line.and_then(|at| words.get(at + 1)) {
            return self.lines(line, folder, Via::Command, depth + 1);
        }
        let skip = words.iter().take_while(|w| w.starts_with('-')).count();
        self.command(&words[skip..], folder, Via::Command, depth + 1);
    }

    /// Scripts of a `package.json`, with what runs before and after them.
    pub(super) fn package(&mut self, program: &str, words: &[String], folder: &str, depth: u32) {
        if let Some(at) = words.iter().position(|w| matches!(w.as_str(), "exec" | "x")).filter(|at| *at == 1)
        {
            return self.package_exec(&words[at + 1..], folder, depth);
        }
        let mut folder = folder.to_owned();
        let mut named: Vec<&str> = Vec::new();
        let mut rest = words[1..].iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "--prefix" | "-C" | "--dir" | "--cwd" => {
                    folder = rest.next().and_then(|to| join(&folder, to)).unwrap_or(folder);
                }
                "--" => break,
                word if word.starts_with('-') => {}
                word => named.push(word),
            }
        }
        let names: Vec<&str> = match (program, named.as_slice()) {
            ("run-s" | "run-p" | "npm-run-all", names) => names.to_vec(),
            (_, ["run" | "run-script", name, ..]) => vec![name],
            ("npm", ["t" | "tst" | "test", ..]) => vec!["test"],
            ("bun", _) | (_, []) => return,
            (_, [name, ..]) => vec![name],
        };
        let Some(file) = join(&folder, "package.json") else { return };
        let package: Value =
            (self.read)(&file).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let scope = format!("package.json in {}", if folder.is_empty() { "." } else { &folder });
        for name in names {
            for key in [format!("pre{name}"), name.to_owned(), format!("post{name}")] {
                if !self.seen.insert(format!("{scope} {key}")) {
                    continue;
                }
                let script = package["scripts"][&key].as_str().map(str::to_owned);
                self.define(&scope, &key, &file, script.clone());
                if let Some(line) = script {
                    self.lines(&line, &folder, Via::Definition, depth + 1);
                }
            }
        }
    }
}
