"""A function's parameters as a JSON Schema, and a model's arguments as the function takes them.

Law: the schema promises exactly what `convert` accepts, except that a value of the wrong JSON type
("5" for a number) is also accepted if its meaning is clear.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType

from lamina.adapters.tools.docstrings import parameter_texts
from lamina.errors import UsageError

_REFERENCE = "#/$defs/"
_PLAIN = (str, int, float, bool, type(None))


class Parameters:
    """The parameters of a function."""

    def __init__(self, schema: dict[str, Any], shape: type[Struct]) -> None:
        self.schema = schema
        self._shape = shape

    def convert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them; missing ones are left to its defaults.

        Raises:
            msgspec.ValidationError: the arguments do not fit.
        """
        values = dict(arguments)
        try:
            value = msgspec.convert(values, self._shape, str_keys=True)
        except msgspec.ValidationError:
            try:
                value = msgspec.convert(values, self._shape, str_keys=True, strict=False)
            except msgspec.ValidationError:
                value = None
            if value is None:
                raise  # the error of the strict attempt
        fields = {name: getattr(value, name) for name in self._shape.__struct_fields__}
        return {name: field for name, field in fields.items() if field is not UNSET}


def read_parameters(function: Callable[..., Any], name: str) -> Parameters:
    """The parameters of a function, without those that a `functools.partial` has filled.

    Raises:
        UsageError: one of them cannot be given by name, or not as JSON.
    """
    try:
        signature = inspect.signature(function)
        hints = get_type_hints(_find_annotated(function), include_extras=True)
    except (NameError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"tool {name!r}: its signature cannot be read: {error}") from error
    defaults = function.keywords if isinstance(function, partial) else {}
    parameters = [
        parameter for parameter in signature.parameters.values() if parameter.name not in defaults
    ]
    texts = parameter_texts(inspect.getdoc(function))
    fields: list[Any] = []
    for parameter in parameters:
        kind = _kind(parameter, hints, name)
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, kind))
        else:
            # The function applies its own default: a mutable one must not be copied here.
            fields.append((parameter.name, kind | UnsetType, UNSET))
        for text in _find_texts(kind)[:1]:
            texts[parameter.name] = text
    shape = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
    return Parameters(_schema(shape, parameters, texts), shape)


def _find_annotated(function: Any) -> Any:
    """What holds the annotations: for a callable object, its `__call__`."""
    while isinstance(function, partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _kind(parameter: inspect.Parameter, hints: Mapping[str, Any], name: str) -> Any:
    where = f"tool {name!r}, parameter {parameter.name!r}"
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL | inspect.Parameter.VAR_KEYWORD:
            raise UsageError(
                f"{where}: a model gives arguments by name, so *args and **kwargs "
                f"cannot be offered; name what it takes, or wrap it in a function that does"
            )
        case inspect.Parameter.POSITIONAL_ONLY:
            raise UsageError(
                f"{where}: a model gives arguments by name, and this one has none; "
                f"remove the '/' from its signature"
            )
    if parameter.name not in hints:
        raise UsageError(
            f"{where}: it has no annotation, so a model would not know what to give; "
            f"add one (typing.Any if it is to take anything)"
        )
    kind = hints[parameter.name]
    try:
        msgspec.json.schema(kind)
    except (TypeError, NameError) as error:
        raise UsageError(
            f"{where}: {_plain(kind)} cannot be given as JSON: {str(error).splitlines()[-1]}"
        ) from error
    return kind


def _plain(kind: Any) -> str:
    return kind.__qualname__ if isinstance(kind, type) else str(kind)


def _find_texts(kind: Any) -> list[str]:
    """The texts of `Annotated[..., "description"]`."""
    if get_origin(kind) is not Annotated:
        return []
    return [arg for arg in get_args(kind)[1:] if isinstance(arg, str)]


def _schema(
    shape: type[Struct], parameters: list[inspect.Parameter], texts: Mapping[str, str]
) -> dict[str, Any]:
    (root,), parts = msgspec.json.schema_components([shape], ref_template=_REFERENCE + "{name}")
    own = parts.pop(root["$ref"].removeprefix(_REFERENCE))
    definitions: dict[str, Any] = {}
    properties: dict[str, Any] = {
        name: _inline(part, parts, definitions) for name, part in own["properties"].items()
    }
    for parameter in parameters:
        about = properties[parameter.name]
        if text := texts.get(parameter.name):
            about.setdefault("description", text)
        if type(parameter.default) in _PLAIN:
            about.setdefault("default", parameter.default)
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if own.get("required"):
        schema["required"] = own["required"]
    return schema | ({"$defs": definitions} if definitions else {})


def _inline(value: Any, parts: Mapping[str, Any], definitions: dict[str, Any]) -> Any:
    """The schema with its references replaced by what they refer to, since not every provider
    follows them. Recursive parts stay references."""
    match value:
        case {"$ref": str(ref)}:
            name = ref.removeprefix(_REFERENCE)
            if name not in parts:
                return dict(value)
            rest = {key: part for key, part in value.items() if key != "$ref"}
            if _holds_itself(name, parts):
                if name not in definitions:
                    definitions[name] = {}
                    definitions[name] = _inline(parts[name], parts, definitions)
                return {"$ref": ref, **rest}
            return _inline(parts[name], parts, definitions) | rest
        case dict():
            return {key: _inline(part, parts, definitions) for key, part in value.items()}
        case list():
            return [_inline(part, parts, definitions) for part in value]
        case _:
            return value


def _holds_itself(name: str, parts: Mapping[str, Any]) -> bool:
    names: set[str] = set()
    todo = [name]
    while todo:
        for inner in _find_names(parts.get(todo.pop(), {})):
            if inner == name:
                return True
            if inner not in names:
                names.add(inner)
                todo.append(inner)
    return False


def _find_names(value: Any) -> list[str]:
    match value:
        case {"$ref": str(ref)}:
            return [ref.removeprefix(_REFERENCE)]
        case dict():
            return [name for part in value.values() for name in _find_names(part)]
        case list():
            return [name for part in value for name in _find_names(part)]
        case _:
            return []
