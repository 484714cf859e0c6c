"""Checks JSON Schemas of tools, and arguments against them.

Law: a schema is untrusted. Nothing is fetched for it, none of its regular expressions is run (they
are another dialect, and could run forever), and every problem with it is reported in words, never
raised.

Private: see `lamina` for what is public.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

# The maximum number of problems reported to a model at once, and of characters in each.
_MAX = 3
_LONGEST = 300
# Below these keys there is data, in which `$ref` has no special meaning.
_DATA = {"const", "default", "enum", "example", "examples"}


def check_schema(schema: Any) -> str | None:
    """Return what is wrong with a schema, if anything. Its draft is given by `$schema`, by default
    2020-12."""
    from jsonschema import FormatChecker, SchemaError

    if not isinstance(schema, Mapping):
        return f"a schema is an object, not {_kind(schema)}"
    if not isinstance(schema.get("$schema", ""), str):
        return "`$schema` is not text"
    try:
        # No format checks: `pattern` is in ECMA's dialect, which Python cannot check.
        _draft(schema).check_schema(schema, format_checker=FormatChecker(formats=()))
        return next(_unresolved(schema), None)
    except SchemaError as error:
        return f"at {_path(error.absolute_path)}: {_short(error.message)}"
    except RecursionError:
        return "it is nested too deep"


def check_arguments(schema: Mapping[str, Any], arguments: Any) -> str | None:
    """Return what is wrong with arguments by a schema, with the path of each wrong value; None if
    they are valid."""
    from jsonschema.exceptions import best_match
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    if problem := check_schema(schema):
        return f"the tool's own schema cannot be used: {problem}"
    validator = _without_patterns(_draft(schema))(schema, registry=Registry())
    try:
        errors = list(islice(validator.iter_errors(arguments), _MAX))
        # If all alternatives fail, the one that came closest is the most useful.
        nearest = [best_match([error]) or error for error in errors]
    except Unresolvable as error:
        return f"the tool's own schema cannot be used: {error.ref!r} refers to nothing in it"
    except RecursionError:
        return "the tool's own schema cannot be used: it refers to itself without end"
    lines = (f"{_path(error.absolute_path)}: {_short(error.message)}" for error in nearest)
    return "; ".join(dict.fromkeys(lines)) or None


def _draft(schema: Mapping[str, Any]) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    return validator_for(schema, default=Draft202012Validator)


def _without_patterns(draft: Any) -> Any:
    from jsonschema.validators import extend

    def additional(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[Any]:
        # The patterns would have to decide which properties are additional.
        if "patternProperties" not in schema:
            yield from draft.VALIDATORS["additionalProperties"](validator, rule, instance, schema)

    own = {"additionalProperties": additional} if "additionalProperties" in draft.VALIDATORS else {}
    ignored_keywords = ("pattern", "patternProperties", "unevaluatedProperties")
    return extend(draft, {**dict.fromkeys(ignored_keywords, _ignore), **own})


def _ignore(*_: Any) -> None:
    return None


def _unresolved(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield references that lead outside the schema or nowhere."""
    from referencing import Registry
    from referencing.exceptions import NoSuchResource, Unresolvable
    from referencing.jsonschema import DRAFT202012, specification_with

    try:
        specification = specification_with(schema.get("$schema", ""), default=DRAFT202012)
        resource = specification.create_resource(schema)
        resolver = (
            Registry().with_resource(resource.id() or "", resource).resolver_with_root(resource)
        )
    except (NoSuchResource, Unresolvable, ValueError, TypeError, AttributeError) as error:
        yield f"its references cannot be read: {_short(str(error))}"
        return
    for ref in _references(schema):
        try:
            resolver.lookup(ref)
        except (Unresolvable, ValueError, LookupError, TypeError, AttributeError):
            yield f"{_short(ref)!r} refers to nothing in it, and nothing is fetched"


def _references(value: Any, *, inside: bool = False) -> Iterator[str]:
    match value:
        case Mapping():
            if inside and isinstance(value.get("$id"), str):
                return  # another document, with addresses of its own
            if isinstance(ref := value.get("$ref"), str):
                yield ref
            for key, inner in value.items():
                if key not in _DATA:
                    yield from _references(inner, inside=True)
        case list() | tuple():
            for inner in value:
                yield from _references(inner, inside=True)


def _path(steps: Any) -> str:
    """Return a path such as `items[2].name`; the path of the whole is `arguments`."""
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return f"`{_short(path.removeprefix('.'))}`" if path else "arguments"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", str: "text", list: "a list", tuple: "a list"}
    return names.get(type(value), "a number")
