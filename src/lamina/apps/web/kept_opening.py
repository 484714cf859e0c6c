"""How a session of the web app is opened: the choices made at its start, stored so that it is
always opened the same way, and the notices shown without a terminal.

Laws: the choices are a journal entry that no model ever sees; a session without one is opened
with the defaults. Opening a session downloads nothing and trusts nothing; both have pages of
their own.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from lamina.apps.views.installed_models import path_of_model
from lamina.apps.views.session_options import Mode, SessionOptions
from lamina.apps.wiring.file_tools import FILE_TOOLS
from lamina.core.journal import Journal, walk_back
from lamina.core.values.entry import PLAN, CustomEntry, Entry, RequestEntry
from lamina.engine.runners.citations import SEARCHED
from lamina.engine.session.session import Session
from lamina.errors import ModelMissing

if TYPE_CHECKING:
    from lamina.apps.wiring.trust_lookup import FolderTrust


OPENING = "lamina.opening"
# It is written when the session starts; looking further would mean reading all of it.
_WITHIN = 64


class KeptOpening(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Choices made when a session starts that are not settings."""

    mode: Mode = "agent"
    files: bool = False
    web: str | None = None
    project: str | None = None

    def options(self, workspace: Path, session: str) -> SessionOptions:
        """Return the options to open the session again; the session knows its agent."""
        return SessionOptions(
            workspace=workspace, session=session, mode=self.mode, files=self.files,
            web_search=self.web,
        )  # fmt: skip


async def keep_opening(session: Session, opening: KeptOpening) -> None:
    """Record the choices, unless they are the defaults."""
    if opening != KeptOpening():
        await session.add_custom_entry(OPENING, msgspec.to_builtins(opening))


def read_opening(journal: Journal) -> KeptOpening:
    """Return the recorded choices; without a record, infer them from the last requests."""
    kept = _find(islice(journal.entries.values(), _WITHIN))
    return kept or _infer(walk_back(journal.entries, journal.leaf, limit=_WITHIN))


def _find(entries: Iterable[Entry]) -> KeptOpening | None:
    opening: KeptOpening | None = None
    for entry in entries:
        if isinstance(entry, CustomEntry) and entry.kind == OPENING:
            opening = _read(entry.data) or opening
    return opening


def _infer(latest: Sequence[Entry]) -> KeptOpening:
    """Infer how another app opened a session: without the tools it had, its prefix would
    change."""
    requests = [entry for entry in latest if isinstance(entry, RequestEntry)]
    kinds = {entry.kind: entry.data for entry in latest if isinstance(entry, CustomEntry)}
    if PLAN in kinds:
        return KeptOpening(mode="plan", files=_offered_files(requests))
    searched = kinds.get(SEARCHED)
    if isinstance(searched, dict) and "query" not in searched:
        return KeptOpening(mode="qa")
    return KeptOpening(files=_offered_files(requests))


def _offered_files(requests: Sequence[RequestEntry]) -> bool:
    names = {tool.name for tool in requests[-1].context.tools} if requests else set()
    return names.issuperset(FILE_TOOLS)


def _read(data: Any) -> KeptOpening | None:
    try:
        return msgspec.convert(data, KeptOpening)
    except msgspec.ValidationError:
        return None


class KeptNotices:
    """Collects notices for the code that opens the session."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    async def fetch_model(self, name: str) -> None:
        try:
            path_of_model(name)
        except ModelMissing as error:
            raise ModelMissing(
                f"the model {name} is not on this machine; download it under Models"
            ) from error

    async def agree(self, folder: "FolderTrust") -> bool:
        self.lines.append(folder.notice())
        return False

    def index_progress(
        self,
        action: str,  # noqa: ARG002
        things: str,  # noqa: ARG002
        *,
        at_most: bool = False,  # noqa: ARG002
    ) -> Callable[[int, int], None]:
        return lambda done, total: None  # noqa: ARG005
