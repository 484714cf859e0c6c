"""The arguments that a session is opened with, of `open_session` and similar functions, as types
and as a record.

Law: an unknown argument is refused before anything is read or written.
"""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

from msgspec import Struct

from lamina.apps.wiring.stores import StoreName
from lamina.core.ports import (
    Clock,
    Index,
    JournalStore,
    MemorySource,
    SpendLedger,
    Summarizer,
    SummaryJob,
    TargetBook,
    WebSource,
    WorkspaceSource,
)
from lamina.core.text.keywords import require_known
from lamina.core.values.agent import Trust
from lamina.core.values.envelope import Options
from lamina.core.values.item import Item
from lamina.core.values.message import ToolDefinition
from lamina.core.values.settings import Settings
from lamina.engine.sources.hooks import Hooks
from lamina.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


class AgentOpening(TypedDict, total=False):
    """The arguments that `open_agent` and `open_plan` accept in addition to their own; see
    `open_session` for their meaning."""

    agent: str | os.PathLike[str] | None
    system: str | Sequence[tuple[str, str]]
    project: str | None
    project_context: str | None
    memory: str | None
    always: Iterable[Item] | None
    target: str | None
    workspace: str | os.PathLike[str] | WorkspaceSource | None
    settings: Settings | None
    options: Options | None
    store: JournalStore | StoreName | None
    book: TargetBook | None
    clock: Clock | None
    hooks: Hooks | None
    summarizer: Summarizer | Callable[[SummaryJob], object] | None
    index: Index | None
    web: WebSource | None
    memory_file: str | os.PathLike[str] | MemorySource | None
    trust: Trust
    spend_ledger: SpendLedger | None


class SessionOpening(AgentOpening, total=False):
    """The arguments of `open_session`, `open_chat` and `open_qa`; see `open_session` for their
    meaning."""

    tools: Iterable[ToolDefinition] | None


class OpeningArguments(Struct, frozen=True, kw_only=True):
    """A caller's arguments, named as in `SessionOpening`."""

    agent: str | os.PathLike[str] | None = None
    system: str | Sequence[tuple[str, str]] = ""
    project: str | None = None
    project_context: str | None = None
    memory: str | None = None
    always: Iterable[Item] | None = None
    target: str | None = None
    workspace: str | os.PathLike[str] | WorkspaceSource | None = None
    settings: Settings | None = None
    options: Options | None = None
    store: JournalStore | StoreName | None = None
    book: TargetBook | None = None
    clock: Clock | None = None
    hooks: Hooks | None = None
    summarizer: Summarizer | Callable[[SummaryJob], object] | None = None
    index: Index | None = None
    web: WebSource | None = None
    memory_file: str | os.PathLike[str] | MemorySource | None = None
    trust: Trust = False
    spend_ledger: SpendLedger | None = None
    tools: Iterable[ToolDefinition] | None = None

    @property
    def named_target(self) -> str | None:
        """The target from now on, if the caller named one."""
        return self.target or (self.settings.target if self.settings else "") or None

    @property
    def loosens(self) -> bool:
        """Whether a person explicitly set how often they want to be asked."""
        policy = Settings().ask_before_tools
        return self.settings is not None and self.settings.ask_before_tools != policy


def takes(words: type) -> Callable[[F], F]:
    """Let `help()` show the keys of a `TypedDict` that a function accepts as `**opening`, as
    separate arguments with their defaults."""
    defaults = dict(
        zip(OpeningArguments.__struct_fields__, OpeningArguments.__struct_defaults__, strict=True)
    )
    rest = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name],
                          annotation=annotation)
        for name, annotation in words.__annotations__.items()
    ]  # fmt: skip

    def show(function: F) -> F:
        signature = inspect.signature(function)
        own = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        function.__signature__ = signature.replace(parameters=own + rest)  # type: ignore[attr-defined]
        return function

    return show


def require_opening(function: Callable[..., Any], opening: Mapping[str, object]) -> None:
    """Refuse arguments that a function does not accept.

    Raises:
        TypeError: names the unknown argument and the most similar known one.
    """
    name = getattr(function, "__name__", "open_session")
    require_known(name, inspect.signature(function).parameters, opening)


def require_port(value: object, word: str, method: str, *, or_function: bool = False) -> None:
    """Refuse a value for `word` unless it is None, an object with that method or, where allowed, a
    function.

    Raises:
        UsageError: the value is of another kind.
    """
    if value is None or (or_function and callable(value) and not isinstance(value, type)):
        return
    if isinstance(value, type) or not callable(getattr(value, method, None)):
        wanted = f"an object with an async method {method!r}"
        wanted += " or a function" if or_function else ""
        hint = "; give an instance of the class" if isinstance(value, type) else ""
        raise UsageError(f"{word} is {value!r}, but must be {wanted}{hint}")
