//! The OpenAPI document, derived from route types. Compiled only with feature `schema`; the program embeds
//! the generated file in `schemas/`.

use crate::routes::{Operation, operations, schemas};
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

pub fn document() -> Value {
    let mut answers = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.contract = Contract::Serialize;
        })
        .into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations() {
        let mut asked = SchemaSettings::draft2020_12()
            .with(|settings| {
                settings.inline_subschemas = true;
                settings.contract = Contract::Deserialize;
            })
            .into_generator();
        let types = schemas::of(operation, &mut asked, &mut answers);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = describe(operation, &types);
    }
    let mut components = Map::from_iter(answers.take_definitions(true));
    components.insert("Problem".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ralph",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What `ralph serve` answers. Errors are problems with a hint; times are RFC 3339; money is USD.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }, { "session": [] }],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "session": { "type": "apiKey", "in": "cookie", "name": "ralph_session" },
            },
        },
    })
}

fn describe(operation: &Operation, types: &schemas::Types) -> Value {
    let name: Vec<&str> = operation
        .path
        .split(['/', '{', '}'])
        .filter(|part| !part.is_empty() && *part != "api" && *part != "v1")
        .collect();
    let mut value = json!({
        "operationId": format!("{}_{}", operation.method, name.join("_")),
        "summary": operation.summary,
        "responses": { "default": {
            "description": "what went wrong",
            "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
        } },
    });
    if operation.role.is_empty() {
        value["security"] = json!([]);
    } else {
        value["x-role"] = operation.role.into();
    }
    let mut parameters: Vec<Value> = operation
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| {
            let kind = if name == "iteration" { "integer" } else { "string" };
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": kind } })
        })
        .collect();
    if let Some(query) = &types.query {
        for (name, schema) in query["properties"].as_object().into_iter().flatten() {
            parameters.push(json!({ "name": name, "in": "query", "required": false, "schema": schema }));
        }
    }
    if !parameters.is_empty() {
        value["parameters"] = parameters.into();
    }
    if let Some(body) = &types.body {
        value["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": body } } });
    }
    let answer = match &types.answer {
        Some(schema) => {
            json!({ "description": "the answer", "content": { "application/json": { "schema": schema } } })
        }
        None => json!({ "description": "the answer" }),
    };
    value["responses"][types.status] = answer;
    value
}

fn problem() -> Value {
    json!({
        "type": "object",
        "description": "What went wrong, and what to do about it.",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string" },
            "hint": { "type": ["string", "null"] },
        },
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_document_is_made_from_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/openapi.json");
        let text = serde_json::to_string_pretty(&super::document()).unwrap() + "\n";
        assert!(std::fs::read_to_string(path).unwrap() == text, "run scripts/generate");
    }
}
