"""Python functions as tools.

Law: an error in a function is the result of its call; only a cancellation gets out. A function that
no model could call correctly is refused when it is registered, not when it is called.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, get_args, overload

import anyio
import anyio.to_thread
import msgspec

from lamina.adapters.tools.docstrings import first_paragraph
from lamina.adapters.tools.limits import (
    CALL_SECONDS,
    MOST_CHARACTERS,
    NO_RESULT,
    cut_output,
    fail,
    refuse_marks,
    say_seconds,
)
from lamina.adapters.tools.names import MOST_LETTERS, is_exposable
from lamina.adapters.tools.offered_tool import NO_SERVER, offer_tool
from lamina.adapters.tools.parameters import Parameters, read_parameters
from lamina.core.codec import canonical_bytes
from lamina.core.text.keywords import require_known
from lamina.core.values.item import Include
from lamina.core.values.tool import OfferedTool, Permission, ToolOutput, Toolset, WithheldTool
from lamina.errors import InvalidText, UsageError

P = ParamSpec("P")
R = TypeVar("R")

# Functions that timed out still run in their threads, and must not use up everyone's.
_MOST_THREADS = 40


class FunctionTool(Generic[P, R]):
    """A function with its name and description for a model and a person. It can still be called
    like the plain function. One that `writes_marks` sees to it itself that the mark of a secret
    does not replace it; others are not called with one."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        permission: Permission = "required",
        include: Include = "always",
        timeout: float = CALL_SECONDS,
        max_characters: int = MOST_CHARACTERS,
        writes_marks: bool = False,
    ) -> None:
        own_name: str = name or getattr(function, "__name__", "") or type(function).__name__
        if not is_exposable(own_name):
            raise UsageError(
                f"{own_name!r} cannot be the name of a tool: models take up to {MOST_LETTERS} of "
                f"a-z, A-Z, 0-9, _ and -; give it another with tool(name=...)"
            )
        problem = ""
        if permission not in ("required", "free"):
            problem = f"permission is 'required' or 'free', not {permission!r}"
        elif include not in get_args(Include):
            problem = f"include is 'always', 'manual' or 'agent', not {include!r}"
        elif not timeout > 0:
            problem = f"timeout is a number of seconds above 0, not {timeout!r}"
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
        """Calls the function with arguments from a model."""
        if not self.writes_marks and (refusal := refuse_marks(arguments)):
            return refusal
        try:
            values = self._parameters.convert(arguments)
        except msgspec.ValidationError as error:
            return fail(f"Wrong arguments for {self.name!r}: {error}")
        with anyio.move_on_after(self.timeout) as scope:
            try:
                result = await self._invoke(values, threads)
            # Any error of a tool is its result, even `sys.exit()`.
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


# Words that `tool` takes, besides the function.
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
    max_characters: int = MOST_CHARACTERS,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a tool of a function, which can still be called. A person is asked before every call
    unless `permission="free"`. It is part of every request unless `include` says that it is
    searched for ("agent") or added by hand ("manual").

    Raises:
        UsageError: a model could not call it: a parameter has no annotation or one that JSON
            cannot carry, or its name is not valid.
        TypeError: a word is given that it does not take.
    """
    require_known("tool", _OPTIONS, options)
    if function is not None:
        return FunctionTool(function, **options)
    return functools.partial(FunctionTool, **options)


class FunctionTools:
    """Functions as a tool host, offered in the given order. Plain functions are wrapped with
    `tool`."""

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self._tools: dict[str, FunctionTool[..., Any]] = {}
        for function in functions:
            tool = function if isinstance(function, FunctionTool) else FunctionTool(function)
            if tool.name in self._tools:
                raise UsageError(
                    f"two functions are both called {tool.name!r}; give one of them another name "
                    f"with tool(name=...)"
                )
            self._tools[tool.name] = tool
        self._threads: anyio.CapacityLimiter | None = None

    async def toolset(self) -> Toolset:
        return Toolset(tools=tuple(tool.offered for tool in self._tools.values()))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        if name not in self._tools:
            return fail(f"There is no function {name!r}")
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(_MOST_THREADS)
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
    """Type and message; for a group, those of its members."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_say_error(exception) for exception in error.exceptions)
    message = str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
