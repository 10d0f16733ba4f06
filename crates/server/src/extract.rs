//! Queries and bodies, whose faults are told like all others.

use crate::problem::Problem;
use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// What was answered.
pub type Answer<T> = Result<T, Problem>;

/// The query of a request.
#[derive(Debug)]
pub struct Asked<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(value) = Query::<T>::from_request_parts(parts, state).await.map_err(|error| {
            Problem::bad(error.body_text()).hint("`/api/docs` lists what each request takes")
        })?;
        Ok(Self(value))
    }
}

/// The JSON body of a request.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let Json(value) = Json::<T>::from_request(request, state).await.map_err(|error| {
            Problem::new(error.status(), error.body_text()).hint("`/api/docs` lists what each request takes")
        })?;
        Ok(Self(value))
    }
}
