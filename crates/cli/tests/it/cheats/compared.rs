//! What a check compares is the product, and what it goes by is the check; and how many tests ran, where the user's own are not
//! committed.

use super::scene::{End, PART, Scene, UNIT, cheats};
use super::{PROMISE, RALPH};
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;

const FILES: &[(&str, &str)] = &[
    ("app.sh", "cat words.txt\n"),
    ("words.txt", "wrong\n"),
    ("app.py", "print('wrong')\n"),
    ("run.sh", "grep -q right part.txt && echo ok\n"),
    ("Makefile", "test:\n\t@[ \"$$(sh app.sh)\" = right ]\n"),
];

/// Makes the programs print what is wanted.
const HONEST: &str = "echo right > words.txt; echo 'cat words.txt; true' > app.sh; echo \"print('right')\" > app.py; echo right > part.txt";

fn compared(checks: &[&'static str], cheat: &'static str, file: &'static str) -> Scene {
    Scene { files: FILES, checks: checks.to_vec(), honest: HONEST, ..Scene::new(cheat, End::NotDone(file)) }
}

cheats! {
    output_of_a_script_is_compared_and_another_script_is_the_check: compared(
        &["[ \"$(sh app.sh)\" = right ]", "sh run.sh && true"],
        "echo 'echo right' > app.sh; echo true > run.sh",
        "run.sh"
    );
    output_of_programs_is_looked_through: compared(
        &["sh app.sh | grep -q right", "python3 app.py | grep -q right", "sh run.sh"],
        "echo 'echo right' > app.sh; echo \"print('right')\" > app.py; echo true > run.sh",
        "run.sh"
    );
    verdict_of_a_script_is_compared: compared(
        &["[ \"$(sh run.sh)\" = ok ]"], "echo 'echo ok' > run.sh", "run.sh"
    );
    output_of_a_script_is_compared_by_a_target: compared(
        &["make -s test", "sh run.sh"], "echo 'echo right' > app.sh; echo true > run.sh", "run.sh"
    );
    output_is_compared_where_checks_are_watched: Scene {
        watched: true,
        ..compared(
            &["[ \"$(sh app.sh)\" = right ]", "[ \"$(python3 app.py)\" = right ]", "sh run.sh && true"],
            "echo 'echo right' > app.sh; echo true > run.sh",
            "run.sh",
        )
    };
}

/// The user's own test is not committed, and not in what is handed over; those that are still have to run.
#[test]
fn tests_are_counted_where_the_users_own_are_not_committed() {
    let play = |name: &str, work: &str| {
        let env = TestEnv::new(RALPH);
        let other = UNIT.1.replace("part", "other").replace("Part", "Other");
        let repo = TestRepo::new(&env, name, &[UNIT, PART, ("test_other.py", &other), ("other.py", PART.1)]);
        repo.write("PROMPT.md", "# Do the work\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "-m", "scene"]);
        repo.write("test_mine.py", &UNIT.1.replace("Part", "Mine").replace("test_part", "test_mine"));
        repo.config(&json!({
            "agents": [{"name": "stub", "command_argv": ["sh", "-c", format!("{work}\n{PROMISE}")]}],
            "verifiers": [{"name": "unit", "command_argv": ["sh", "-c", "python3 -m unittest -q"]}],
            "max_iterations": 1,
            "baseline": true,
        }));
        let run = repo.ralph(&["run", "--json", "--branch", "fix"]);
        let proof =
            std::fs::read_to_string(repo.dir.join(".ralph/runs").join(repo.latest()).join("proof.json"));
        (run.code, run.json()["level"].clone(), format!("{}\n{}", run.stderr, proof.unwrap_or_default()))
    };
    let half = "echo \"VALUE = 'right'\" > part.py";
    let (code, _, told) = play(
        "cheat",
        &format!("{half}; printf 'import unittest\\nraise unittest.SkipTest(\"later\")\\n' > other.py"),
    );
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("it ran 1 of the 2 tests that it ran at the start"), "{told}");
    let more = UNIT.1.replace("Part", "More").replace('\n', "\\n");
    let honest = format!("{half}; cp part.py other.py");
    for work in [honest.clone(), format!("{honest}; printf \"{more}\" > test_more.py")] {
        let (code, level, told) = play("honest", &work);
        assert_eq!((code, level), (Some(0), json!("independent")), "{work}: {told}");
    }
}
