"""Sessions over a real folder: one reference brings several items, notes move, pictures come along.

When a file was made is the machine's own business: what is read of it gets a fixed time.
"""

import os
from pathlib import Path
from struct import pack
from typing import Any
from zlib import adler32, crc32

from msgspec.structs import replace
from tests.fakes.workspace import TIME
from tests.golden.draw import Draw
from tests.golden.talk import Talk
from tests.golden.tape import Tape
from tests.golden.world import Desk

import lamina
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.core.ports import FetchPicture, JournalStore
from lamina.core.values.item import Item, Shape
from lamina.core.values.request import GatheredItems
from lamina.core.values.settings import Target

MTIME = 1_760_000_000
LINKED = {
    "sea/harbour.md": (
        "---\ntags: [sea]\nstatus: open\n---\n# Harbour\n\nThe quay. ![[tides]]\n\n"
        "## North\n\nNine berths.\n\n![A plan](plan.png)\n\n![Gone](gone.png)\n"
    ),
    "sea/tides.md": "# Tides #sea/daily\n\nHigh at noon. ![[ropes#Knots]] ![[nowhere]]\n",
    "land/ropes.md": "---\nstatus: done\n---\n# Ropes\n\nLong.\n\n## Knots\n\nReef, bowline.\n",
    "index.md": "# Index\n\n```lamina-query\nTABLE status\nFROM #sea\nSORT file.name\n```\n",
    "broken.md": "```lamina-query\nTABEL status\n```\n\n![web](https://nowhere.example/x.png)\n",
}
REFERENCES = (
    "sea/", "folder:land", "#sea", "tag:none", "[[harbour]]", "[[harbour#North]]", "tides",
    "sea/harbour.md#L3-L6", "index.md", "broken.md", "land/ropes.md", "nothing", "a.md", "ropes",
)  # fmt: skip


def png(width: int, height: int) -> bytes:
    """A grey picture, not compressed: how well that is done depends on a library's version."""
    rows = b"".join(b"\0" + b"\x80" * width for _ in range(height))
    size = pack("<HH", len(rows), len(rows) ^ 0xFFFF)
    stored = b"\x78\x01\x01" + size + rows + pack(">I", adler32(rows))
    header = pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", stored), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        pack(">I", len(data)) + kind + data + pack(">I", crc32(kind + data))
        for kind, data in chunks
    )


class FolderDesk(FolderWorkspace):
    """A folder that is what `notes` says whenever somebody looks."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        super().__init__(root, watch=False)
        self._place = root
        self._desk = Desk()
        self.notes = {**LINKED, **self._desk.notes}
        self._written: dict[str, str] = {}
        picture = root / "sea" / "plan.png"
        picture.parent.mkdir()
        picture.write_bytes(png(40, 30))

    def edit(self, path: str) -> None:
        self._desk.edit(path)
        self.notes[path] = self._desk.notes[path]

    def move(self, path: str, place: str) -> None:
        if path in self.notes:
            self.notes[place] = self.notes.pop(path)

    def _write_out(self) -> None:
        for path in [path for path in self._written if path not in self.notes]:
            (self._place / path).unlink()
            del self._written[path]
        for path, text in self.notes.items():
            if self._written.get(path) != text:
                file = self._place / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode())
                os.utime(file, (MTIME, MTIME))
                self._written[path] = text

    async def gather(
        self,
        reference: str,
        shape: Shape,
        *,
        embed_depth: int = 1,
        fetch_picture: FetchPicture | None = None,
    ) -> GatheredItems:
        self._write_out()
        gathered = await super().gather(
            reference, shape, embed_depth=embed_depth, fetch_picture=fetch_picture
        )
        readings = tuple(
            replace(reading, item=replace(reading.item, ctime=TIME, mtime=TIME, workspace=""))
            for reading in gathered.readings
        )
        return replace(gathered, readings=readings)

    async def find_moved(self, item: Item) -> str | None:
        self._write_out()
        return await super().find_moved(item)


class FolderTalk(Talk):
    """A talk about the notes of a folder."""

    def __init__(
        self, draw: Draw, tape: Tape, store: JournalStore, target: Target, place: Path
    ) -> None:
        super().__init__(draw, tape, store, target)
        self.folder = FolderDesk(place)
        self.world.desk = self.folder

    def attachments(self) -> list[Any]:
        draw = self.draw
        if draw.chance(0.2):
            self.folder.move(
                draw.pick(("sea/tides.md", "land/ropes.md", "a.md")),
                draw.pick(("moved/one.md", "sea/two.md")),
            )
        attached: list[Any] = super().attachments()[: draw.number(0, 2)]
        for reference in draw.some(REFERENCES, 3):
            shape: Shape = "active" if draw.chance(0.4) else "attached"
            attached.append(lamina.attach(reference, shape=shape, priority=draw.pick((3, 5, 10))))
        return attached
