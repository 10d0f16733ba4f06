//! Extractors for queries and bodies that report errors as problems.

use crate::http::problem::Problem;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use serde::de::DeserializeOwned;

pub type Answer<T> = Result<T, Problem>;

#[derive(Debug)]
pub struct QueryParams<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(value) = Query::<T>::from_request_parts(parts, state).await.map_err(|error| {
            Problem::bad(error.body_text()).hint("`/api/docs` lists what each request takes")
        })?;
        Ok(Self(value))
    }
}

#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        const HINT: &str = "`/api/docs` lists what each request takes";
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let wrong = "the body must come as `Content-Type: application/json`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, wrong).hint(HINT));
        }
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|error| Problem::new(error.status(), error.body_text()).hint(HINT))?;
        // Serde would accept a list as the fields in order.
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|first| *first == b'[') {
            return Err(Problem::refused("the body is a list, not an object").hint(HINT));
        }
        let Json(value) = Json::<T>::from_bytes(&bytes)
            .map_err(|error| Problem::new(error.status(), error.body_text()).hint(HINT))?;
        Ok(Self(value))
    }
}
