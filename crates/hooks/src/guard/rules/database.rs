//! Dropping data.

use super::Call;
use crate::guard::category::{Category, Refusal};

const CLIENTS: &[&str] = &[
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "mongo",
    "mongosh",
    "redis-cli",
    "cqlsh",
    "clickhouse-client",
    "sqlcmd",
    "duckdb",
    "usql",
    "influx",
    "cockroach",
    "snowsql",
    "bq",
    "pgcli",
    "mycli",
    "litecli",
    "valkey-cli",
];
/// Names of databases that are made to be dropped.
const PASSING: &[&str] =
    &["test", "_ci", "tmp", "temp", "sandbox", "scratch", ":memory:", "_dev", "example", "demo"];

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let named = |text: &str| PASSING.iter().any(|word| text.to_lowercase().contains(word));
    let staged = ["RAILS_ENV", "RACK_ENV", "NODE_ENV", "MIX_ENV", "APP_ENV", "DATABASE_URL"];
    let passing = call.args.iter().any(|arg| named(&arg.text))
        || staged.iter().filter_map(|name| (call.variable)(name)).any(|value| named(&value));
    let refuse = || if passing { None } else { call.refuse(Category::Database, "It drops data.") };
    let verbs = call.verbs();
    let by_script =
        call.name.starts_with("python") && verbs.first().is_some_and(|script| script.ends_with("manage.py"));
    if by_script && verbs.get(1).is_some_and(|verb| ["flush", "reset_db", "sqlflush"].contains(verb)) {
        return refuse();
    }
    match call.name {
        "dropdb" | "dropuser" => refuse(),
        "mysqladmin" if call.has(&["drop"]) => refuse(),
        "rails" | "rake" | "artisan" | "mix" | "prisma" | "sequelize" | "typeorm" | "knex"
        | "sequelize-cli" | "drizzle-kit" | "alembic" | "supabase" | "manage.py" => {
            let drops = verbs.iter().any(|verb| {
                [
                    "db:drop",
                    "db:reset",
                    "db:migrate:reset",
                    "migrate:fresh",
                    "migrate:reset",
                    "ecto.drop",
                    "ecto.reset",
                    "schema:drop",
                    "db:wipe",
                    "flush",
                    "db:drop:all",
                ]
                .contains(verb)
            }) || verbs.starts_with(&["migrate", "reset"])
                || verbs.starts_with(&["db", "reset"])
                || verbs.starts_with(&["migrate", "rollback"]) && call.has(&["--all"])
                || call.option(&["--force-reset", "--accept-data-loss"]);
            if drops { refuse() } else { None }
        }
        name if CLIENTS.contains(&name) => {
            let flushes = call
                .args
                .iter()
                .any(|arg| ["FLUSHALL", "FLUSHDB"].contains(&arg.text.to_uppercase().as_str()));
            let said = call.args.iter().any(|arg| drops(&arg.text)) || drops(&call.stdin.text);
            if flushes || said { refuse() } else { None }
        }
        _ => None,
    }
}

/// What a statement drops, wherever it stands.
pub fn sql(text: &str, words: &str) -> Option<Refusal> {
    let passing = PASSING.iter().any(|word| text.to_lowercase().contains(word));
    (drops(text) && !passing).then(|| Refusal::new(Category::Database, words, "It drops data."))
}

fn drops(text: &str) -> bool {
    if text.len() < 8 {
        return false;
    }
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || c == ';')
        .filter(|w| !w.is_empty())
        .take(4000)
        .map(str::to_uppercase)
        .collect();
    let pairs = words.windows(2).any(|pair| {
        let second = pair[1].trim_matches(|c: char| !c.is_alphanumeric());
        match pair[0].trim_matches(|c: char| !c.is_alphanumeric()) {
            "DROP" => {
                ["DATABASE", "TABLE", "SCHEMA", "KEYSPACE", "COLLECTION", "USER", "ROLE"].contains(&second)
            }
            "TRUNCATE" => words.len() <= 12,
            _ => false,
        }
    });
    let deletes_all = words.windows(3).any(|three| three[0] == "DELETE" && three[1] == "FROM")
        && !words.iter().any(|word| word == "WHERE");
    pairs
        || deletes_all
        || text.contains(".dropDatabase(")
        || text.contains(".deleteMany({})")
        || text.contains(".drop()")
}
