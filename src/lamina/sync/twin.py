"""Building blocks of the `lamina.sync` classes: the members of an async class, without `await`.

Law: a member has the signature and the documentation of its async twin, for type checkers and for
`help()`. Both are written once, there.
"""

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from functools import wraps
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Never,
    ParamSpec,
    Self,
    TypeVar,
    overload,
)

from lamina.sync.portal import Closable, HeldContext, Portal, portal

P = ParamSpec("P")
A = TypeVar("A")
C = TypeVar("C", bound=Closable)
F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
W = TypeVar("W", bound="Twin")

_AWAITED = re.compile(r"\b(?:async (?=with\b|for\b)|await )| await$", re.MULTILINE)


class Twin:
    """An object without `await`, and the async object that it stands for."""

    def __init__(self, portal: Portal, original: Any) -> None:
        self._portal = portal
        self._original = original


class Resource(Twin):
    """A twin that is closed when its block is left."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._portal.close(self._original.close)


def documented(original: Callable[..., Any], returns: Any = None) -> Callable[[F], F]:
    """Gives a function the name, parameters and documentation of its async twin; `returns` replaces
    the return type."""
    signature = inspect.signature(original)
    if returns is not None:
        signature = signature.replace(return_annotation=returns)

    def document(function: F) -> F:
        wraps(original)(function)
        # Anyone who unwrapped it to the async function would await the result.
        del function.__wrapped__  # type: ignore[attr-defined]
        function.__doc__ = _AWAITED.sub("", original.__doc__ or "")
        function.__signature__ = signature  # type: ignore[attr-defined]
        function.__annotations__ = original.__annotations__ | {
            "return": signature.return_annotation
        }
        return function

    return document


class Mirror(property, Generic[R]):
    """A property of the async object; with `in_loop`, it is read where nothing else runs at the
    same time."""

    def __init__(self, original: Callable[[Any], R], *, in_loop: bool = False) -> None:
        # Type checkers see a property of a class as its function.
        getter: Callable[[Any], R] = getattr(original, "fget", original)

        @documented(getter)
        def read(self: Twin) -> R:
            if in_loop:
                return self._portal.read(lambda: getter(self._original))
            return getter(self._original)

        super().__init__(read)

    if TYPE_CHECKING:

        @overload
        def __get__(self, twin: None, owner: type, /) -> Self: ...
        @overload
        def __get__(self, twin: Any, owner: type | None = None, /) -> R: ...
        def __get__(self, twin: Any, owner: type | None = None, /) -> Any: ...
        def __set__(self, twin: Any, value: Never, /) -> None: ...


def _returns(result: Callable[..., Any]) -> Any:
    return result if isinstance(result, type) else inspect.signature(result).return_annotation


def waits(
    method: Callable[Concatenate[Any, P], Awaitable[R]],
) -> Callable[Concatenate[Any, P], R]:
    """A method that waits until its async twin is done."""

    @documented(method)
    def call(self: Twin, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._portal.run(lambda: method(self._original, *args, **kwargs))

    return call


def reads(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A method that never waited, called where nothing else runs at the same time."""

    @documented(method)
    def call(self: Twin, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._portal.read(lambda: method(self._original, *args, **kwargs))

    return call


def closes(method: Callable[[Any], Awaitable[None]]) -> Callable[[Any], None]:
    """A method that an interruption does not leave half done."""

    @documented(method)
    def call(self: Twin) -> None:
        self._portal.close(lambda: method(self._original))

    return call


def gives(
    method: Callable[Concatenate[Any, P], Awaitable[A]], result: Callable[[Portal, A], R]
) -> Callable[Concatenate[Any, P], R]:
    """A method that waits and wraps its result for callers who do not await."""

    @documented(method, _returns(result))
    def call(self: Twin, /, *args: P.args, **kwargs: P.kwargs) -> R:
        value = self._portal.run(lambda: method(self._original, *args, **kwargs))
        return result(self._portal, value)

    return call


def renews(
    method: Callable[Concatenate[Any, P], Awaitable[Any]],
) -> Callable[Concatenate[W, P], W]:
    """A method that waits and returns another object of its class."""

    @documented(method, Self)
    def call(self: W, /, *args: P.args, **kwargs: P.kwargs) -> W:
        value = self._portal.run(lambda: method(self._original, *args, **kwargs))
        return type(self)(self._portal, value)

    return call


def copies(
    method: Callable[Concatenate[Any, P], Awaitable[Closable]],
) -> Callable[Concatenate[W, P], W]:
    """Like `renews`, for objects that have to be closed."""

    @documented(method, Self)
    def call(self: W, /, *args: P.args, **kwargs: P.kwargs) -> W:
        value = self._portal.open(lambda: method(self._original, *args, **kwargs))
        return type(self)(self._portal, value)

    return call


def streams(
    method: Callable[Concatenate[Any, P], AbstractAsyncContextManager[AsyncIterator[R]]],
    returns: Any,
) -> Callable[Concatenate[Any, P], AbstractContextManager[Iterator[R]]]:
    """A method that returns a block in which items are read as they arrive."""

    @documented(method, returns)
    @contextmanager
    def call(self: Twin, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Iterator[R]]:
        held = HeldContext(self._portal, lambda: method(self._original, *args, **kwargs))
        with held as items:
            yield held.items(items)

    return call


def opens(function: Callable[P, Awaitable[C]], result: Callable[[Portal, C], R]) -> Callable[P, R]:
    """A function that opens something that has to be closed."""

    @documented(function, _returns(result))
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        here = portal()
        return result(here, here.open(lambda: function(*args, **kwargs)))

    # It is defined in the module of the class it returns.
    call.__module__ = result.__module__
    return call
