"""Configuration in, a working session out: the one place that knows both ports and adapters."""

import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from secrets import token_hex

from msgspec.structs import replace

from lamina.engine.hooks import Hooks
from lamina.engine.session import Session, start_entry
from lamina.errors import UsageError
from lamina.ports import Clock, JournalStore, TargetBook, WorkspaceSource
from lamina.providers.book import DEFAULT_TARGET, load_book
from lamina.stores.jsonl import JsonlStore, file_stem
from lamina.text import escape_content, render_project
from lamina.values.envelope import LIBRARY, Options, SystemPart
from lamina.values.item import MEDIUM, Attachment, Item, Shape, Wanted
from lamina.values.message import ToolDefinition
from lamina.values.settings import Settings
from lamina.workspace.folder import FolderWorkspace


class SystemClock:
    def now(self) -> float:
        return time.time()


def attach(
    what: str | Item,
    *,
    priority: int = MEDIUM,
    essential: bool = False,
    shape: Shape = "attached",
) -> Wanted:
    """A path or an item with what it is worth: `session.prepare(..., attach=[attach("a.md",
    essential=True)])`. Priority numbers: essential 0, high 3, medium 5, low 10; the higher number
    goes first when room is short."""
    if priority < 0:
        raise UsageError(f"priority {priority!r} is below 0, the number of essentials")
    return Wanted(what=what, priority=priority, essential=essential, shape=shape)


def data_folder() -> Path:
    """Where sessions and what belongs to them are kept: LAMINA_DATA, or where the platform wants
    such things."""
    if given := os.environ.get("LAMINA_DATA"):
        return Path(given)
    from platformdirs import user_data_path

    return user_data_path("lamina", appauthor=False)


def default_store(workspace: str | os.PathLike[str] | WorkspaceSource | None = None) -> JsonlStore:
    """The sessions of a workspace, in a folder of their own."""
    if workspace is None or isinstance(workspace, str | os.PathLike):
        root = Path(workspace or ".").resolve()
        digest = hashlib.sha256(str(root).encode("utf-8", "surrogatepass")).hexdigest()
        return JsonlStore(data_folder() / f"{file_stem(root.name)[:60]}-{digest[:12]}")
    return JsonlStore(data_folder() / file_stem(workspace.name))


async def open_session(
    session: str | None = None,
    *,
    system: str | Sequence[tuple[str, str]] = "",
    project: str | None = None,
    project_context: str | None = None,
    memory: str | None = None,
    tools: Iterable[ToolDefinition] | None = None,
    always: Iterable[Item] | None = None,
    target: str | None = None,
    workspace: str | os.PathLike[str] | WorkspaceSource | None = None,
    settings: Settings | None = None,
    options: Options | None = None,
    store: JournalStore | None = None,
    book: TargetBook | None = None,
    clock: Clock | None = None,
    hooks: Hooks | None = None,
) -> Session:
    """Opens a session: a new one, or one that `store` holds under the id `session`.

    `system` is L1: one text, or named parts in order. `always` are rules, references and notes
    that apply to every turn. `workspace` is the folder that attached paths are read from, the
    current one by default. `target` is `provider:model`. Without a `store`, sessions are kept as
    files under the user's data folder (LAMINA_DATA), one folder per workspace.

    Raises:
        SessionBusy: the session is open elsewhere.
    """
    book = book or load_book()
    clock = clock or SystemClock()
    source: WorkspaceSource = (
        FolderWorkspace(workspace or ".")
        if workspace is None or isinstance(workspace, str | os.PathLike)
        else workspace
    )
    store = store or default_store(workspace)
    chosen = settings or Settings()
    parts = _system_parts(system, project, project_context, memory)
    if known := bool(session and await store.has(session)):
        opened = await store.open(session or "")
    else:
        name = target or chosen.target or os.environ.get("LAMINA_TARGET") or DEFAULT_TARGET
        book.find(name)
        header = start_entry(
            session or token_hex(8),
            clock.now(),
            system=parts,
            tools=tuple(tools or ()),
            options=options or Options(),
            settings=replace(chosen, target=name),
            workspace=source.name,
        )
        opened = await store.create(header)
    included = None if always is None and known else always or ()
    return Session(
        opened,
        store=store,
        book=book,
        clock=clock,
        workspace=source,
        always=None
        if included is None
        else [Attachment(item=item, include="always") for item in included],
        hooks=hooks,
    )


def _system_parts(
    system: str | Sequence[tuple[str, str]],
    project: str | None,
    project_context: str | None,
    memory: str | None,
) -> tuple[SystemPart, ...]:
    named = [("system", system)] if isinstance(system, str) else list(system)
    # Most volatile last: a change in memory must not move the project.
    named.append(("project", render_project("", project, project_context)))
    if memory and memory.strip():
        named.append(
            ("memory", f"<saved_memories>\n{escape_content(memory.strip())}\n</saved_memories>")
        )
    parts = tuple(SystemPart(name=name, text=text) for name, text in named if text.strip())
    for part in parts:
        if part.name == LIBRARY:
            raise UsageError(f"the system part {LIBRARY!r} is reserved for the library")
    return parts
