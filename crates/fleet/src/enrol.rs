//! Letting workers in and out. A token is good for one worker and an hour; what it is changed for is a login of the database
//! that this worker alone has, so that it can be taken away again.

use crate::error::FleetError;
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, PgConnection, PgPool};

/// What an enrolled worker has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolled {
    /// Its name.
    pub worker: String,
    /// Its login of the database.
    pub role: String,
    /// And the password.
    pub password: String,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn secret() -> Result<String, FleetError> {
    let mut bytes = [0u8; 24];
    getrandom::fill(&mut bytes).map_err(|e| FleetError::Database(format!("no random numbers: {e}")))?;
    Ok(hex(&bytes))
}

fn digest(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

/// Whether a name can be a worker's.
pub fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=40).contains(&name.len()) && name.chars().all(fits)
}

/// A token for one worker, good for an hour. Only its digest is kept.
pub async fn new_token(pool: &PgPool) -> Result<String, FleetError> {
    let token = format!("rw_{}", secret()?);
    sqlx::query("INSERT INTO ralph_seal.tokens (digest, until) VALUES ($1, now() + interval '1 hour')")
        .bind(digest(&token))
        .execute(pool)
        .await?;
    Ok(token)
}

/// Whether a worker can be enrolled with this token.
pub async fn is_valid(pool: &PgPool, token: &str) -> Result<bool, FleetError> {
    Ok(sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM ralph_seal.tokens WHERE digest = $1 AND used_by IS NULL AND until > now())",
    )
    .bind(digest(token))
    .fetch_one(pool)
    .await?)
}

/// Changes a token for a login of the worker's own. A token that was used, or is too old, is none.
pub async fn enrol(pool: &PgPool, token: &str, worker: &str) -> Result<Enrolled, FleetError> {
    let refused = |what: &str| FleetError::Setup {
        what: what.to_owned(),
        hint: "`ralph worker --new-token` on the server's machine makes one that is good for an hour".into(),
    };
    if !is_name(worker) {
        return Err(refused("a worker's name has small letters, digits and `-`, at most 40"));
    }
    let mut whole = pool.begin().await?;
    let used = sqlx::query(
        "UPDATE ralph_seal.tokens SET used_by = $2 WHERE digest = $1 AND used_by IS NULL AND until > now()",
    )
    .bind(digest(token))
    .bind(worker)
    .execute(&mut *whole)
    .await?;
    if used.rows_affected() != 1 {
        return Err(refused("the token is not known, was used, or is older than an hour"));
    }
    let taken: Option<bool> = sqlx::query_scalar(
        "SELECT revoked OR role IS NULL OR role NOT IN (SELECT rolname FROM pg_roles) FROM ralph_seal.workers WHERE id = $1",
    )
    .bind(worker)
        .fetch_optional(&mut *whole)
        .await?;
    if taken == Some(false) {
        return Err(refused("a worker of this name is enrolled already"));
    }
    // Create a new login each time, so that the last one stays locked out.
    let role = format!("ralph_w_{}_{}", worker.replace('-', "_"), secret()?.get(..8).unwrap_or_default());
    let password = secret()?;
    let login = verifier(&mut whole, &password).await?;
    create_login(&mut whole, &role, &login).await?;
    sqlx::query(
        "INSERT INTO ralph_seal.workers (id, role, login) VALUES ($1, $2, $3)
         ON CONFLICT (id) DO UPDATE SET role = $2, login = $3, revoked = false, draining = false, since = now()",
    )
    .bind(worker)
    .bind(&role)
    .bind(&login)
    .execute(&mut *whole)
    .await?;
    whole.commit().await?;
    Ok(Enrolled { worker: worker.to_owned(), role, password })
}

/// What Postgres keeps of a password (SCRAM-SHA-256), so that neither its log nor a dump has the password.
async fn verifier(db: &mut PgConnection, password: &str) -> Result<String, FleetError> {
    use ring::{digest, hmac, pbkdf2};
    const ROUNDS: std::num::NonZeroU32 = std::num::NonZeroU32::MIN.saturating_add(4095);
    let (mut salt, mut salted) = ([0u8; 16], [0u8; 32]);
    getrandom::fill(&mut salt).map_err(|e| FleetError::Database(format!("no random numbers: {e}")))?;
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, &salt, password.as_bytes(), &mut salted);
    let salted = hmac::Key::new(hmac::HMAC_SHA256, &salted);
    let client = hmac::sign(&salted, b"Client Key");
    let stored = digest::digest(&digest::SHA256, client.as_ref());
    let server = hmac::sign(&salted, b"Server Key");
    Ok(sqlx::query_scalar(
        "SELECT format('SCRAM-SHA-256$4096:%s$%s:%s', encode($1, 'base64'), encode($2, 'base64'), encode($3, 'base64'))",
    )
    .bind(&salt[..])
    .bind(stored.as_ref())
    .bind(server.as_ref())
    .fetch_one(db)
    .await?)
}

/// Makes a worker's login. What it may do is everybody's right (`schema.rs`); which rows it sees depends on its name.
async fn create_login(db: &mut PgConnection, role: &str, login: &str) -> Result<(), sqlx::Error> {
    let statements: Vec<String> = sqlx::query_scalar(
        "SELECT unnest(ARRAY[format('CREATE ROLE %I LOGIN PASSWORD %L CONNECTION LIMIT 60', $1, $2),
            -- Who makes it can end its connections.
            format('GRANT %I TO CURRENT_USER', $1)])",
    )
    .bind(role)
    .bind(login)
    .fetch_all(&mut *db)
    .await?;
    for statement in statements {
        sqlx::query(AssertSqlSafe(statement)).execute(&mut *db).await?;
    }
    Ok(())
}

/// Makes the logins that a restore into another cluster has left behind: their workers continue as they are.
pub(crate) async fn restore_logins(db: &mut PgConnection) -> Result<(), sqlx::Error> {
    let missing: Vec<(String, String)> = sqlx::query_as(
        "SELECT role, login FROM ralph_seal.workers
         WHERE NOT revoked AND login IS NOT NULL AND role NOT IN (SELECT rolname FROM pg_roles)",
    )
    .fetch_all(&mut *db)
    .await?;
    for (role, login) in missing {
        create_login(db, &role, &login).await?;
    }
    Ok(())
}

/// Takes a worker's rights away: its login, its connections, its holds. `false` where there is none of this name.
pub async fn revoke(pool: &PgPool, worker: &str) -> Result<bool, FleetError> {
    let role: Option<Option<String>> =
        sqlx::query_scalar("UPDATE ralph_seal.workers SET revoked = true WHERE id = $1 RETURNING role")
            .bind(worker)
            .fetch_optional(pool)
            .await?;
    let Some(role) = role else { return Ok(false) };
    sqlx::query("UPDATE ralph_seal.runs SET given_role = NULL WHERE given_role = $1")
        .bind(&role)
        .execute(pool)
        .await?;
    // Its runs may be taken by others at once: every hold of its processes is an old one from here on.
    sqlx::query(
        "UPDATE ralph_seal.leases l SET epoch = l.epoch + 1, until = NULL, holder = NULL FROM ralph_seal.runs r
         WHERE r.run = l.run AND r.worker = $1 AND r.status = 'driven'",
    )
    .bind(worker)
    .execute(pool)
    .await?;
    if let Some(role) = role {
        sqlx::query(AssertSqlSafe(format!("ALTER ROLE {role} NOLOGIN"))).execute(pool).await?;
        // What is still open sees nothing from here on, whether it can be closed or not.
        let ended = sqlx::query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1")
            .bind(&role)
            .execute(pool)
            .await;
        if let Err(error) = ended {
            tracing::warn!(%error, "the connections of a revoked worker could not be closed");
        }
    }
    Ok(true)
}

/// Scheme, host and the rest of an address.
fn parts(url: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    Some((scheme, host, path))
}

/// The address of the database with the login of a worker.
pub fn address(url: &str, login: &Enrolled) -> Result<String, FleetError> {
    let (scheme, host, path) =
        parts(url).ok_or_else(|| FleetError::Database("its address cannot be read".into()))?;
    Ok(format!("{scheme}://{}:{}@{host}{path}", login.role, login.password))
}

/// Whether an address means something on one machine alone: no other one finds the database by it.
pub fn is_local(url: &str) -> bool {
    let Some((_, host, path)) = parts(url) else { return false };
    let host = host
        .strip_prefix('[')
        .and_then(|rest| rest.split(']').next())
        .unwrap_or_else(|| host.split(':').next().unwrap_or(host));
    let socket = |part: &str| part.starts_with("host=/") || part.starts_with("host=%2F");
    let named = path.split_once('?').is_some_and(|(_, query)| query.split('&').any(socket));
    let loopback = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    named || loopback || host.is_empty() || host == "localhost" || host.starts_with("%2F")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_gets_the_address_with_its_own_login() {
        let login = Enrolled { worker: "w".into(), role: "r".into(), password: "p".into() };
        let address = |url: &str| address(url, &login).unwrap();
        assert_eq!(
            address("postgres://me:se@cret@db:5432/x?sslmode=require"),
            "postgres://r:p@db:5432/x?sslmode=require"
        );
        assert_eq!(address("postgres://db/x"), "postgres://r:p@db/x");
        assert_eq!(
            address("postgres://me@localhost/x?host=/run/pg"),
            "postgres://r:p@localhost/x?host=/run/pg"
        );
    }

    #[test]
    fn an_address_of_one_machine_is_known() {
        for local in [
            "postgres://ralph@localhost/x",
            "postgres://ralph:p@127.0.0.1:5432/x",
            "postgres://ralph@[::1]:5432/x",
            "postgres:///x",
            "postgres://ralph@db/x?sslmode=disable&host=/run/pg",
            "postgres://ralph@%2Frun%2Fpg/x",
        ] {
            assert!(is_local(local), "{local}");
        }
        for far in ["postgres://ralph:p@db/x", "postgres://r@10.0.0.7:5432/x", "postgres://r@[fd00::1]/x"] {
            assert!(!is_local(far), "{far}");
        }
    }

    #[test]
    fn names_of_workers_are_safe_to_write_anywhere() {
        assert!(is_name("eu-1"));
        for wrong in ["", "a b", "x;drop", "Ä", "UP", &"x".repeat(41)] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
