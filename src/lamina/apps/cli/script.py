"""Scripted conversations: questions, attachments and answers, turn by turn."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.ports import BundleSource, FetchPicture, WorkspaceSource
from lamina.core.values.item import Item, LoadedItem, Shape
from lamina.core.values.message import Text
from lamina.core.values.request import GatheredItems, LeftOut
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.errors import UsageError


class ScriptTurn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`pause` is the time since the previous turn, in seconds; `edit` maps paths to new contents,
    as if a person had changed those notes in between."""

    ask: str
    answer: str = ""
    attach: tuple[str, ...] = ()
    pause: float = 30.0
    edit: dict[str, str] = {}


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    turns: tuple[ScriptTurn, ...]
    system: str = ""
    title: str = ""


def read_script(path: Path) -> Script:
    """Read the conversation in a JSON file.

    Raises:
        UsageError: it cannot be read, or is not a script.
    """
    try:
        script = msgspec.json.decode(path.read_bytes(), type=Script)
    except OSError as error:
        raise UsageError(f"cannot read the script {str(path)!r}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise UsageError(f"{str(path)!r} is not a conversation script: {error}") from error
    if not script.turns:
        raise UsageError(f"{str(path)!r} has no turns")
    return script


class ScriptClock:
    """A clock that the script moves."""

    def __init__(self) -> None:
        self.time = 1_750_000_000.0

    def now(self) -> float:
        return self.time


class EditedWorkspace:
    """A workspace with edits on top, as if they had been saved; the folder itself is unchanged."""

    def __init__(self, inner: WorkspaceSource) -> None:
        self._inner = inner
        self._edits: dict[str, str] = {}

    @property
    def name(self) -> str:
        return self._inner.name

    def edit(self, edits: Mapping[str, str]) -> None:
        self._edits |= edits

    @property
    def id(self) -> str:
        return self._inner.id if isinstance(self._inner, BundleSource) else self._inner.name

    @property
    def folder(self) -> Path | None:
        return getattr(self._inner, "folder", None)

    async def read(self, reference: str, shape: Shape) -> LoadedItem | LeftOut:
        reading = await self._inner.read(reference, shape)
        return reading if isinstance(reading, LeftOut) else self._edited(reading)

    async def gather(
        self,
        reference: str,
        shape: Shape,
        *,
        embed_depth: int = 1,
        fetch_picture: FetchPicture | None = None,
    ) -> GatheredItems:
        if not isinstance(self._inner, BundleSource):
            reading = await self.read(reference, shape)
            if isinstance(reading, LeftOut):
                return GatheredItems(left_out=(reading,))
            return GatheredItems(readings=(reading,))
        gathered = await self._inner.gather(
            reference, shape, embed_depth=embed_depth, fetch_picture=fetch_picture
        )
        return replace(gathered, readings=tuple(map(self._edited, gathered.readings)))

    async def find_moved(self, item: Item) -> str | None:
        if not isinstance(self._inner, BundleSource):
            return None
        return await self._inner.find_moved(item)

    def _edited(self, reading: LoadedItem) -> LoadedItem:
        edit = self._edits.get(reading.item.key)
        if edit is None:
            return reading
        return replace(reading, item=replace(reading.item, content=edit, version=""))


def scripted_reply(answer: str) -> Reply:
    """An answer from a script, without usage."""
    return Reply(blocks=(Text(answer),), usage=Usage(cache_reported=False), stop="stop")
