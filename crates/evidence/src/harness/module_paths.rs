//! Folders in which a test itself looks for modules: `sys.path.insert(0, 'app')`, `use lib 'inc'`.

use super::shell::join;
use std::collections::BTreeSet;

/// Words in a line by which a test puts folders where modules are looked for.
const WORDS: &[&str] =
    &["sys.path.", "use lib ", "$LOAD_PATH", "$:.unshift", "$:<<", "$: <<", "site.addsitedir("];

/// The folders that the source `path` with this text looks in, as seen from the top and from its own folder.
pub fn looked_in(path: &str, text: &str) -> BTreeSet<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let lines = text.lines().filter(|line| WORDS.iter().any(|word| line.contains(word)));
    let named = lines.flat_map(|line| line.split(['"', '\'']).skip(1).step_by(2));
    let named = named.map(|name| name.trim_start_matches('/')).filter(|name| !name.is_empty());
    named.flat_map(|name| [join("", name), join(folder, name)]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_seen_from_the_top_and_from_the_test() {
        let found = |text: &str| looked_in("t/a.py", text).into_iter().collect::<Vec<_>>();
        assert_eq!(found("import sys\nsys.path.insert(0, 'app')\n"), ["app", "t/app"]);
        assert_eq!(found("use lib \"inc\";\n"), ["inc", "t/inc"]);
        assert_eq!(found("sys.path.insert(0, os.path.join(here, '..', 'lib'))\n"), ["", "lib", "t/lib"]);
        assert!(found("open('app')\n").is_empty());
    }
}
