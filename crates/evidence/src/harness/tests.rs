use super::*;

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn reached(argv: &[String], folder: &str, files: &[(&str, &str)]) -> Reach {
    let read = |path: &str| files.iter().find(|(p, _)| *p == path).map(|(_, text)| (*text).to_owned());
    reach(argv, folder, &read)
}

fn scripts(argv: &[String], folder: &str, files: &[(&str, &str)]) -> Vec<String> {
    let line = |(path, via): (String, Via)| format!("{path} {via:?}");
    reached(argv, folder, files).scripts.into_iter().map(line).collect()
}

#[test]
fn every_way_to_a_script_is_followed() {
    let files: &[(&str, &str)] = &[
        ("tools/run.sh", "sh tools/more.sh\n"),
        ("tools/more.sh", "true\n"),
        ("run", "#!/usr/bin/env python3\n"),
        ("tools/check.py", "1\n"),
        ("Makefile", "test:\n\t@cd tools && ./run.sh\n"),
        (
            "sub/package.json",
            "{\"scripts\":{\"test\":\"node ../tools/check.py\",\"pretest\":\"bash ../tools/run.sh\"}}",
        ),
    ];
    let sh = |line: &str| ["sh", "-c", line].map(str::to_owned).to_vec();
    for (argv, folder, want) in [
        (words("sh tools/run.sh"), "", &["tools/run.sh Command"][..]),
        (words("timeout 60 env A=1 bash -e tools/run.sh x"), "", &["tools/run.sh Command"]),
        (sh("cd tools && ./run.sh"), "", &["tools/run.sh Command"]),
        (words("./run.sh"), "tools", &["tools/run.sh Command"]),
        (words("./run"), "", &["run Command"]),
        (words("python3 -m tools.check"), "", &["tools/check.py Command"]),
        (words("python3 -u tools/check.py a"), "", &["tools/check.py Command"]),
        (words("make -s test"), "", &["tools/run.sh Definition"]),
        (words("npm test --prefix sub"), "", &["tools/check.py Definition", "tools/run.sh Definition"]),
        (sh("grep -q done todo.txt"), "", &[]),
        (words("cargo test"), "", &[]),
    ] {
        let found = scripts(&argv, folder, files);
        let found: Vec<&str> = found.iter().map(String::as_str).filter(|l| !l.ends_with("Script")).collect();
        assert_eq!(found, want, "{argv:?}");
    }
    assert_eq!(
        scripts(&words("sh tools/run.sh"), "", files),
        ["tools/more.sh Script", "tools/run.sh Command"]
    );
}

#[test]
fn definitions_are_compared_by_key_and_by_the_file_that_says_them() {
    let start: &[(&str, &str)] = &[
        ("Makefile", "include x.mk\nRUN = pytest\ntest: build\n\t$(RUN)\n\nbuild:\n\ttrue\nlint:\n\tlint\n"),
        ("x.mk", ""),
    ];
    let before = reached(&words("make test"), "", start);
    let changed = |files: &[(&str, &str)]| {
        let now = reached(&words("make test"), "", files);
        let line = |r: Redefined| {
            format!("{} in {}{}", r.definition.key, r.file, if r.extended { " more" } else { "" })
        };
        redefined(&before, &now).into_iter().map(line).collect::<Vec<_>>()
    };
    let with = |makefile: &'static str| vec![("Makefile", makefile), ("x.mk", "")];
    assert_eq!(changed(start), [""; 0]);
    let lint = with(
        "include x.mk\nRUN = pytest\ntest: build\n\t$(RUN)\n\nbuild:\n\ttrue\nlint:\n\tother\nnew:\n\tx\n",
    );
    assert_eq!(changed(&lint), [""; 0], "a target that is not reached is free");
    let variable = with("include x.mk\nRUN = true\ntest: build\n\t$(RUN)\n\nbuild:\n\ttrue\n");
    assert_eq!(changed(&variable), ["RUN in Makefile"]);
    let more = with("include x.mk\nRUN = pytest\ntest: build\n\t$(RUN)\n\tlint\n\nbuild:\n\ttrue\n");
    assert_eq!(changed(&more), ["test in Makefile more"]);
    let mut shadowed = start.to_vec();
    shadowed.push(("GNUmakefile", "include Makefile\ntest:\n\ttrue\n"));
    assert_eq!(changed(&shadowed), ["test in GNUmakefile"]);
    let included = vec![start[0], ("x.mk", ".IGNORE:\n")];
    assert_eq!(changed(&included), ["settings of all targets in x.mk"]);
}

#[test]
fn scripts_of_packages_count_with_what_runs_around_them() {
    let package = |text: &'static str| reached(&words("npm test"), "", &[("package.json", text)]);
    let before = package("{\"scripts\":{\"test\":\"npm run unit\",\"unit\":\"jest\",\"lint\":\"x\"}}");
    let same = package(
        "{\"scripts\":{\"test\":\"npm run unit\",\"unit\":\"jest\",\"lint\":\"y\"},\"dependencies\":{}}",
    );
    assert!(redefined(&before, &same).is_empty());
    let unit = package("{\"scripts\":{\"test\":\"npm run unit\",\"unit\":\"true\"}}");
    assert_eq!(redefined(&before, &unit)[0].definition.key, "unit");
    let post = package("{\"scripts\":{\"test\":\"npm run unit\",\"unit\":\"jest\",\"posttest\":\"true\"}}");
    assert_eq!(redefined(&before, &post)[0].definition.key, "posttest");
}

#[test]
fn only_what_always_reports_must_report() {
    for (line, yes) in [
        ("pytest -q", true),
        ("python3 -m unittest -q", true),
        ("timeout 60 cargo test", true),
        ("pytest -qq", false),
        ("pytest --co", false),
        ("make test", false),
        ("sh check.sh", false),
    ] {
        assert_eq!(always_reports(&words(line)), yes, "{line}");
    }
    let sh = |line: &str| ["sh", "-c", line].map(str::to_owned).to_vec();
    assert!(always_reports(&sh("python3 -m pytest")));
    assert!(!always_reports(&sh("pytest > log")));
    assert!(!always_reports(&sh("pytest && echo done")));
}

#[test]
fn what_a_command_names_to_any_tool_is_found() {
    let files = [
        ("tools/verify.py", ""),
        ("tools/verify.txt", "sh tools/inner.sh\n"),
        ("tools/inner.sh", ""),
        ("rules/main.awk", ""),
        ("reference.txt", ""),
        ("tools/check.c", ""),
        ("xtask/Cargo.toml", ""),
        (".cargo/config.toml", "[alias]\nxtask = \"run -q -p xtask --\"\n"),
        ("support/hooks.js", ""),
    ];
    let read = |path: &str| files.iter().find(|(p, _)| *p == path).map(|(_, text)| (*text).to_owned());
    let told = |line: &str| -> Vec<String> {
        let argv = ["sh", "-c", line].map(str::to_owned);
        let reach = reach(&argv, "", &read);
        let tests = reach.tests.iter().map(|place| {
            format!("test {} {}", place.path, place.pattern.as_deref().unwrap_or_default()).trim().to_owned()
        });
        reach.scripts.keys().cloned().chain(tests).collect()
    };
    assert_eq!(told("awk -f rules/main.awk part.txt"), ["rules/main.awk"]);
    assert_eq!(told("PYTHONPATH=tools python3 -m verify"), ["tools/verify.py"]);
    assert_eq!(told("export PYTHONPATH=tools; python3 -m verify"), ["tools/verify.py"]);
    assert_eq!(told("cat tools/verify.py | python3 -"), ["tools/verify.py"]);
    assert_eq!(told("python3 - < tools/verify.py"), ["tools/verify.py"]);
    assert_eq!(told("cat tools/verify.txt | sh"), ["tools/inner.sh", "tools/verify.txt"]);
    assert_eq!(told("python3 -c 'print(1)' | diff - reference.txt"), ["test reference.txt"]);
    assert_eq!(told("cc -o /tmp/chk tools/check.c && /tmp/chk"), ["test tools/check.c"]);
    assert_eq!(told("cargo xtask ci"), ["test xtask"]);
    assert_eq!(told("for f in tools/*.py; do python3 $f || exit 1; done"), ["test tools *.py"]);
    assert_eq!(told("find tools -name '*.py' | xargs -n1 python3"), ["test tools *.py"]);
    assert_eq!(told("find src -name '*.py' | xargs python3 -m py_compile"), [""; 0]);
    assert_eq!(told("npm exec -c 'node tools/verify.py'"), ["tools/verify.py"]);
    assert_eq!(told("npx mocha -r ./support/hooks.js"), ["test support/hooks.js"]);
    assert_eq!(told("cat part.txt | grep right"), [""; 0]);
}
