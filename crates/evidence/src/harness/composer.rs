//! What a `composer.json` says beside dependencies: scripts, what is loaded before everything, and where packages come from.

use serde_json::Value;
use std::collections::BTreeMap;

/// What decides of a `composer.json`, by key.
pub(super) fn deciding(text: Option<&str>) -> BTreeMap<String, String> {
    let all: Value = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let loaded = ["autoload", "autoload-dev"].map(|key| (format!("{key}/files"), all[key]["files"].clone()));
    // Where what is installed comes from and goes to, and where classes of tests are looked for.
    let mut said = vec![
        ("scripts".to_owned(), all["scripts"].clone()),
        ("autoload-dev".to_owned(), all["autoload-dev"].clone()),
        ("config/vendor-dir".to_owned(), all["config"]["vendor-dir"].clone()),
        ("config/bin-dir".to_owned(), all["config"]["bin-dir"].clone()),
    ];
    let own = |from: &&Value| from["type"] == "path";
    if all["repositories"].as_array().is_some_and(|all| all.iter().any(|from| own(&from))) {
        said.push(("repositories".to_owned(), all["repositories"].clone()));
    }
    said.extend(loaded);
    let said = said.into_iter();
    said.filter(|(_, value)| !value.is_null()).map(|(key, value)| (key, value.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_from_the_repo_and_scripts_are_told_from_dependencies() {
        let differs = |new: &str| deciding(Some("{\"require\": {}}")) != deciding(Some(new));
        assert!(!differs(
            "{\"require\": {\"a/b\": \"^1\"}, \"config\": {\"allow-plugins\": {\"a/b\": true}}}"
        ));
        assert!(!differs("{\"repositories\": [{\"type\": \"composer\", \"url\": \"https://a.example\"}]}"));
        assert!(differs("{\"repositories\": [{\"type\": \"path\", \"url\": \"easy\"}]}"));
        assert!(differs("{\"config\": {\"vendor-dir\": \"easy\"}}"));
        assert!(differs("{\"scripts\": {\"test\": \"true\"}}"));
    }
}
