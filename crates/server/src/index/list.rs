//! Lists: filtered, sorted, paged. A page starts after the last row of the previous one, so every page costs
//! the same.

use super::counts::Known;
use super::words::Found;
use super::{Index, on};
use crate::http::problem::Problem;
use crate::row::RunRow;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sqlx::AssertSqlSafe;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// Default and maximum rows per page.
const ROWS: (i64, i64) = (50, 500);
/// Size limit of a search.
const SEARCH_MAX: usize = 200;

/// What a list is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SortBy {
    /// When something last happened.
    #[default]
    Updated,
    /// When it was requested.
    Created,
    /// What it has cost.
    Cost,
    /// Its iteration.
    Iteration,
    /// The score of the last iteration.
    Score,
}

impl SortBy {
    fn column(self) -> &'static str {
        match self {
            Self::Updated => "updated",
            Self::Created => "created",
            Self::Cost => "cost",
            Self::Iteration => "iteration",
            Self::Score => "score",
        }
    }
    fn is_whole(self) -> bool {
        !matches!(self, Self::Cost | Self::Score)
    }
}

/// Filter and order of a list.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ListQuery {
    /// A status word, or several separated by commas; `open` for all unfinished runs.
    pub status: Option<String>,
    /// The folder that runs were started from.
    pub repo: Option<String>,
    /// Words in the title, id, folder or branch.
    pub q: Option<String>,
    /// Who requested them.
    pub person: Option<String>,
    /// Sort key.
    pub sort: Option<SortBy>,
    /// `asc` or `desc` (the default).
    pub order: Option<String>,
    /// Rows of a page.
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

impl ListQuery {
    /// Fuzzing entry point: parses the query without a database and returns a score of what was understood.
    pub(crate) fn read_whole(&self, cursor: &str) -> usize {
        let conditions = Conditions::of(self, None);
        let cursor = usize::from(read_cursor(cursor).is_ok());
        conditions.text().matches('$').count().min(conditions.values.len()).min(3) + 4 * cursor
    }
}

/// One page.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Page {
    /// The rows.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<RunRow>"))]
    pub runs: Vec<Box<RawValue>>,
    /// Start of the next page; null at the end.
    pub next_cursor: Option<String>,
    /// Total number of rows, possibly a moment old.
    pub total: i64,
    /// Runs by status regardless of the filter, possibly a moment old.
    pub counts: BTreeMap<String, i64>,
}

#[derive(Clone)]
enum Value {
    Text(String),
    Whole(i64),
    Number(f64),
}

/// A list's conditions with their values.
#[derive(Clone, Default)]
struct Conditions {
    words: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    fn value(&mut self, value: Value) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    /// `found` are the runs a search found; without them the database searches.
    fn of(query: &ListQuery, found: Option<&[String]>) -> Self {
        let mut all = Self::default();
        match query.status.as_deref().filter(|s| !s.is_empty()) {
            Some("open") => {
                let one = all.value(Value::Whole(1));
                all.words.push(format!("open = {one}"));
            }
            Some(words) => {
                let places: Vec<String> = words
                    .split(',')
                    .take(20)
                    .map(|word| all.value(Value::Text(word.trim().to_owned())))
                    .collect();
                all.words.push(match places.as_slice() {
                    [one] => format!("status = {one}"),
                    several => format!("status IN ({})", several.join(", ")),
                });
            }
            None => {}
        }
        for (column, wanted) in [("repo", &query.repo), ("person", &query.person)] {
            if let Some(wanted) = wanted.as_ref().filter(|w| !w.is_empty()) {
                let place = all.value(Value::Text(wanted.clone()));
                all.words.push(format!("{column} = {place}"));
            }
        }
        if let Some(ids) = found {
            let places: Vec<String> = ids.iter().map(|id| all.value(Value::Text(id.clone()))).collect();
            all.words.push(format!("id IN ({})", places.join(", ")));
            return all;
        }
        for word in words_of(query) {
            let escaped = word.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
            let place = all.value(Value::Text(format!("%{escaped}%")));
            all.words.push(format!("search LIKE {place} ESCAPE '\\'"));
        }
        all
    }

    fn text(&self) -> String {
        if self.words.is_empty() { String::new() } else { format!(" WHERE {}", self.words.join(" AND ")) }
    }

    fn key(&self) -> String {
        let values = self.values.iter().map(|value| match value {
            Value::Text(text) => text.clone(),
            Value::Whole(n) => n.to_string(),
            Value::Number(n) => n.to_string(),
        });
        format!("{}\0{}", self.words.join("\0"), values.collect::<Vec<_>>().join("\0"))
    }
}

macro_rules! bound {
    ($query:expr, $values:expr) => {{
        let mut query = $query;
        for value in $values {
            query = match value {
                Value::Text(text) => query.bind(text.as_str()),
                Value::Whole(n) => query.bind(*n),
                Value::Number(n) => query.bind(*n),
            };
        }
        query
    }};
}

impl Index {
    /// One page of the list.
    pub async fn list(self: &Arc<Self>, query: &ListQuery) -> Result<Page, Problem> {
        let sort = query.sort.unwrap_or_default();
        let column = sort.column();
        let (direction, beyond) = match query.order.as_deref() {
            None | Some("" | "desc") => ("DESC", "<"),
            Some("asc") => ("ASC", ">"),
            Some(other) => return Err(Problem::bad(format!("`order={other}` is neither asc nor desc"))),
        };
        let limit = query.limit.unwrap_or(ROWS.0).clamp(1, ROWS.1);
        let words = words_of(query);
        let found = self.find(&words).await?;
        let few = match &found {
            Some(Found::Few(ids)) => Some(ids.as_slice()),
            _ => None,
        };
        let mut conditions = Conditions::of(query, few);
        let alone = conditions.words.len() == words.len();
        let counted = conditions.clone();
        let counts = self.count_by_status().await?;
        if let Some(cursor) = query.cursor.as_deref().filter(|c| !c.is_empty()) {
            let (number, id) = read_cursor(cursor)?;
            let number = if sort.is_whole() { Value::Whole(number as i64) } else { Value::Number(number) };
            let (number, id) = (conditions.value(number), conditions.value(Value::Text(id)));
            conditions.words.push(format!("({column}, id) {beyond} ({number}, {id})"));
        }
        let order = format!("ORDER BY {column} {direction}, id {direction}");
        let rows = format!("{} {order} LIMIT {}", conditions.text(), limit + 1);
        // Searches use a covering index; full rows are read only for matches.
        let wanted = match words.is_empty() || few.is_some() {
            true => rows,
            false => format!(" WHERE id IN (SELECT id FROM runs{rows}) {order}"),
        };
        let text = format!("SELECT id, CAST({column} AS DOUBLE PRECISION), body FROM runs{wanted}");
        let mut rows: Vec<(String, f64, String)> = on!(self, pool => {
            bound!(sqlx::query_as(AssertSqlSafe(text)), &conditions.values).fetch_all(pool).await?
        });
        let more = i64::try_from(rows.len()).unwrap_or(i64::MAX) > limit;
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let total = match query.cursor.as_deref().unwrap_or_default().is_empty() && !more {
            // All matches are on this page.
            true => i64::try_from(rows.len()).unwrap_or(i64::MAX),
            false => match found {
                // The search already counted them.
                Some(Found::Many(many)) if alone => many,
                _ => self.count(&counted).await?,
            },
        };
        let next_cursor = rows.last().filter(|_| more).map(|(id, number, _)| write_cursor(*number, id));
        self.warm();
        let runs = rows.into_iter().filter_map(|(_, _, body)| RawValue::from_string(body).ok()).collect();
        Ok(Page { runs, next_cursor, total, counts })
    }

    async fn count(self: &Arc<Self>, conditions: &Conditions) -> Result<i64, Problem> {
        match self.totals.look(&conditions.key(), Instant::now()) {
            Known::New(count) => Ok(count),
            Known::Old(count) => {
                let (own, conditions) = (self.clone(), conditions.clone());
                tokio::spawn(async move { own.count_now(&conditions).await.is_ok() });
                Ok(count)
            }
            Known::Nothing => self.count_now(conditions).await,
        }
    }

    async fn count_now(&self, conditions: &Conditions) -> Result<i64, Problem> {
        let text = format!("SELECT COUNT(*) FROM runs{}", conditions.text());
        let begun = Instant::now();
        let count: i64 = on!(self, pool => {
            bound!(sqlx::query_scalar(AssertSqlSafe(text)), &conditions.values).fetch_one(pool).await?
        });
        self.totals.keep(conditions.key(), count, begun);
        Ok(count)
    }

    async fn count_by_status(self: &Arc<Self>) -> Result<BTreeMap<String, i64>, Problem> {
        match self.by_status.look("", Instant::now()) {
            Known::New(counts) => Ok(counts),
            Known::Old(counts) => {
                let own = self.clone();
                tokio::spawn(async move { own.count_by_status_now().await.is_ok() });
                Ok(counts)
            }
            Known::Nothing => self.count_by_status_now().await,
        }
    }

    async fn count_by_status_now(&self) -> Result<BTreeMap<String, i64>, Problem> {
        let begun = Instant::now();
        let counts: BTreeMap<String, i64> = self.statuses().await?.into_iter().collect();
        self.by_status.keep(String::new(), counts.clone(), begun);
        Ok(counts)
    }

    /// The row of a run.
    pub async fn get(&self, run: &str) -> Result<Option<RunRow>, Problem> {
        let body: Option<String> = on!(self, pool => {
            sqlx::query_scalar("SELECT body FROM runs WHERE id = $1").bind(run).fetch_optional(pool).await?
        });
        Ok(body.and_then(|body| serde_json::from_str(&body).ok()))
    }

    /// Folders of runs, most recently used first.
    pub async fn repos(&self, most: i64) -> Result<Vec<String>, Problem> {
        Ok(on!(self, pool => {
            sqlx::query_scalar("SELECT repo FROM runs GROUP BY repo ORDER BY MAX(updated) DESC LIMIT $1")
                .bind(most)
                .fetch_all(pool)
                .await?
        }))
    }

    /// Number of runs by status.
    pub async fn statuses(&self) -> Result<Vec<(String, i64)>, Problem> {
        Ok(on!(self, pool => {
            sqlx::query_as("SELECT status, COUNT(*) FROM runs GROUP BY status ORDER BY status").fetch_all(pool).await?
        }))
    }
}

/// The search terms.
fn words_of(query: &ListQuery) -> Vec<String> {
    let search = query.q.as_deref().unwrap_or_default().to_lowercase();
    let words = ralph_loop_protocol::display::text::head(&search, SEARCH_MAX).split_whitespace().take(8);
    words.map(str::to_owned).collect()
}

fn write_cursor(number: f64, id: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{:016x}{id}", number.to_bits()))
}

fn read_cursor(text: &str) -> Result<(f64, String), Problem> {
    let wrong = || {
        Problem::bad("`cursor` is none that this server has given").hint("leave it out for the first page")
    };
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    let (number, id) = text.split_at_checked(16).ok_or_else(wrong)?;
    let number = f64::from_bits(u64::from_str_radix(number, 16).map_err(|_| wrong())?);
    if number.is_finite() { Ok((number, id.to_owned())) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_went_and_others_are_refused() {
        let cursor = write_cursor(1_763_000_000_123.0, "20261117-1");
        assert_eq!(read_cursor(&cursor).unwrap(), (1_763_000_000_123.0, "20261117-1".to_owned()));
        for wrong in ["", "!", "aGVsbG8", "////", &write_cursor(f64::NAN, "x")] {
            assert!(read_cursor(wrong).is_err(), "{wrong}");
        }
    }
}
