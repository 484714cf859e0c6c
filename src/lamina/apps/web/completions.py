"""`@` in a message of the web app: what can follow it (files, folders, tags, rules and
references), and what a message finally attaches.

Law: typing never waits: completions come from the last lookup, which is refreshed in the
background.
"""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from anyio import move_on_after
from anyio.to_thread import run_sync
from msgspec import Struct

from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.views.mentions import Paths, find_mentions, match, mention, mention_guide
from lamina.apps.views.note_problems import count_tags
from lamina.apps.views.session_options import PromptOptions
from lamina.core.values.agent import Guide
from lamina.core.values.item import kind_of_file
from lamina.core.values.note import Catalogue
from lamina.engine.session.session import Session
from lamina.engine.sources.attachments import Attachable

CompletionKind = Literal["file", "folder", "tag", "rule", "reference"]
_GUIDES = ("rule", "ref", "reference")
# How many of each other kind are listed among the files.
_SOME = 5


class Completion(Struct, frozen=True, kw_only=True):
    """Something that can follow an `@`: `insert` is the text to type, with its mark; `attach` is
    what is attached, empty for a rule or a reference, which is named in the text."""

    kind: CompletionKind
    label: str
    detail: str
    insert: str
    attach: str


class Completions(Struct, frozen=True, kw_only=True):
    """Completions, best first."""

    query: str
    items: tuple[Completion, ...]


class CompletionList:
    """The completions of a folder."""

    def __init__(self, workspace: FolderWorkspace) -> None:
        self._workspace = workspace
        self._paths = Paths(workspace.folder)
        self._catalogue: Catalogue | None = None
        self._tags: tuple[tuple[str, int], ...] = ()
        self._titles: dict[str, str] = {}
        self._at = float("-inf")
        self._is_reading = False

    async def match(self, text: str, guides: Sequence[Guide], limit: int) -> tuple[Completion, ...]:
        """Return what matches the text typed so far."""
        await self._look()
        paths = await run_sync(self._paths.all)
        text = text.removeprefix("@").strip('"')
        if text.startswith("#"):
            return tuple(self._match_tags(text[1:]))[:limit]
        kind, colon, name = text.casefold().partition(":")
        if colon and kind in _GUIDES:
            wanted = "rule" if kind == "rule" else "reference"
            own = [guide for guide in guides if guide.kind == wanted]
            return tuple(_match_guides(own, name))[:limit]
        found = [*_match_guides(guides, text)][:_SOME] if text else []
        found += [*_match_folders(paths, text)][:_SOME]
        found += [self._file(path) for path in match(paths, text, limit)]
        found += [*self._match_tags(text)][:_SOME] if text else []
        exact = [item for item in found if _begins(item.label, text)]
        rest = [item for item in found if not _begins(item.label, text)]
        return tuple((exact + rest)[:limit])

    async def _look(self) -> None:
        """Look up tags and titles again if the last lookup is some seconds old. Reading all notes
        for the first time takes long; until then only paths are offered."""
        if self._is_reading or time.monotonic() - self._at < _FRESH_S:
            return
        self._is_reading = True
        with move_on_after(_PATIENCE_S):
            await run_sync(self._read, abandon_on_cancel=True)

    async def prepare(self) -> None:
        """Look up tags and titles now, however long that takes."""
        await run_sync(self._read)

    def _read(self) -> None:
        try:
            catalogue = self._workspace.read_catalogue()
            if catalogue is not self._catalogue:
                self._tags = tuple(count_tags(catalogue))
                self._titles = {note.path: note.title for note in catalogue.notes}
                self._catalogue = catalogue
        finally:
            self._at = time.monotonic()
            self._is_reading = False

    def _file(self, path: str) -> Completion:
        title = self._titles.get(path, "")
        detail = title if title and title not in path else kind_of_file(path)
        return Completion(kind="file", label=path, detail=detail, insert=mention(path), attach=path)

    def _match_tags(self, text: str) -> Iterable[Completion]:
        needle = text.casefold()
        for tag, count in self._tags:
            if needle in tag.casefold():
                yield Completion(
                    kind="tag", label=f"#{tag}", detail=f"{count:,} note{'s' * (count > 1)}",
                    insert=mention(f"#{tag}"), attach=f"tag:{tag}",
                )  # fmt: skip


_FRESH_S = 10.0
# How long typing waits for a refresh.
_PATIENCE_S = 0.02


def _begins(label: str, text: str) -> bool:
    name = label.rstrip("/").rpartition("/")[2].removeprefix("#")
    return name.casefold().startswith(text.casefold())


def _match_folders(paths: Sequence[str], text: str) -> Iterable[Completion]:
    counts: dict[str, int] = {}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder:
            counts[folder] = counts.get(folder, 0) + 1
            folder = folder.rpartition("/")[0]
    needle = text.casefold().rstrip("/")
    fitting = [folder for folder in counts if needle in folder.casefold()]
    for folder in sorted(fitting, key=lambda folder: (folder.count("/"), folder)):
        count = counts[folder]
        yield Completion(
            kind="folder", label=f"{folder}/", detail=f"{count:,} file{'s' * (count > 1)}",
            insert=mention(f"{folder}/"), attach=f"{folder}/",
        )  # fmt: skip


def _match_guides(guides: Sequence[Guide], text: str) -> Iterable[Completion]:
    needle = text.casefold()
    for guide in guides:
        if needle in guide.name.casefold():
            yield Completion(
                kind=guide.kind, label=guide.name, detail=guide.description,
                insert=mention_guide(guide.id), attach="",
            )  # fmt: skip


async def attachments_of(
    session: Session, folder: Path, text: str, attach: tuple[str, ...], essential: tuple[str, ...]
) -> list[Attachable]:
    """Return the attachments; a file that is both attached and mentioned is included once."""
    mentioned: tuple[str, ...] = ()
    if session.workspace is not None and "@" in text:
        mentioned = (await find_mentions(text, session.workspace, folder)).paths
    known = {*attach, *essential}
    others = tuple(path for path in mentioned if path not in known)
    return list(PromptOptions(attach=(*attach, *others), essential=essential).attachments())
