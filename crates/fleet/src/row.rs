//! Reading structs from rows. The derive of `sqlx` would compile its macros for the host, and every database they know.

/// Reads the named fields of a struct from the columns of the same names.
macro_rules! from_row {
    ($name:ident: $($field:ident),+) => {
        impl sqlx::FromRow<'_, sqlx::postgres::PgRow> for $name {
            fn from_row(row: &sqlx::postgres::PgRow) -> Result<Self, sqlx::Error> {
                Ok(Self { $($field: sqlx::Row::try_get(row, stringify!($field))?),+ })
            }
        }
    };
}
