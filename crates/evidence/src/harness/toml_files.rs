//! What `pyproject.toml` and `Cargo.toml` say of tests, by what they mean: a heading with spaces, a dotted key and a table in
//! one line are the same.

use super::lock_sources::is_python_tool;
use super::parts::{Part, Role, keyed};
use super::tools::is_tool;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Tables of `pyproject.toml` that configure tests and linters, by the beginning of their names.
const PYTHON: &[&str] = &[
    "tool.pytest",
    "tool.coverage",
    "tool.tox",
    "tool.hatch.envs",
    "tool.poe",
    "tool.pdm.scripts",
    "tool.taskipy",
    "tool.rye.scripts",
    "tool.pixi.tasks",
    "tool.hatch.scripts",
    "tool.ty",
    "tool.basedpyright",
    "tool.ruff",
    "tool.mypy",
    "tool.black",
    "tool.isort",
    "tool.pyright",
    "tool.pylint",
    "tool.flake8",
    "project.entry-points",
    "build-system",
];

/// Tables of `Cargo.toml` that do.
const CARGO: &[&str] =
    &["test", "profile", "bench", "example", "lints", "workspace.lints", "patch", "replace"];

/// Keys of a library or a program that say whether and how it is tested.
const TESTED: &[&str] = &["test", "harness", "doctest"];

/// A key, as the tables that lead to it and its own name.
type Path = Vec<String>;

/// Everything that decides, each under its whole key.
fn deciding(name: &str, table: &Table) -> BTreeMap<Path, Value> {
    let mut found = BTreeMap::new();
    collect(name == "Cargo.toml", &mut Vec::new(), table, &mut found);
    found
}

fn collect(cargo: bool, path: &mut Path, table: &Table, found: &mut BTreeMap<Path, Value>) {
    for (key, value) in table {
        path.push(key.clone());
        let local =
            value.as_table().is_some_and(|from| from.contains_key("path") || from.contains_key("git"));
        let dev = cargo && path.iter().rev().nth(1).is_some_and(|section| section == "dev-dependencies");
        // A tool of tests from a place of the repo, or from another address.
        let tool = !cargo
            && is_python_tool(key)
            && value
                .as_table()
                .is_some_and(|from| ["path", "git", "url", "index"].iter().any(|k| from.contains_key(*k)));
        match value {
            _ if (dev && local) || tool => drop(found.insert(path.clone(), value.clone())),
            Value::Table(inner) => collect(cargo, path, inner, found),
            Value::Array(programs) if cargo && key == "bin" && path.len() == 1 => {
                for program in programs.iter().filter_map(Value::as_table) {
                    let name = program.get("name").and_then(Value::as_str).unwrap_or_default();
                    let said = program.iter().filter(|(key, _)| TESTED.contains(&key.as_str()));
                    found.extend(
                        said.map(|(key, value)| {
                            (["bin", name, key].map(str::to_owned).to_vec(), value.clone())
                        }),
                    );
                }
            }
            value if decides(cargo, path) => drop(found.insert(path.clone(), value.clone())),
            _ => {}
        }
        path.pop();
    }
}

fn decides(cargo: bool, path: &[String]) -> bool {
    let whole = path.join(".");
    let names = if cargo { CARGO } else { PYTHON };
    let last = path.last().map_or("", String::as_str);
    let table = |name: &&&str| match cargo {
        true => whole == **name || whole.starts_with(&format!("{name}.")),
        // `tool.pytest_env` as well, but not `tool.poetry` for `tool.poe`.
        false => whole
            .strip_prefix(**name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_', '-'])),
    };
    // Programs that stand before those of the system once the project is installed.
    let scripts = ["project.scripts", "project.gui-scripts", "tool.poetry.scripts"];
    let installed = !cargo && is_tool(last) && scripts.iter().any(|name| whole == format!("{name}.{last}"));
    installed
        || names.iter().any(|name| table(&name))
        || (cargo
            && match path {
                [package, key] if package == "package" => key.starts_with("auto"),
                [lib, key] if lib == "lib" => TESTED.contains(&key.as_str()),
                [workspace, _] if workspace == "workspace" => last == "default-members" || last == "exclude",
                _ => false,
            })
}

/// The members of a workspace.
fn members(table: &Table) -> BTreeSet<String> {
    let list = table.get("workspace").and_then(|w| w.get("members")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|member| member.as_str().map(str::to_owned)).collect()
}

/// What of it decides and changed; `None` where it cannot be read.
pub(super) fn changed(name: &str, old: Option<&str>, new: Option<&str>) -> Option<Vec<Part>> {
    let read = |text: Option<&str>| text.unwrap_or_default().parse::<Table>().ok();
    let (old, new) = (read(old)?, read(new)?);
    // One part for each table.
    let said = |table: &Table| {
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        for (path, value) in deciding(name, table) {
            let (last, tables) = path.split_last().map_or(("", &[][..]), |(last, tables)| (last, tables));
            let key = if tables.is_empty() { last.to_owned() } else { tables.join(".") };
            found.entry(key).or_default().push_str(&format!("{last} = {value}\n"));
        }
        found
    };
    let mut parts = keyed(&said(&old), &said(&new));
    let lost = if name == "Cargo.toml" { &members(&old) - &members(&new) } else { BTreeSet::new() };
    parts.extend(lost.into_iter().map(|member| Part {
        key: Some("workspace.members".to_owned()),
        role: Role::Configuration,
        added: false,
        needs: (!member.contains('*')).then(|| format!("{member}/Cargo.toml")),
    }));
    Some(parts)
}

/// The place of the compiler that a `rust-toolchain.toml` names, where it names one.
pub(super) fn toolchain_path(text: Option<&str>) -> Option<String> {
    let table = text?.parse::<Table>().ok()?;
    table.get("toolchain")?.get("path")?.as_str().map(str::to_owned)
}

/// `new` with what decides as in `old`; `None` where one cannot be read.
pub(super) fn put_back(name: &str, old: &str, new: &str, there: &dyn Fn(&str) -> bool) -> Option<String> {
    let (old, mut new) = (old.parse::<Table>().ok()?, new.parse::<Table>().ok()?);
    for path in deciding(name, &new).keys() {
        remove(&mut new, path);
    }
    for (path, value) in deciding(name, &old) {
        insert(&mut new, &path, value);
    }
    let lost = &members(&old) - &members(&new);
    let list = new.get_mut("workspace").and_then(|w| w.get_mut("members")).and_then(Value::as_array_mut);
    if let Some(list) = list {
        let still = |member: &String| member.contains('*') || there(&format!("{member}/Cargo.toml"));
        list.extend(lost.into_iter().filter(still).map(Value::String));
    }
    toml::to_string(&new).ok()
}

/// The table of a program by its name, else the one at a key.
fn inner<'a>(table: &'a mut Table, path: &[String], make: bool) -> Option<&'a mut Table> {
    if let [bin, name] = path
        && bin == "bin"
    {
        let programs = table.get_mut("bin").and_then(Value::as_array_mut)?;
        let named = |program: &&mut Table| program.get("name").and_then(Value::as_str) == Some(name);
        return programs.iter_mut().filter_map(Value::as_table_mut).find(named);
    }
    let mut table = table;
    for key in path {
        if make && !table.get(key).is_some_and(Value::is_table) {
            table.insert(key.clone(), Value::Table(Table::new()));
        }
        table = table.get_mut(key)?.as_table_mut()?;
    }
    Some(table)
}

fn insert(table: &mut Table, path: &[String], value: Value) {
    if let Some((last, tables)) = path.split_last()
        && let Some(table) = inner(table, tables, true)
    {
        table.insert(last.clone(), value);
    }
}

/// Takes a key out, and the tables that are empty then.
fn remove(table: &mut Table, path: &[String]) {
    let Some((last, tables)) = path.split_last() else { return };
    let Some(innermost) = inner(table, tables, false) else { return };
    innermost.remove(last);
    if innermost.is_empty() && tables.first().is_none_or(|first| first != "bin") {
        remove(table, tables);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(name: &str, old: &str, new: &str) -> Vec<String> {
        let parts = changed(name, Some(old), Some(new)).unwrap();
        parts.into_iter().filter_map(|part| part.key).collect()
    }

    #[test]
    fn keys_are_known_however_they_are_written() {
        let old = "[project]\nname = \"a\"\n";
        for cheat in [
            "[ tool.pytest.ini_options ]\naddopts = \"-p helper\"\n",
            "[tool]\npytest.ini_options = { addopts = \"-p helper\" }\n",
            "[tool.pytest]\nini_options.addopts = \"-p helper\"\n",
        ] {
            let new = format!("{old}{cheat}");
            assert_eq!(keys("pyproject.toml", old, &new), ["tool.pytest.ini_options"], "{cheat}");
            let back = put_back("pyproject.toml", old, &new, &|_| true).unwrap();
            assert_eq!(back.parse::<Table>().unwrap(), old.parse::<Table>().unwrap(), "{cheat}");
        }
        let cargo = "[package]\nname = \"a\"\n";
        for cheat in [
            "profile.test.overflow-checks = false\n[package]\nname = \"a\"\n",
            "[package]\nname = \"a\"\n[ profile.test ]\noverflow-checks = false\n",
        ] {
            assert_eq!(keys("Cargo.toml", cargo, cheat), ["profile.test"], "{cheat}");
        }
        assert_eq!(
            keys("Cargo.toml", cargo, "[package]\nname = \"a\"\n[dependencies]\ntoml = \"1\"\n"),
            [""; 0]
        );
        assert_eq!(
            keys("Cargo.toml", cargo, "[package]\nname = \"a\"\n[dev-dependencies]\na = { path = \"x\" }\n"),
            ["dev-dependencies"]
        );
        assert_eq!(changed("Cargo.toml", None, Some("[[")), None);
        for (more, decides) in [
            ("[tool.uv.sources]\npytest = { path = \"fake\" }\n", true),
            ("[tool.poetry.group.dev.dependencies]\npytest-xdist = { git = \"https://x\" }\n", true),
            ("[tool.uv.sources]\nrequests = { path = \"fake\" }\n", false),
            (
                "[tool.poetry.group.dev.dependencies]\npytest = { version = \"^8\", extras = [\"x\"] }\n",
                false,
            ),
        ] {
            assert_eq!(!keys("pyproject.toml", old, &format!("{old}{more}")).is_empty(), decides, "{more}");
        }
    }

    #[test]
    fn members_that_are_left_out_are_missed_and_new_ones_are_not() {
        let old = "[workspace]\nmembers = [\"p\", \"q\"]\n";
        assert_eq!(keys("Cargo.toml", old, "[workspace]\nmembers = [\"p\", \"q\", \"r\"]\n"), [""; 0]);
        let fewer = "[workspace]\nmembers = [\"q\"]\n";
        let lost = changed("Cargo.toml", Some(old), Some(fewer)).unwrap();
        assert_eq!(lost[0].needs.as_deref(), Some("p/Cargo.toml"));
        assert!(put_back("Cargo.toml", old, fewer, &|_| true).unwrap().contains("\"p\""));
        assert!(!put_back("Cargo.toml", old, fewer, &|_| false).unwrap().contains("\"p\""));
        let default = format!("{old}default-members = [\"q\"]\n");
        assert_eq!(keys("Cargo.toml", old, &default), ["workspace"]);
        assert!(!put_back("Cargo.toml", old, &default, &|_| true).unwrap().contains("default-members"));
    }

    #[test]
    fn whether_a_program_is_tested_decides_and_the_program_does_not() {
        let old = "[[bin]]\nname = \"a\"\n";
        assert_eq!(keys("Cargo.toml", old, "[[bin]]\nname = \"a\"\n[[bin]]\nname = \"b\"\n"), [""; 0]);
        let cheat = "[[bin]]\nname = \"a\"\ntest = false\n[[bin]]\nname = \"b\"\n";
        assert_eq!(keys("Cargo.toml", old, cheat), ["bin.a"]);
        let back = put_back("Cargo.toml", old, cheat, &|_| true).unwrap();
        assert!(!back.contains("test = false") && back.contains("\"b\""), "{back}");
    }
}
