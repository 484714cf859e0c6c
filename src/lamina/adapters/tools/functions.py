"""Turns Python functions into tools: takes descriptions from docstrings, describes parameters as a
JSON Schema, and makes the calls.

Laws: an error in a function is the result of its call; only a cancellation propagates. A function
that no model could call correctly is refused when it is registered, not when it is called.
`convert` accepts exactly what the schema describes, and also values of the wrong JSON type ("5" for
a number) if their meaning is clear. Only the first paragraph and an `Args:` section of a docstring
are read; the rest is for people.
"""

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import (
    Annotated,
    Any,
    Generic,
    ParamSpec,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import anyio
import anyio.to_thread
import msgspec
from msgspec import UNSET, Struct, UnsetType

from lamina.adapters.tools.offered_tool import MAX_LETTERS, NO_SERVER, is_exposable, offer_tool
from lamina.adapters.tools.result_limits import (
    CALL_SECONDS,
    MAX_CHARACTERS,
    NO_RESULT,
    cut_output,
    fail,
    refuse_marks,
    say_seconds,
)
from lamina.core.codec import canonical_bytes
from lamina.core.text.keywords import require_known
from lamina.core.values.item import Include
from lamina.core.values.tool import OfferedTool, Permission, ToolOutput, Toolset, WithheldTool
from lamina.errors import InvalidText, UsageError

_SECTION = re.compile(r"(Args|Arguments|Parameters):\s*")
_PARAMETER = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")


def first_paragraph(doc: str | None) -> str:
    """Return the first paragraph on one line."""
    text = inspect.cleandoc(doc or "")
    paragraph = text.split("\n\n", 1)[0]
    lines = [line.strip() for line in paragraph.splitlines()]
    # A docstring may begin with its `Args:` section.
    return "" if lines and _SECTION.fullmatch(lines[0]) else " ".join(lines).strip()


def parameter_texts(doc: str | None) -> dict[str, str]:
    """Return the descriptions in the `Args:` section by parameter."""
    lines = inspect.cleandoc(doc or "").splitlines()
    start = next((at for at, line in enumerate(lines) if _SECTION.fullmatch(line)), None)
    if start is None:
        return {}
    words_by_name: dict[str, list[str]] = {}
    name, depth = "", 0
    for line in lines[start + 1 :]:
        indent = len(line) - len(line.lstrip())
        if line.strip() and not indent:
            break  # the next section
        depth = depth or indent
        match = _PARAMETER.fullmatch(line.strip()) if indent == depth else None
        if match:
            name = match[1]
            words_by_name[name] = [match[2]]
        elif name and line.strip():
            words_by_name[name].append(line.strip())
    return {name: " ".join(words).strip() for name, words in words_by_name.items()}


_REFERENCE = "#/$defs/"
_PLAIN = (str, int, float, bool, type(None))


class Parameters:
    """A function's parameters."""

    def __init__(self, schema: dict[str, Any], shape: type[Struct]) -> None:
        self.schema = schema
        self._shape = shape

    def convert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Convert arguments to the types that the function expects; missing ones keep their
        defaults.

        Raises:
            msgspec.ValidationError: the arguments do not match.
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
    """Return a function's parameters, except those filled by a `functools.partial`.

    Raises:
        UsageError: a parameter cannot be passed by name or as JSON.
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
            # The function applies its own default: a mutable default must not be copied here.
            fields.append((parameter.name, kind | UnsetType, UNSET))
        for text in _find_texts(kind)[:1]:
            texts[parameter.name] = text
    shape = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
    return Parameters(_schema(shape, parameters, texts), shape)


def _find_annotated(function: Any) -> Any:
    """Return the object that has the annotations: for a callable object, its `__call__`."""
    while isinstance(function, partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _kind(parameter: inspect.Parameter, hints: Mapping[str, Any], name: str) -> Any:
    where = f"tool {name!r}, parameter {parameter.name!r}"
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL | inspect.Parameter.VAR_KEYWORD:
            raise UsageError(
                f"{where}: a model passes arguments by name, so *args and **kwargs cannot be "
                f"offered; name the parameters, or wrap it in a function that does"
            )
        case inspect.Parameter.POSITIONAL_ONLY:
            raise UsageError(
                f"{where}: a model passes arguments by name, but this parameter is "
                f"positional-only; remove the '/' from the signature"
            )
    if parameter.name not in hints:
        raise UsageError(
            f"{where}: it has no annotation, so a model would not know what to pass; add one "
            f"(typing.Any to accept anything)"
        )
    kind = hints[parameter.name]
    try:
        msgspec.json.schema(kind)
    except (TypeError, NameError) as error:
        raise UsageError(
            f"{where}: {_plain(kind)} cannot be passed as JSON: {str(error).splitlines()[-1]}"
        ) from error
    return kind


def _plain(kind: Any) -> str:
    return kind.__qualname__ if isinstance(kind, type) else str(kind)


def _find_texts(kind: Any) -> list[str]:
    """Return the descriptions in `Annotated[..., "description"]`."""
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
    """Return the schema with references replaced by their targets, because some providers do not
    follow them. Recursive parts remain references."""
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


P = ParamSpec("P")
R = TypeVar("R")

# Functions that timed out still run in their threads, and must not use up threads needed elsewhere.
_MAX_THREADS = 40


class FunctionTool(Generic[P, R]):
    """A function with its name and description for models and people. It can still be called like
    the plain function. A function that `writes_marks` ensures itself that a mark never replaces the
    secret it stands for; other functions are not called with marks."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        permission: Permission = "required",
        include: Include = "always",
        timeout: float = CALL_SECONDS,
        max_characters: int = MAX_CHARACTERS,
        writes_marks: bool = False,
    ) -> None:
        own_name: str = name or getattr(function, "__name__", "") or type(function).__name__
        if not is_exposable(own_name):
            raise UsageError(
                f"{own_name!r} is not a valid tool name: models accept up to {MAX_LETTERS} of "
                f"a-z, A-Z, 0-9, _ and -; choose another with tool(name=...)"
            )
        problem = ""
        if permission not in ("required", "free"):
            problem = f"permission must be 'required' or 'free', not {permission!r}"
        elif include not in get_args(Include):
            problem = f"include must be 'always', 'manual' or 'agent', not {include!r}"
        elif not timeout > 0:
            problem = f"timeout must be a number of seconds above 0, not {timeout!r}"
        if problem:
            raise UsageError(f"tool {own_name!r}: {problem}")
        self.__name__ = own_name
        self.function = function
        self.name = own_name
        self.timeout = timeout
        self.max_characters = max_characters
        self.writes_marks = writes_marks
        self._parameters: Parameters = read_parameters(function, own_name)
        if description is None:
            description = first_paragraph(inspect.getdoc(function))
        schema = self._parameters.schema
        offer = offer_tool(NO_SERVER, own_name, description, schema, permission, include)
        if isinstance(offer, WithheldTool):
            raise UsageError(f"tool {own_name!r}: {offer.detail}")
        self.offered: OfferedTool = offer
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    async def run(
        self, arguments: Mapping[str, Any], threads: anyio.CapacityLimiter | None = None
    ) -> ToolOutput:
        """Call the function with arguments from a model."""
        if not self.writes_marks and (refusal := refuse_marks(arguments)):
            return refusal
        try:
            values = self._parameters.convert(arguments)
        except msgspec.ValidationError as error:
            return fail(f"Wrong arguments for {self.name!r}: {error}")
        with anyio.move_on_after(self.timeout) as scope:
            try:
                result = await self._invoke(values, threads)
            # Any error in a tool is its result, even `sys.exit()`.
            except (Exception, SystemExit) as error:  # noqa: BLE001
                return fail(_say_error(error), self.max_characters)
        if scope.cancelled_caught:
            return fail(
                f"{self.name!r} timed out after {say_seconds(self.timeout)}"
                + ("" if self._is_async else "; it may still be running")
            )
        return _output(self.name, result, self.max_characters)

    @property
    def _is_async(self) -> bool:
        inner: Any = self.function
        while isinstance(inner, functools.partial):
            inner = inner.func
        return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(
            getattr(inner, "__call__", None)  # noqa: B004
        )

    async def _invoke(
        self, values: Mapping[str, Any], threads: anyio.CapacityLimiter | None
    ) -> object:
        function: Callable[..., Any] = self.function
        if self._is_async:
            return await function(**values)
        result = await anyio.to_thread.run_sync(
            functools.partial(function, **values), abandon_on_cancel=True, limiter=threads
        )
        # A plain function may return the awaitable of an async one.
        return await result if isinstance(result, Awaitable) else result


# The keyword arguments of `tool`.
_OPTIONS = tuple(inspect.signature(FunctionTool).parameters)[1:]


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    permission: Permission = "required",
    include: Include = "always",
    timeout: float = CALL_SECONDS,
    max_characters: int = MAX_CHARACTERS,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Turn a function into a tool; it can still be called directly. A person is asked before every
    call unless `permission="free"`. The tool is part of every request unless `include` says that it
    is searched for ("agent") or added by hand ("manual").

    Raises:
        UsageError: a model could not call it: its name is invalid, or a parameter has no annotation
            or one that JSON cannot represent.
        TypeError: a keyword argument is unknown.
    """
    require_known("tool", _OPTIONS, options)
    if function is not None:
        return FunctionTool(function, **options)
    return functools.partial(FunctionTool, **options)


class FunctionTools:
    """A tool host that offers functions in the given order. Plain functions are wrapped with
    `tool`."""

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self._tools: dict[str, FunctionTool[..., Any]] = {}
        for function in functions:
            tool = function if isinstance(function, FunctionTool) else FunctionTool(function)
            if tool.name in self._tools:
                raise UsageError(
                    f"two functions are called {tool.name!r}; rename one of them with "
                    f"tool(name=...)"
                )
            self._tools[tool.name] = tool
        self._threads: anyio.CapacityLimiter | None = None

    async def toolset(self) -> Toolset:
        return Toolset(tools=tuple(tool.offered for tool in self._tools.values()))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        if name not in self._tools:
            return fail(f"There is no function {name!r}")
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(_MAX_THREADS)
        return await self._tools[name].run(arguments, self._threads)


def _output(name: str, result: object, limit: int) -> ToolOutput:
    match result:
        case str():
            return cut_output(result, limit)
        case None:
            return ToolOutput(text=NO_RESULT)
        case bytes() | bytearray() | memoryview():
            return fail(
                f"{name!r} gave {len(result):,} bytes, which are no text; it has to return text "
                f"or what JSON can carry"
            )
    try:
        return cut_output(canonical_bytes(result).decode(), limit)
    except (TypeError, ValueError, OverflowError, RecursionError, InvalidText) as error:
        return fail(
            f"{name!r} gave a {type(result).__name__}, which JSON cannot carry ({error}); it has "
            f"to return text or what JSON can carry"
        )


def _say_error(error: BaseException) -> str:
    """Return an error's type and message; for a group, those of its members."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_say_error(exception) for exception in error.exceptions)
    message = str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
