//! Build files of many tools: what they say, without what they say of dependencies and versions. Adding a dependency is nobody's
//! business; taking a test out of the build is.

use std::collections::BTreeMap;

/// Names of files that say what a tool builds, runs and tests.
const NAMES: &[&str] = &[
    "BUCK",
    "BUILD",
    "BUILD.bazel",
    "Build.PL",
    "CMakePresets.json",
    "Containerfile",
    "Directory.Build.props",
    "Directory.Build.targets",
    "Dockerfile",
    "Earthfile",
    "MODULE.bazel",
    "Makefile.PL",
    "Makefile.am",
    "Makefile.in",
    "Package.swift",
    "SConscript",
    "SConstruct",
    "Snakefile",
    "WORKSPACE",
    "WORKSPACE.bazel",
    "build.sbt",
    "build.xml",
    "build.zig",
    "cabal.project",
    "configure",
    "configure.ac",
    "dart_test.yaml",
    "dbt_project.yml",
    "deps.edn",
    "dodo.py",
    "dune",
    "dune-project",
    "fabfile.py",
    "hatch.toml",
    "lefthook.yml",
    "meson.build",
    "meson_options.txt",
    "mix.exs",
    "moon.yml",
    "package.yaml",
    "pants.toml",
    "pixi.toml",
    "premake5.lua",
    "project.clj",
    "rebar.config",
    "stack.yaml",
    "tasks.py",
    "wscript",
    "xmake.lua",
];

/// Beginnings of names: `gulpfile.js`, `Dockerfile.test`.
const STEMS: &[&str] = &["gulpfile.", "Gruntfile.", "Dockerfile.", "Jakefile", "gulpfile.babel."];

/// Ends of names: `a.cabal`, `tests.csproj`.
const ENDS: &[&str] =
    &[".cabal", ".csproj", ".fsproj", ".vbproj", ".bzl", ".rockspec", ".gemspec", ".nimble", ".opam"];

/// Files that change how tools run what is there already, so that a new one counts, too.
const SETTINGS: &[&str] = &[
    "Directory.Build.props",
    "Directory.Build.targets",
    "compose.override.yaml",
    "compose.override.yml",
    "compose.yaml",
    "compose.yml",
    "dart_test.yaml",
    "docker-compose.override.yml",
    "docker-compose.yaml",
    "docker-compose.yml",
    "junit-platform.properties",
    "xunit.runner.json",
    "testem.js",
    "cucumber.yml",
    "behat.yml",
    "codeception.yml",
    "infection.json",
    "wallaby.js",
    "protractor.conf.js",
    "nightwatch.conf.js",
    "jasmine.json",
    "stryker.conf.json",
];

/// Words in a line that declares what something needs, or which version it is.
const NEEDS: &[&str] = &[
    "depend",
    "deps",
    "require",
    "version",
    "packagereference",
    "librarydependencies",
    "resolvers",
    "from ",
    "git_repository",
    "maven_install",
    "author",
    "license",
    "description",
    "homepage",
    "synopsis",
    "copyright",
    "package(url",
    "pip install",
    "npm ci",
    "npm install",
    "apt-get",
    "apk add",
];

/// Whether a file is one, by its name.
pub(super) fn is_build_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    NAMES.contains(&name)
        || STEMS.iter().any(|stem| name.starts_with(stem))
        || ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether a file sets something for tools that run tests, so that a new one counts as well as a changed one.
pub(super) fn is_tool_setting(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let service = ["org.junit", "org.testng", "org.spockframework", "org.mockito"];
    let composed = name.starts_with("docker-compose.") || name.starts_with("compose.");
    SETTINGS.contains(&name)
        || (composed && (name.ends_with(".yml") || name.ends_with(".yaml")))
        || name.ends_with(".runsettings")
        || (path.contains("META-INF/services/") && service.iter().any(|word| name.starts_with(word)))
        || path.contains("mockito-extensions/")
}

/// What a build file says, by key: everything but comments, empty lines, dependencies and versions. Nothing of a new one: what
/// it builds was not built before.
pub(super) fn said(path: &str, text: Option<&str>, start: Option<&str>) -> BTreeMap<String, String> {
    let Some(text) = text.filter(|_| start.is_some()) else { return BTreeMap::new() };
    let text = without_comments(path, text);
    let (mut lines, mut closes, mut indent): (Vec<String>, i32, Option<usize>) = (Vec::new(), 0, None);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let depth = line.len() - line.trim_start().len();
        // The rest of what began in a line above: until its brackets are closed, or as long as it stands further in.
        let inside = closes > 0 || indent.is_some_and(|above| depth > above);
        if !inside {
            indent = None;
        }
        if inside || is_need(line) {
            closes = (closes + brackets(line)).max(0);
            if !inside && closes == 0 && !line.trim_end().ends_with([',', ')', ']', '}', ';']) {
                indent = Some(depth);
            }
            continue;
        }
        lines.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let all = lines.join("\n");
    [("build".to_owned(), all)].into_iter().filter(|(_, all)| !all.is_empty()).collect()
}

fn is_need(line: &str) -> bool {
    let line = line.trim().to_ascii_lowercase();
    // `[{:a, "~> 1.0"}]`, `:a => "1"`
    let tuple =
        line.trim_start_matches(['[', '{', '(', '"', '\'']).starts_with(':') && line.contains(['"', '>']);
    // A line that also says what is tested is none about needs alone.
    let tests = ["test", "alias", "skip", "exclude"].iter().any(|word| line.contains(word));
    (NEEDS.iter().any(|word| line.contains(word)) || tuple) && !tests
}

/// How many brackets a line leaves open.
pub(super) fn brackets(line: &str) -> i32 {
    let count = |letters: &[char]| i32::try_from(line.matches(letters).count()).unwrap_or(0);
    count(&['(', '[', '{']) - count(&[')', ']', '}'])
}

fn without_comments(path: &str, text: &str) -> String {
    let marked = path.ends_with(".xml") || path.ends_with("proj") || path.ends_with(".props");
    let mut rest = text;
    let mut out = String::new();
    while let Some((before, inside)) = rest.split_once("<!--").filter(|_| marked) {
        out.push_str(before);
        rest = inside.split_once("-->").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    let comment = |line: &&str| {
        let line = line.trim_start();
        !["#", "//", "--", ";", "%"].iter().any(|mark| line.starts_with(mark))
    };
    out.lines().filter(comment).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differs(path: &str, old: &str, new: &str) -> bool {
        said(path, Some(old), Some(old)) != said(path, Some(new), Some(old))
    }

    #[test]
    fn dependencies_versions_and_comments_are_told_from_what_is_built() {
        let cabal = "name: a\nversion: 0.1\n\nlibrary\n  build-depends:\n    base,\n    text\n\ntest-suite spec\n  main-is: Spec.hs\n";
        let swift = "let package = Package(\n  name: \"a\",\n  dependencies: [\n    .package(url: \"x\", from: \"1.0.0\"),\n  ],\n  targets: [\n    .testTarget(name: \"ATests\"),\n  ]\n)\n";
        let mix = "defmodule A.MixProject do\n  def project do\n    [app: :a, version: \"0.1\", deps: deps()]\n  end\n\n  defp deps do\n    [\n      {:a, \"~> 1.0\"}\n    ]\n  end\nend\n";
        for (path, old, from, to, yes) in [
            ("a.cabal", cabal, "    text\n", "    text,\n    bytestring\n", false),
            ("a.cabal", cabal, "0.1", "0.2", false),
            ("a.cabal", cabal, "Spec.hs", "Easy.hs", true),
            (
                "Package.swift",
                swift,
                "1.0.0\"),\n",
                "1.0.0\"),\n    .package(url: \"y\", from: \"2.0.0\"),\n",
                false,
            ),
            ("Package.swift", swift, "    .testTarget(name: \"ATests\"),\n", "", true),
            ("mix.exs", mix, "{:a, \"~> 1.0\"}\n", "{:a, \"~> 1.0\"},\n      {:b, \"~> 2.0\"}\n", false),
            ("mix.exs", mix, "deps: deps()", "deps: deps(), aliases: [test: \"x\"]", true),
            ("build.sbt", "name := \"a\"\n", "name", "libraryDependencies += \"b\"\nname", false),
            ("build.sbt", "name := \"a\"\n", "name", "Test / test := {}\nname", true),
            ("Dockerfile", "FROM a:1\nRUN make test\n", "a:1", "a:2", false),
            ("Dockerfile", "FROM a:1\nRUN make test\n", "make test", "true", true),
            ("meson.build", "project('a')\ntest('t', t)\n", "project", "# more\nproject", false),
            ("meson.build", "project('a')\ntest('t', t)\n", "test('t', t)\n", "", true),
            ("build.xml", "<project>\n<junit/>\n</project>\n", "<project>", "<project><!-- a -->", false),
            ("build.xml", "<project>\n<junit/>\n</project>\n", "<junit/>", "<!-- <junit/> -->", true),
        ] {
            assert_eq!(differs(path, old, &old.replacen(from, to, 1)), yes, "{path}: {from:?} to {to:?}");
            assert!(is_build_file(path), "{path}");
        }
        assert!(said("Dockerfile", Some("FROM a\nRUN b\n"), None).is_empty(), "a new one");
    }

    #[test]
    fn settings_of_tools_are_known_by_their_names() {
        for (path, yes) in [
            ("src/main/resources/junit-platform.properties", true),
            ("src/main/resources/META-INF/services/org.junit.jupiter.api.extension.Extension", true),
            ("src/main/resources/META-INF/services/com.shop.Plugin", false),
            ("all.runsettings", true),
            ("src/main/resources/application.properties", false),
        ] {
            assert_eq!(is_tool_setting(path), yes, "{path}");
        }
    }
}
