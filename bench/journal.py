"""How fast a conversation is kept and opened again, next to what people use today.

    python bench/journal.py [--sizes 1000 10000 100000] [--json FILE] [--folder FOLDER]

In one run, for the same messages: `append`, one message made durable as each library does it;
`bulk save` of all of them; and `reload`, from opening until the next turn can be prepared. For the
peers that is the full list of their own message objects. Lamina has two rows for each of its stores
(JSONL files, and rows of a SQLite file): a session that holds the messages alone (as an import
does), and one that was talked into existence, with a request and a reply for every answer, digests
and all; its reload ends when `prepare` has returned the next turn, with every checksum verified in
files, and in a database those of the rows that it read. Files are also opened without the index
that stands beside them (`bare`), as after a copy of the file alone.
"""

import argparse
import asyncio
import gc
import platform
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from msgspec import Struct

import lamina
from journal_peers import Message, Peer, everyone, make_messages
from lamina.core.codec import mint_id
from lamina.core.values import message as values
from lamina.core.values.entry import Entry, MessageEntry, start_entry
from lamina.core.values.settings import Settings
from versions import version

SIZES = (1_000, 10_000, 100_000)
# An append is timed until this many were, or until the time is up.
APPENDS, SECONDS = 200, 20.0
RELOADS = 5
# Large enough that nothing is pruned: the peers keep everything, too.
SETTINGS = Settings(target="openai:gpt-4o", window=1 << 40, output_reserve=1_000)


class Figures(Struct, frozen=True, kw_only=True):
    """Milliseconds."""

    row: str
    version: str
    size: int
    bulk: float
    reload: float
    bare: float | None
    append: float
    worst_append: float
    appends: int


DURABILITY = {
    "jsonl": (
        "survives a crash of the process and power loss: one write per append, fdatasync "
        "before it is acknowledged, a checksum per line, the folder synced at creation; "
        "a torn or damaged line is found and reported, and costs itself alone"
    ),
    "sqlite": (
        "survives a crash of the process and power loss: one transaction per append, the "
        "write-ahead log synced before it is acknowledged (synchronous=FULL), a checksum per "
        "row; a damaged row is found and reported when it is read, and costs itself alone"
    ),
}


class LaminaRow:
    """A session on disk. `talked` says whether it has the requests and replies of a conversation,
    or the messages alone."""

    def __init__(self, kind: str, *, talked: bool) -> None:
        what = "talked" if talked else "messages"
        self.name = f"Lamina {'SQLite' if kind == 'sqlite' else 'JSONL'}, {what}"
        self._kind = kind
        self.version = lamina.__version__
        self.durability = DURABILITY[kind]
        self._talked = talked
        self._loop = asyncio.new_event_loop()
        self._session: lamina.Session | None = None
        self._opened: Any = None
        self._last = 0

    def _store(self, folder: Path) -> lamina.JsonlStore | lamina.SqliteStore:
        if self._kind == "sqlite":
            return lamina.SqliteStore(folder / "sessions.sqlite")
        return lamina.JsonlStore(folder)

    def convert(self, messages: Sequence[Message]) -> list[Any]:
        entries = [MessageEntry(id=mint_id(n), parent=mint_id(n - 1), at=float(n),
                                message=_message(m, mint_id(n)))
                   for n, m in enumerate(messages, 1)]  # fmt: skip
        return self._loop.run_until_complete(_talk(entries)) if self._talked else list(entries)

    def bulk_save(self, folder: Path, own: Sequence[Any]) -> None:
        self._loop.run_until_complete(self._bulk_save(folder, own))

    async def _bulk_save(self, folder: Path, own: Sequence[Entry]) -> None:
        header = start_entry("bench", 0.0, settings=SETTINGS)
        journal = await self._store(folder).create(header)
        await journal.append(own)
        self._last = int(own[-1].id, 16)
        self._opened = journal

    def open_for_append(self, folder: Path) -> None:
        self._opened = self._loop.run_until_complete(self._store(folder).open("bench"))

    def append(self, message: Any) -> None:
        """One message made durable, as a commit does it."""
        number = self._opened.last + 1
        entry = MessageEntry(id=mint_id(number), parent=mint_id(self._last), at=float(number),
                             message=message.message)  # fmt: skip
        self._last = number
        self._loop.run_until_complete(self._opened.append([entry]))

    def settle(self, folder: Path) -> None:
        """One more turn, and the session is closed: that leaves an index, as it does for everyone
        who talks to a session instead of writing its file at once."""
        self._loop.run_until_complete(self._settle(folder))

    async def _settle(self, folder: Path) -> None:
        store = self._store(folder)
        async with await lamina.open_session("bench", store=store, workspace=folder) as session:
            turn = await session.prepare("And now?")
            await turn.commit(
                _reply(values.Message(role="assistant", blocks=(values.Text("Yes."),)))
            )

    def drop_index(self, folder: Path) -> bool:
        """Leaves the session without what stands beside it; False if nothing does."""
        indexes = list((folder / "sessions").glob("*.index"))
        for index in indexes:
            index.unlink()
        return bool(indexes)

    def reload(self, folder: Path) -> int:
        return self._loop.run_until_complete(self._reload(folder))

    async def _reload(self, folder: Path) -> int:
        store = self._store(folder)
        self._session = await lamina.open_session("bench", store=store, workspace=folder)
        await self._session.prepare("And then?")
        return len(self._session.envelope.cached) - 1

    def close(self) -> None:
        if self._session is not None:
            self._loop.run_until_complete(self._session.close())
        if self._opened is not None:
            self._loop.run_until_complete(self._opened.close())
        self._session = self._opened = None


def _message(message: Message, entry: str) -> values.Message:
    if message.role == "tool":
        call_id = message.call_id or ""
        result = values.ToolResult(call_id=call_id, name="search", text=message.text)
        return values.Message(role="tool", blocks=(result,), id=entry)
    if message.call_id:
        call = values.ToolCall(id=message.call_id, name="search", arguments=message.query or "{}")
        return values.Message(role="assistant", blocks=(call,), id=entry)
    role = "user" if message.role == "user" else "assistant"
    return values.Message(role=role, blocks=(values.Text(message.text),), id=entry)  # type: ignore[arg-type]


async def _talk(entries: Sequence[MessageEntry]) -> list[Entry]:
    """The entries of a session in which these messages were said, turn by turn."""
    session = await lamina.open_session("bench", settings=SETTINGS, store=lamina.MemoryStore())
    turn: lamina.Turn | None = None
    for entry in entries:
        message = entry.message
        if message.role == "user":
            turn = await session.prepare(message.text)
        elif message.role == "tool" and turn is not None:
            turn = await turn.resume({turn.pending_calls[0].id: message.blocks[0].text})  # type: ignore[union-attr]
        elif turn is not None:
            turn = await turn.commit(_reply(message))
    return list(session.entries[1:])


def _reply(message: values.Message) -> dict[str, Any]:
    calls = [
        {"id": call.id, "type": "function",
         "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.calls
    ]  # fmt: skip
    message_fields = {
        "role": "assistant",
        "content": message.text or None,
        "tool_calls": calls or None,
    }
    finish = "tool_calls" if calls else "stop"
    return {"choices": [{"message": message_fields, "finish_reason": finish}]}


# -- measuring -----------------------------------------------------------------------------------


def measure(row: Peer | LaminaRow, size: int, folder: Path) -> Figures:
    """One row at one size; files are in the page cache, as after a restart of the application."""
    own = row.convert(make_messages(size + APPENDS))
    # A Lamina session that was talked has more entries than messages.
    first = len(row.convert(make_messages(size))) if isinstance(row, LaminaRow) else size
    bulk, more = own[:first], [entry for entry in own[first:] if _is_message(entry)]
    start = time.perf_counter()
    row.bulk_save(folder, bulk)
    bulk_ms = (time.perf_counter() - start) * 1e3
    row.close()
    del own, bulk
    if isinstance(row, LaminaRow):
        row.settle(folder)
    reload = _time_reloads(row, size, folder, bare=False)
    bare = _time_reloads(row, size, folder, bare=True)
    row.open_for_append(folder)
    appends: list[float] = []
    deadline = time.perf_counter() + SECONDS
    for entry in more:
        start = time.perf_counter()
        row.append(entry)
        appends.append((time.perf_counter() - start) * 1e3)
        if time.perf_counter() > deadline:
            break
    row.close()
    return Figures(
        row=row.name,
        version=row.version,
        size=size,
        bulk=bulk_ms,
        reload=reload or 0.0,
        bare=bare,
        append=median(appends),
        worst_append=max(appends),
        appends=len(appends),
    )


def _time_reloads(row: Peer | LaminaRow, size: int, folder: Path, *, bare: bool) -> float | None:
    """The best of several; None if there is nothing beside the session to be left out."""
    reloads = []
    for number in range(RELOADS):
        # A copy each time: preparing a turn writes it down.
        place = folder.with_name(f"{folder.name}-{number}")
        shutil.copytree(folder, place)
        if bare and not (isinstance(row, LaminaRow) and row.drop_index(place)):
            shutil.rmtree(place)
            return None
        gc.collect()
        start = time.perf_counter()
        count = row.reload(place)
        reloads.append((time.perf_counter() - start) * 1e3)
        assert count >= size, (row.name, count, size)
        row.close()
        shutil.rmtree(place)
    return min(reloads)


def _is_message(entry: Any) -> bool:
    return not isinstance(entry, Entry) or isinstance(entry, MessageEntry)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--folder", type=Path, help="where files are written; a temporary folder")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    peers, missing = everyone()
    own = [LaminaRow(kind, talked=talked) for kind in DURABILITY for talked in (False, True)]
    rows: list[Peer | LaminaRow] = [*own, *peers]
    print(f"Python {platform.python_version()}, {platform.machine()}, msgspec {version('msgspec')}")
    for reason in missing:
        print(f"left out: {reason}")
    figures: list[Figures] = []
    for size in args.sizes:
        print(f"\n{size:,} messages: milliseconds (best of {RELOADS} reloads, median of appends)")
        print(
            f"{'row':<34}{'bulk save':>11}{'reload':>10}{'bare':>10}{'append':>9}"
            f"{'worst':>9}{'appends':>9}"
        )
        for row in rows:
            folder = Path(tempfile.mkdtemp(dir=args.folder))
            try:
                # Once in small, so that imports and first connections are not timed.
                if size == args.sizes[0]:
                    measure(row, 50, Path(tempfile.mkdtemp(dir=folder)))
                row_figures = measure(row, size, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            figures.append(row_figures)
            bare = f"{row_figures.bare:,.1f}" if row_figures.bare is not None else ""
            print(
                f"{row_figures.row:<34}{row_figures.bulk:>11,.1f}{row_figures.reload:>10,.1f}"
                f"{bare:>10}{row_figures.append:>9,.2f}"
                f"{row_figures.worst_append:>9,.1f}{row_figures.appends:>9}",
                flush=True,
            )
        _ratios([figure for figure in figures if figure.size == size])
    _growth(figures, rows)
    print("\nWhat an acknowledged append survives:")
    for row in rows:
        print(f"- {row.name} ({row.version}): {row.durability}")
    if args.json:
        args.json.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1))


def _ratios(figures: Sequence[Figures]) -> None:
    peers = [figure for figure in figures if not figure.row.startswith("Lamina")]
    if not peers:
        return
    fastest = min(peers, key=lambda peer: peer.reload)
    for figure in figures:
        if figure.row.startswith("Lamina"):
            times = f"{fastest.reload / figure.reload:.2f}x"
            if figure.bare is not None:
                times += f" (without its index {fastest.reload / figure.bare:.2f}x)"
            print(f"  {figure.row}: reload {times} as fast as {fastest.row}, the fastest of them")


def _growth(figures: Sequence[Figures], rows: Sequence[Peer | LaminaRow]) -> None:
    print("\nmedian append, largest session over smallest:")
    for row in rows:
        own = [figure for figure in figures if figure.row == row.name]
        if len(own) > 1:
            print(f"  {row.name:<34}{own[-1].append / own[0].append:.2f}x")


if __name__ == "__main__":
    main()
