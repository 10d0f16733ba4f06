//! New files that are loaded in the place of a test: `test_part.so` or a package `test_part/` beside `test_part.py`.

/// Ends of names of modules that Python takes before a source, and of those that it takes instead of one.
const PYTHON: &[&str] = &["so", "pyd", "pyc", "py"];
/// Ends of names that an import without an end is tried with.
const NODE: &[&str] = &["js", "json", "node", "mjs", "cjs", "jsx", "ts", "tsx", "mts", "cts"];

/// A module that a file is, as those who import it call it.
struct Module {
    /// Its path without the end, or its folder.
    path: String,
    /// Whether it is a folder with a file that speaks for it.
    folder: bool,
    ends: &'static [&'static str],
    end: String,
}

fn module(path: &str) -> Option<Module> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (stem, end) = name.rsplit_once('.')?;
    let below = |stem: &str| if folder.is_empty() { stem.to_owned() } else { format!("{folder}/{stem}") };
    let ends = [PYTHON, NODE].into_iter().find(|ends| ends.contains(&end))?;
    // `test_part.cpython-312-x86_64-linux-gnu.so`
    let stem = if matches!(end, "so" | "pyd" | "pyc") { name.split('.').next()? } else { stem };
    let speaks = if ends == PYTHON { "__init__" } else { "index" };
    let (path, is_folder) = match stem == speaks && !folder.is_empty() {
        true => (folder.to_owned(), true),
        false => (below(stem), false),
    };
    Some(Module { path, folder: is_folder, ends, end: end.to_owned() })
}

/// Whether the new file `path` is loaded in the place of `test`, a file of the start that `there` knows of: the same folder,
/// the same name for who imports it, and found first.
pub fn is_loaded_before(path: &str, test: &str, there: &dyn Fn(&str) -> bool) -> bool {
    let (Some(new), Some(old)) = (module(path), module(test)) else { return false };
    if path == test || new.ends != old.ends {
        return false;
    }
    if new.path == old.path {
        return match new.ends == PYTHON {
            // A package comes before a module, compiled code before a source.
            true => new.folder && !old.folder || new.end != "py" && new.folder == old.folder,
            false => !new.folder,
        };
    }
    // A module beside a folder of tests that is no package takes the name of the folder.
    let package = new.path.as_str();
    new.ends == PYTHON
        && !new.folder
        && test.strip_prefix(package).is_some_and(|rest| rest.starts_with('/'))
        && !there(&format!("{package}/__init__.py"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_found_first_takes_the_place_of_a_test() {
        for (path, test, yes) in [
            ("test_part.so", "test_part.py", true),
            ("test_part.cpython-312-x86_64-linux-gnu.so", "test_part.py", true),
            ("test_part.pyc", "test_part.py", true),
            ("test_part/__init__.py", "test_part.py", true),
            ("test_part/__init__.so", "test_part.py", true),
            ("checks.py", "checks/part_cases.py", true),
            ("checks/part.js", "checks/part.ts", true),
            ("part.mjs", "part.test.mjs", false),
            ("src/part.mjs", "src/__tests__/part.test.mjs", false),
            ("app/parser.py", "tests/parser.py", false),
            ("lib/slug.js", "test/slug.js", false),
            ("test/slug.so", "test/slug.js", false),
            ("app.py", "app/tests/test_a.py", false),
            ("part.py", "test_part.py", false),
        ] {
            let there = |path: &str| path == "app/__init__.py";
            assert_eq!(is_loaded_before(path, test, &there), yes, "{path} before {test}");
        }
    }
}
