//! Hosts that every run may reach: models, GitHub, and the package registries of the repo's languages.

use super::policy::HostRule;
use std::path::Path;

/// Model APIs, and where agents log in.
const MODELS: &[&str] = &[
    "api.anthropic.com",
    "console.anthropic.com",
    "claude.ai",
    "platform.claude.com",
    "api.openai.com",
    "auth.openai.com",
    "chatgpt.com",
    "generativelanguage.googleapis.com",
    "cloudcode-pa.googleapis.com",
    "oauth2.googleapis.com",
    "aiplatform.googleapis.com",
    "openrouter.ai",
    "api.deepseek.com",
    "api.mistral.ai",
    "api.groq.com",
    "api.x.ai",
    "api.together.xyz",
    "opencode.ai",
    "models.dev",
    "dashscope.aliyuncs.com",
    "dashscope-intl.aliyuncs.com",
    "chat.qwen.ai",
    "portal.qwen.ai",
];

/// GitHub: code, API and releases.
const GITHUB: &[&str] = &[
    "github.com",
    "api.github.com",
    "codeload.github.com",
    "raw.githubusercontent.com",
    "objects.githubusercontent.com",
    "release-assets.githubusercontent.com",
];

/// Files that show a repo's language, and the hosts of its packages.
const ECOSYSTEMS: &[(&[&str], &[&str])] = &[
    (&["Cargo.toml"], &["index.crates.io", "static.crates.io", "crates.io", "static.rust-lang.org"]),
    (
        &["package.json", "pnpm-lock.yaml", "deno.json", "bun.lockb"],
        &["registry.npmjs.org", "registry.yarnpkg.com", "nodejs.org", "jsr.io", "npm.jsr.io"],
    ),
    (&["pyproject.toml", "requirements.txt", "setup.py", "Pipfile"], &["pypi.org", "files.pythonhosted.org"]),
    (&["go.mod"], &["proxy.golang.org", "sum.golang.org", "go.dev"]),
    (
        &["pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle.kts"],
        &[
            "repo.maven.apache.org",
            "repo1.maven.org",
            "plugins.gradle.org",
            "services.gradle.org",
            "dl.google.com",
        ],
    ),
    (&["Gemfile"], &["rubygems.org", "index.rubygems.org"]),
    (&["composer.json"], &["repo.packagist.org", "packagist.org"]),
    (&["mix.exs"], &["hex.pm", "repo.hex.pm", "builds.hex.pm"]),
];

const FOLDERS: usize = 100;

/// The default rules for a run on the repo in `root`.
pub fn rules(root: &Path) -> Vec<HostRule> {
    let mut names: Vec<&str> = MODELS.iter().chain(GITHUB).copied().collect();
    let mut places = vec![root.to_owned()];
    let below = std::fs::read_dir(root).into_iter().flatten().flatten();
    places.extend(below.filter(|e| e.file_type().is_ok_and(|k| k.is_dir())).map(|e| e.path()).take(FOLDERS));
    for (files, hosts) in ECOSYSTEMS {
        if places.iter().any(|place| files.iter().any(|file| place.join(file).is_file())) {
            names.extend(*hosts);
        }
    }
    names.into_iter().filter_map(|name| HostRule::parse(name).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_follow_the_files_of_the_repo() {
        let dir = tempfile::tempdir().unwrap();
        let has = |name: &str| rules(dir.path()).contains(&HostRule::parse(name).unwrap());
        assert!(has("api.anthropic.com") && has("github.com") && !has("pypi.org"));
        std::fs::create_dir(dir.path().join("web")).unwrap();
        std::fs::write(dir.path().join("web/package.json"), "{}").unwrap();
        std::fs::write(dir.path().join("pyproject.toml"), "").unwrap();
        assert!(has("pypi.org") && has("registry.npmjs.org") && !has("rubygems.org"));
        let all = MODELS.iter().chain(GITHUB).chain(ECOSYSTEMS.iter().flat_map(|(_, hosts)| hosts.iter()));
        for name in all {
            assert!(HostRule::parse(name).is_ok(), "{name}");
        }
    }
}
