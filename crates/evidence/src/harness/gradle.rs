//! What a `build.gradle` says of tests: blocks and lines about them, not those about dependencies.

use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks in which a word about tests is one about dependencies.
const OTHERS: &[&str] =
    &["dependencies", "repositories", "plugins", "buildscript", "pluginManagement", "configurations"];

/// A line or a block that is about tests: the blocks around it, its head, and where it stands.
struct Statement {
    around: Vec<String>,
    head: String,
    range: Range<usize>,
}

fn is_about_tests(head: &str) -> bool {
    let mut words = head.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.any(|word| {
        word == "check" || word == "gradle" || word == "onlyIf" || word.to_ascii_lowercase().contains("test")
    })
}

fn statements(text: &str, range: Range<usize>, around: &[String], found: &mut Vec<Statement>) {
    let bytes = text.as_bytes();
    let (mut at, mut from) = (range.start, range.start);
    while at < range.end {
        let rest = &text[at..range.end];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            from = at;
            continue;
        }
        match bytes[at] {
            b'"' | b'\'' => at = end_of_text(bytes, at, range.end),
            b'{' => {
                let close = end_of_block(text, at, range.end);
                let head = text[from..at].split_whitespace().collect::<Vec<_>>().join(" ");
                let first = head.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                let other = OTHERS.contains(&first);
                if !other && is_about_tests(&head) {
                    let start = from + text[from..at].len() - text[from..at].trim_start().len();
                    found.push(Statement { around: around.to_vec(), head, range: start..close });
                } else if !other {
                    let inner = [around, &[head]].concat();
                    statements(text, at + 1..close.saturating_sub(1), &inner, found);
                }
                at = close;
                from = at;
                continue;
            }
            b'\n' | b';' => {
                let line = text[from..at].trim();
                if !line.is_empty() && is_about_tests(line) && line.contains(['=', '(', '.', ' ']) {
                    let head = line.split(['=', '(']).next().unwrap_or(line).trim().to_owned();
                    let start = from + text[from..at].len() - text[from..at].trim_start().len();
                    found.push(Statement { around: around.to_vec(), head, range: start..at });
                }
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
}

fn end_of_text(bytes: &[u8], at: usize, end: usize) -> usize {
    let mut close = at + 1;
    while close < end && bytes[close] != bytes[at] && bytes[close] != b'\n' {
        close += if bytes[close] == b'\\' { 2 } else { 1 };
    }
    close.min(end.saturating_sub(1))
}

fn end_of_block(text: &str, open: usize, end: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0, open);
    while at < end {
        match bytes[at] {
            b'"' | b'\'' => at = end_of_text(bytes, at, end),
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    end
}

fn all(text: &str) -> Vec<(String, Statement)> {
    let whole = format!("{text}\n");
    let mut found = Vec::new();
    statements(&whole, 0..whole.len(), &[], &mut found);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let keyed = |statement: Statement| {
        let base = [statement.around.as_slice(), std::slice::from_ref(&statement.head)].concat().join("/");
        let number = seen.entry(base.clone()).or_default();
        *number += 1;
        let key = if *number == 1 { base } else { format!("{base} {number}") };
        (key, statement)
    };
    found.into_iter().map(keyed).collect()
}

/// What it says of tests, by key.
pub(super) fn about_tests(text: &str) -> BTreeMap<String, String> {
    let said = |(key, statement): (String, Statement)| {
        let text = text.get(statement.range).unwrap_or_default();
        (key, text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    all(text).into_iter().map(said).collect()
}

/// `new` with what `old` says of tests.
pub(super) fn put_back(old: &str, new: &str) -> String {
    let mut was: BTreeMap<String, Statement> = all(old).into_iter().collect();
    let (mut out, mut at) = (String::new(), 0);
    for (key, statement) in all(new) {
        out.push_str(new.get(at..statement.range.start).unwrap_or_default());
        if let Some(before) = was.remove(&key) {
            out.push_str(old.get(before.range).unwrap_or_default());
        }
        at = statement.range.end;
    }
    out.push_str(new.get(at..).unwrap_or_default());
    for statement in was.into_values() {
        let text = old.get(statement.range).unwrap_or_default().to_owned();
        let wrapped = statement.around.iter().rev().fold(text, |text, head| format!("{head} {{\n{text}\n}}"));
        out.push_str(&format!("\n{wrapped}\n"));
    }
    out
}

/// What decides of a `settings.gradle`: the projects of the start that it includes, and all lines but those about names, further
/// projects and places of dependencies.
pub(super) fn settings(text: Option<&str>, start: Option<&str>) -> BTreeMap<String, String> {
    let included = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|line| line.starts_with("include"));
        let names = lines.flat_map(|line| line.split(['"', '\'']).skip(1).step_by(2));
        names.map(|name| name.trim_start_matches(':').to_owned()).collect()
    };
    let text = text.unwrap_or_default();
    let known = included(start.unwrap_or_default());
    let mut projects = included(text);
    projects.retain(|project| known.contains(project));
    projects.sort();
    let (mut depth, mut other, mut lines) = (0_usize, false, Vec::new());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
        let first = line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if depth == 0 {
            other = OTHERS.contains(&first)
                || matches!(first, "dependencyResolutionManagement" | "include" | "rootProject");
        }
        let plain = depth == 0 && (first == "include" || line.starts_with("rootProject.name"));
        let places = other && !matches!(first, "include" | "rootProject") && !is_about_tests(line);
        if !plain && !places {
            lines.push(line.to_owned());
        }
        depth = (depth + line.matches('{').count()).saturating_sub(line.matches('}').count());
    }
    let found = [("include".to_owned(), projects.join("\n")), ("settings".to_owned(), lines.join("\n"))];
    found.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// The scripts that a build file applies: `apply from: 'gradle/verify.gradle'`.
pub(super) fn applied(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("apply") && line.contains("from"));
    let file = |line: &str| {
        let value = line.split(['"', '\'']).nth(1)?;
        let roots = [
            "$rootDir/",
            "${rootDir}/",
            "$rootProject.projectDir/",
            "${rootProject.projectDir}/",
            "$projectDir/",
        ];
        Some(roots.iter().find_map(|root| value.strip_prefix(root)).unwrap_or(value).to_owned())
    };
    lines.filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "plugins { id 'java' }\ndependencies {\n}\ntest {\n    useJUnitPlatform()\n}\n";

    fn differ(new: &str) -> bool {
        about_tests(OLD) != about_tests(new)
    }

    #[test]
    fn dependencies_are_free_and_what_tests_do_is_not() {
        let dependency = OLD.replace(
            "dependencies {\n",
            "dependencies {\n    implementation(\"g:guava:33\") { exclude group: \"x\" }\n    testImplementation 'a:b:1'\n",
        );
        assert!(!differ(&dependency) && !differ(&OLD.replace("    use", "\tuse")));
        assert!(differ(&OLD.replace("useJUnitPlatform()", "useJUnitPlatform()\n    enabled=false")));
        assert!(differ(&format!("{OLD}tasks.test.enabled = false\n")));
        assert!(differ(&format!(
            "{OLD}subprojects {{ tasks.withType(Test) {{ ignoreFailures = true }} }}\n"
        )));
        assert_eq!(put_back(OLD, &dependency), dependency);
        let cheat = dependency.replace("useJUnitPlatform()", "enabled=false") + "test.onlyIf { false }\n";
        assert_eq!(about_tests(&put_back(OLD, &cheat)), about_tests(OLD));
        assert!(put_back(OLD, &cheat).contains("guava"));
        assert_eq!(about_tests(&put_back(OLD, "plugins { id 'java' }\n")), about_tests(OLD));
    }
}
