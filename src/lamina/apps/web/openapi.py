"""The API as an OpenAPI 3.1 document, generated from the routes and msgspec's schemas.

`python -m lamina.apps.web.openapi` prints it.
"""

import re
import sys
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import inspect

from lamina import __version__
from lamina.apps.web.http_answers import ErrorAnswer
from lamina.apps.web.routes import Route, all_routes

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_INNER = ("item_type", "key_type", "value_type")
_REFERENCE = "#/components/schemas/{name}"
_MEDIA = {
    "json": "application/json",
    "events": "text/event-stream",
    "file": "application/octet-stream",
}


def describe_api(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the document."""
    routes = tuple(routes)
    types: list[Any] = [ErrorAnswer]
    for route in routes:
        types += [kind for kind in (route.body, route.result) if kind not in (None, bytes)]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    # A type may occur several times, and not every type can be a key.
    by_type = list(zip(types, schemas, strict=True))

    def schema_of(kind: Any) -> dict[str, Any]:
        return next(schema for known, schema in by_type if known is kind or known == kind)

    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        place = _PARAMETER.sub(r"{\1}", route.path)
        paths.setdefault(place, {})[route.method.lower()] = _operation(route, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lamina", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": _require_written(components, routes),
            "securitySchemes": {
                "cookie": {"type": "apiKey", "in": "cookie", "name": "lamina"},
            },
        },
        "security": [{"cookie": []}],
    }


def _operation(route: Route, schema_of: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": route.summary}
    if route.form == "file":
        answer["content"] = {_MEDIA["file"]: {"schema": {"type": "string", "format": "binary"}}}
    elif route.result is not None:
        answer["content"] = {_MEDIA[route.form]: {"schema": schema_of(route.result)}}
    problem = {
        "description": "The request failed; `error.code` is stable.",
        "content": {"application/json": {"schema": schema_of(ErrorAnswer)}},
    }
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "x-right": route.right,
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": {str(route.status): answer, "default": problem},
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema_of(route.body)}},
        }
    return operation


def _operation_id(route: Route) -> str:
    words = re.findall(r"\w+", _PARAMETER.sub(r"by \1", route.path.removeprefix("/api/")))
    return "_".join((route.method.lower(), *words))


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(route.path)
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    (reference,), components = msgspec.json.schema_components(
        [route.query], ref_template=_REFERENCE
    )
    schema = components[reference["$ref"].rpartition("/")[2]]
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": field}
        for name, field in schema["properties"].items()
    ]


def _require_written(components: dict[str, Any], routes: Iterable[Route]) -> dict[str, Any]:
    """Mark every field that answers always contain as required. msgspec marks only the fields
    without a default, which is right for requests; answers contain all fields, unless their type
    omits defaults."""
    taken = _structs_in(route.body for route in routes)
    for kind in _structs_in(route.result for route in routes) - taken:
        component = components.get(kind.__name__, {})
        if "properties" in component and not kind.__struct_config__.omit_defaults:
            component["required"] = list(component["properties"])
    return {name: components[name] for name in sorted(components)}


def _structs_in(types: Iterable[Any]) -> set[Any]:
    """Return every Struct that values of these types may contain."""
    known: set[Any] = set()
    pile: list[Any] = [inspect.type_info(kind) for kind in types if kind is not None]
    while pile:
        info = pile.pop()
        if isinstance(info, inspect.StructType):
            if info.cls in known:
                continue
            known.add(info.cls)
            pile += [field.type for field in info.fields]
        for name in ("types", "item_types"):
            pile += getattr(info, name, ())
        pile += [getattr(info, name) for name in _INNER if getattr(info, name, None) is not None]
    return known


def main() -> None:
    document = describe_api(all_routes())
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")


if __name__ == "__main__":
    main()
