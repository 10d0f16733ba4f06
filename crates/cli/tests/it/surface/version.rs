//! `ralph --version` in its three forms.

use crate::RALPH;
use ralph_loop_testkit::TestEnv;
use serde_json::json;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn version_prints_short_long_and_json_forms() {
    let env = TestEnv::new(RALPH);
    let folder = env.path("home");
    assert_eq!(env.ralph(&folder, &["--version"]).exits(0).stdout, format!("ralph {VERSION}\n"));
    let long = env.ralph(&folder, &["--version", "--verbose"]).exits(0).stdout;
    assert!(long.starts_with(&format!("ralph {VERSION}\ncommit:   ")), "{long}");
    let json = env.ralph(&folder, &["--json", "--version"]).exits(0).json();
    assert_eq!(json["version"], json!(VERSION));
    assert!(long.contains(&format!("target:   {}\n", json["target"].as_str().unwrap())), "{long}");
}
