"""The API as OpenAPI 3.1, made from the table of routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertsmith import __version__
from bertsmith.serve.failures import FailureKind
from bertsmith.serve.routes import Route

JSON = "application/json"


def describe(routes: Mapping[str, Mapping[str, Route]]) -> dict[str, Any]:
    """Every route with its form, its examples and its errors."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for path, methods in routes.items():
        paths[path] = {
            method.lower(): _operation(route, schemas) for method, route in methods.items()
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "bertsmith", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    kinds = {kind.status for kind in FailureKind}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": f"{route.method.lower()}_{route.path.strip('/').replace('/', '_')}",
        "responses": {
            "200": {"description": "the answer"},
            **{str(status): {"description": "a fault"} for status in sorted(kinds)},
        },
        "security": [{"key": []}] if route.needs_key else [],
    }
    if "{model}" in route.path:
        operation["parameters"] = [
            {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}
        ]
    if route.form is not None:
        template = "#/components/schemas/{model}"
        schema = route.form.model_json_schema(ref_template=template)
        schemas |= schema.pop("$defs", {})
        schemas[route.form.__name__] = schema
        named = {f"example {n}": {"value": dict(one)} for n, one in enumerate(route.examples, 1)}
        content: dict[str, Any] = {"schema": {"$ref": template.format(model=route.form.__name__)}}
        if named:
            content["examples"] = named
        operation["requestBody"] = {"required": True, "content": {JSON: content}}
    return operation
