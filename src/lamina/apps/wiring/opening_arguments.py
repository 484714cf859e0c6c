"""What a session is opened with: the words that `open_session` and its like take, as types and as a
record.

Law: a word that nobody knows is refused before anything is read or written.
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
    """What `open_agent` and `open_plan` take besides their own words. `open_session` tells what
    each of them means."""

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
    """What `open_session`, `open_chat` and `open_qa` take; `open_session` tells what each of them
    means."""

    tools: Iterable[ToolDefinition] | None


class OpeningArguments(Struct, frozen=True, kw_only=True):
    """What a caller gave, by the words of `SessionOpening`."""

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
        """Who is to be asked from now on, if anybody was named."""
        return self.target or (self.settings.target if self.settings else "") or None

    @property
    def loosens(self) -> bool:
        """Whether a person said outright how often they want to be asked."""
        policy = Settings().ask_before_tools
        return self.settings is not None and self.settings.ask_before_tools != policy


def takes(words: type) -> Callable[[F], F]:
    """Lets `help()` show the words of a `TypedDict` that a function takes as `**opening`, one by
    one with their defaults."""
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
    """Refuses words that a function does not take.

    Raises:
        TypeError: one of them, with the known one that is nearest to it.
    """
    name = getattr(function, "__name__", "open_session")
    require_known(name, inspect.signature(function).parameters, opening)


def require_port(value: object, word: str, method: str, *, or_function: bool = False) -> None:
    """Refuses what is given as `word` unless it is an object with that method, or where that is
    taken a function; None is nothing.

    Raises:
        UsageError: it is of another kind.
    """
    if value is None or (or_function and callable(value) and not isinstance(value, type)):
        return
    if isinstance(value, type) or not callable(getattr(value, method, None)):
        wanted = f"an object with an async method {method!r}"
        wanted += " or a function" if or_function else ""
        hint = "; give an instance of the class" if isinstance(value, type) else ""
        raise UsageError(f"{word} is {value!r}, and has to be {wanted}{hint}")
