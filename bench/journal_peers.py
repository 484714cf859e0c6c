"""Peer rows of the journal benchmark: how other libraries keep a conversation on disk.

    python bench/journal_peers.py [--sizes 1000 10000 100000] [--folder FOLDER]

Every row gets the same messages and saves, extends and reloads them through the library's public
API, in the fastest form that is ordinary use of it. To be timed: `bulk_save`, `append` and `reload`
alone. `convert` makes the library's own message objects beforehand, and `close` (to be called after
each of `bulk_save`, `open_for_append` and `reload`) lets go of files and messages afterwards.
Libraries are imported only when their row is used.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import platform
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypedDict, final

from versions import Missing, version

if TYPE_CHECKING:
    from contextlib import ExitStack

    from agents import SQLiteSession
    from langgraph.graph.state import CompiledStateGraph
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.storage.chat_store import SimpleChatStore
    from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
    from sqlalchemy.ext.asyncio import AsyncEngine

__all__ = [
    "AgentsSQLite",
    "LangGraphSqlite",
    "LlamaIndexJson",
    "LlamaIndexSQLite",
    "Message",
    "MissingPeer",
    "Peer",
    "PydanticAIJson",
    "everyone",
    "make_messages",
]

_SESSION = "session"
_TOOL = "search"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the neutral conversation. A message that calls a tool has no text."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    call_id: str | None = None
    query: str | None = None  # the argument of the call; only in the message that calls


def make_messages(n: int) -> list[Message]:
    """The first `n` messages of one endless conversation; a shorter one is a prefix of a longer.

    Questions of 200 characters, answers of 400, and in every fifth turn, between the two, a tool
    call and its result of 800, which is JSON lines and so needs escaping.
    """
    rng = random.Random("journal")
    words = [f"{a}{b}" for a in ("ba", "co", "del", "far", "im") for b in ("n", "rt", "se", "ting")]
    prose = " ".join(rng.choice(words) for _ in range(20_000))
    lines = "\n".join(
        json.dumps(
            {"path": f"src/{rng.choice(words)}.py", "line": rng.randrange(999), "text": word}
        )
        for word in prose.split()[:2_000]
    )

    def text(of: str, index: int, size: int) -> str:
        start = rng.randrange(len(of) - size)
        return f"{index} {of[start : start + size]}"[:size]

    messages: list[Message] = []
    turn = 0
    while len(messages) < n:
        turn += 1
        at = len(messages)
        messages.append(Message(role="user", text=text(prose, at, 200)))
        if turn % 5 == 0:
            call = f"call_{turn:024}"
            messages.append(Message(role="assistant", call_id=call, query=text(prose, at + 1, 40)))
            messages.append(Message(role="tool", call_id=call, text=text(lines, at + 2, 800)))
        messages.append(Message(role="assistant", text=text(prose, len(messages), 400)))
    return messages[:n]


class Peer(Protocol):
    """One way of keeping a conversation on disk."""

    name: str
    version: str
    durability: str

    def convert(self, messages: Sequence[Message]) -> list[Any]:
        """The library's own form of the messages, one for one. Not to be timed."""

    def bulk_save(self, folder: Path, messages: Sequence[Any]) -> None: ...
    def open_for_append(self, folder: Path) -> None: ...
    def append(self, message: Any) -> None: ...
    def reload(self, folder: Path) -> int: ...
    def close(self) -> None: ...


class MissingPeer(Exception):
    """A row that cannot take part: its library is not installed, or does not work here."""


def _versions(*names: str) -> str:
    try:
        return ", ".join(f"{name} {version(name)}" for name in names)
    except Missing as missing:
        raise MissingPeer(str(missing)) from None


def _extend(state: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    return [*state, *(message for write in writes for message in write)]


@final
class LangGraphSqlite:
    """A graph over `SqliteSaver`; every superstep of it adds one message.

    `append` is one superstep of a running graph with durability "sync", as in an agent's loop: the
    state stays in memory and is not read again. That is the cheap way: `invoke` and `update_state`
    read and decode the last checkpoint first, and one `invoke` writes several checkpoints.
    `bulk_save` is one `update_state` on a new thread, which puts one checkpoint. `MessagesState`
    has all messages in every checkpoint. With `delta` the channel is a `DeltaChannel`, which is in
    beta: a checkpoint has only what was added, and every 100th (the default) all messages.
    """

    def __init__(self, *, delta: bool = False) -> None:
        self.name = "LangGraph SqliteSaver" + (", DeltaChannel (beta)" if delta else "")
        self.version = _versions("langgraph", "langgraph-checkpoint-sqlite")
        self.durability = (
            "survives power loss: SQLite WAL with synchronous=FULL, the WAL is synced in each of "
            "the two commits of a step (its writes, its checkpoint); by default, with durability "
            '"async", a step does not wait for its checkpoint and only the end of a run does'
        )
        self._delta = delta
        self._stack: ExitStack | None = None
        self._steps: Iterator[Any] | None = None
        self._next: list[Any] = []
        self._held: object = None

    def convert(self, messages: Sequence[Message]) -> list[Any]:
        from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

        def one(message: Message) -> Any:
            if message.role == "user":
                return HumanMessage(message.text)
            if message.role == "tool":
                return ToolMessage(message.text, tool_call_id=message.call_id, name=_TOOL)
            if message.call_id is None:
                return AIMessage(message.text)
            call = {"name": _TOOL, "args": {"query": message.query}, "id": message.call_id}
            return AIMessage("", tool_calls=[call])

        return [one(message) for message in messages]

    def bulk_save(self, folder: Path, messages: Sequence[Any]) -> None:
        graph = self._open(folder)
        graph.update_state(self._config(), {"messages": list(messages)}, as_node="step")

    def open_for_append(self, folder: Path) -> None:
        graph = self._open(folder)
        self._steps = graph.stream(None, self._config(), durability="sync", stream_mode="values")
        next(self._steps)  # what was there; each further value comes after its checkpoint

    def append(self, message: Any) -> None:
        assert self._steps is not None
        self._next.append(message)
        next(self._steps)

    def reload(self, folder: Path) -> int:
        messages = self._open(folder).get_state(self._config()).values["messages"]
        self._held = messages
        return len(messages)

    def close(self) -> None:
        if self._stack is not None:
            self._stack.close()
        self._stack = self._steps = self._held = None

    def _config(self) -> Any:
        return {"configurable": {"thread_id": _SESSION}, "recursion_limit": 1_000_000_000}

    def _open(self, folder: Path) -> CompiledStateGraph:
        from contextlib import ExitStack

        from langgraph.channels import DeltaChannel
        from langgraph.checkpoint.sqlite import SqliteSaver
        from langgraph.graph import START, MessagesState, StateGraph

        self.close()
        # Not as a class: its annotations would be text, with names that LangGraph cannot resolve.
        channel = Annotated[list[Any], DeltaChannel(_extend)]
        delta = TypedDict("delta", {"messages": channel})  # noqa: UP013
        self._stack = ExitStack()
        saver = self._stack.enter_context(SqliteSaver.from_conn_string(str(folder / "graph.db")))
        builder = StateGraph(delta if self._delta else MessagesState)
        builder.add_node("step", lambda _: {"messages": [self._next.pop()]})
        builder.add_edge(START, "step")
        builder.add_edge("step", "step")
        return builder.compile(checkpointer=saver)


@final
class AgentsSQLite:
    """`SQLiteSession` on a file: a row for each item, and an item is the dict that the API takes.

    Answers are in the short form of its documentation, `{"role", "content"}`; what the Runner
    stores of a response has an id, a status and a list of contents as well.
    """

    def __init__(self) -> None:
        self.name = "OpenAI Agents SQLiteSession"
        self.version = _versions("openai-agents")
        self.durability = (
            "survives power loss: SQLite WAL with synchronous=FULL, the WAL is synced in the one "
            "commit of each add_items"
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: SQLiteSession | None = None
        self._held: object = None

    def convert(self, messages: Sequence[Message]) -> list[Any]:
        def one(message: Message) -> Any:
            if message.role == "tool":
                return {
                    "type": "function_call_output",
                    "call_id": message.call_id,
                    "output": message.text,
                }
            if message.call_id is None:
                return {"role": message.role, "content": message.text}
            return {
                "type": "function_call",
                "call_id": message.call_id,
                "name": _TOOL,
                "arguments": json.dumps({"query": message.query}),
            }

        return [one(message) for message in messages]

    def bulk_save(self, folder: Path, messages: Sequence[Any]) -> None:
        loop, session = self._open(folder)
        loop.run_until_complete(session.add_items(list(messages)))

    def open_for_append(self, folder: Path) -> None:
        self._open(folder)

    def append(self, message: Any) -> None:
        assert self._loop is not None
        assert self._session is not None
        self._loop.run_until_complete(self._session.add_items([message]))

    def reload(self, folder: Path) -> int:
        loop, session = self._open(folder)
        items = loop.run_until_complete(session.get_items())
        self._held = items
        return len(items)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
        if self._loop is not None:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()
        self._loop = self._session = self._held = None

    def _open(self, folder: Path) -> tuple[asyncio.AbstractEventLoop, SQLiteSession]:
        from agents import SQLiteSession

        self.close()
        self._loop = asyncio.new_event_loop()
        self._session = SQLiteSession(_SESSION, folder / "agents.db")
        return self._loop, self._session


@final
class PydanticAIJson:
    """`ModelMessagesTypeAdapter` to and from one JSON file; the library has no store of its own.

    An append is the whole history dumped again, as an application does it after a run.
    """

    def __init__(self) -> None:
        self.name = "Pydantic AI JSON file"
        self.version = _versions("pydantic-ai-slim")
        self.durability = (
            "survives a crash of the process after the write, not power loss: no fsync, and the "
            "file is rewritten in place, so a crash during the write loses the whole history"
        )
        self._path = Path()
        self._messages: list[Any] = []

    def convert(self, messages: Sequence[Message]) -> list[Any]:
        from pydantic_ai.messages import (
            ModelRequest,
            ModelResponse,
            TextPart,
            ToolCallPart,
            ToolReturnPart,
            UserPromptPart,
        )

        def one(message: Message) -> Any:
            if message.role == "user":
                return ModelRequest(parts=[UserPromptPart(message.text)])
            if message.role == "tool":
                part = ToolReturnPart(_TOOL, message.text, tool_call_id=message.call_id)
                return ModelRequest(parts=[part])
            if message.call_id is None:
                return ModelResponse(parts=[TextPart(message.text)])
            call = ToolCallPart(_TOOL, {"query": message.query}, tool_call_id=message.call_id)
            return ModelResponse(parts=[call])

        return [one(message) for message in messages]

    def bulk_save(self, folder: Path, messages: Sequence[Any]) -> None:
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        (folder / "messages.json").write_bytes(ModelMessagesTypeAdapter.dump_json(list(messages)))

    def open_for_append(self, folder: Path) -> None:
        self.reload(folder)

    def append(self, message: Any) -> None:
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        self._messages.append(message)
        self._path.write_bytes(ModelMessagesTypeAdapter.dump_json(self._messages))

    def reload(self, folder: Path) -> int:
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        self._path = folder / "messages.json"
        self._messages = ModelMessagesTypeAdapter.validate_json(self._path.read_bytes())
        return len(self._messages)

    def close(self) -> None:
        self._messages = []


def _llama_index(messages: Sequence[Message]) -> list[ChatMessage]:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock

    def one(message: Message) -> ChatMessage:
        role = MessageRole(message.role)
        if message.role == "tool":
            return ChatMessage(
                message.text, role=role, additional_kwargs={"tool_call_id": message.call_id}
            )
        if message.call_id is None:
            return ChatMessage(message.text, role=role)
        block = ToolCallBlock(
            tool_call_id=message.call_id, tool_name=_TOOL, tool_kwargs={"query": message.query}
        )
        return ChatMessage(role=role, blocks=[block])

    return [one(message) for message in messages]


@final
class LlamaIndexJson:
    """`SimpleChatStore`: in memory, and on disk when `persist` writes all of it.

    It cannot write a single message with llama-index-core 0.14.25 and pydantic 2.14 (2.13 works):
    its serializer calls pydantic's handler with an argument that pydantic now refuses.
    """

    def __init__(self) -> None:
        self.name = "LlamaIndex SimpleChatStore"
        self.version = _versions("llama-index-core")
        self.durability = (
            "survives a crash of the process after persist(), not power loss: no fsync, and the "
            "file is rewritten in place, so a crash during the write loses the whole store"
        )
        self._path = ""
        self._store: SimpleChatStore | None = None
        self._try()

    def _try(self) -> None:
        from llama_index.core.storage.chat_store import SimpleChatStore
        from pydantic_core import PydanticSerializationError

        store = SimpleChatStore()
        store.set_messages(_SESSION, self.convert([Message(role="user", text="hello")]))
        try:
            store.model_dump_json()  # what persist() writes
        except PydanticSerializationError as error:
            raise MissingPeer(
                f"{self.name} ({self.version}) cannot serialize a message with "
                f"pydantic {version('pydantic')}: {str(error)[:160]}"
            ) from None

    def convert(self, messages: Sequence[Message]) -> list[Any]:
        return list(_llama_index(messages))

    def bulk_save(self, folder: Path, messages: Sequence[Any]) -> None:
        from llama_index.core.storage.chat_store import SimpleChatStore

        store = SimpleChatStore()
        store.set_messages(_SESSION, list(messages))
        store.persist(str(folder / "chat_store.json"))

    def open_for_append(self, folder: Path) -> None:
        self.reload(folder)

    def append(self, message: Any) -> None:
        assert self._store is not None
        self._store.add_message(_SESSION, message)
        self._store.persist(self._path)

    def reload(self, folder: Path) -> int:
        from llama_index.core.storage.chat_store import SimpleChatStore

        self._path = str(folder / "chat_store.json")
        self._store = SimpleChatStore.from_persist_path(self._path)
        return len(self._store.get_messages(_SESSION))

    def close(self) -> None:
        self._store = None


@final
class LlamaIndexSQLite:
    """`SQLAlchemyChatStore` on a SQLite file: the store below `SlotFiles`, a row for each message.

    The store itself is the cheap way: `Memory.put` adds a message to it, then reads all of them
    back and counts their tokens. `add_messages` binds five values a row in one statement, and
    SQLite allows 32,766 of them by default, so a bulk save is several; each is a commit.
    """

    _BATCH = 5_000

    def __init__(self) -> None:
        self.name = "LlamaIndex SQLAlchemyChatStore"
        self.version = _versions("llama-index-core", "sqlalchemy", "aiosqlite")
        self.durability = (
            "survives a crash of the process, and power loss but for the last append: SQLite "
            "rollback journal (journal_mode=DELETE) with synchronous=FULL, journal and database "
            "are synced in the one commit of add_message, but not the folder after the journal's "
            "removal, which is the commit (SQLite has synchronous=EXTRA for that)"
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._engine: AsyncEngine | None = None
        self._store: SQLAlchemyChatStore | None = None
        self._held: object = None

    def convert(self, messages: Sequence[Message]) -> list[Any]:
        return list(_llama_index(messages))

    def bulk_save(self, folder: Path, messages: Sequence[Any]) -> None:
        loop, store = self._open(folder)
        for start in range(0, len(messages), self._BATCH):
            batch = list(messages[start : start + self._BATCH])
            loop.run_until_complete(store.add_messages(_SESSION, batch))

    def open_for_append(self, folder: Path) -> None:
        loop, store = self._open(folder)
        loop.run_until_complete(store.get_messages(_SESSION, limit=1))  # it connects when used

    def append(self, message: Any) -> None:
        assert self._loop is not None
        assert self._store is not None
        self._loop.run_until_complete(self._store.add_message(_SESSION, message))

    def reload(self, folder: Path) -> int:
        loop, store = self._open(folder)
        messages = loop.run_until_complete(store.get_messages(_SESSION))
        self._held = messages
        return len(messages)

    def close(self) -> None:
        if self._loop is not None and self._engine is not None:
            self._loop.run_until_complete(self._engine.dispose())
            self._loop.close()
        self._loop = self._engine = self._store = self._held = None

    def _open(self, folder: Path) -> tuple[asyncio.AbstractEventLoop, SQLAlchemyChatStore]:
        from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
        from sqlalchemy.ext.asyncio import create_async_engine

        self.close()
        self._loop = asyncio.new_event_loop()
        # The engine that the store would make from the address; owning it lets close() end it.
        self._engine = create_async_engine(f"sqlite+aiosqlite:///{folder / 'chat_store.db'}")
        self._store = SQLAlchemyChatStore("messages", async_engine=self._engine)
        return self._loop, self._store


def everyone() -> tuple[list[Peer], list[str]]:
    """All rows that can take part, and why the others cannot."""
    makers: list[Callable[[], Peer]] = [
        LangGraphSqlite,
        lambda: LangGraphSqlite(delta=True),
        AgentsSQLite,
        PydanticAIJson,
        LlamaIndexJson,
        LlamaIndexSQLite,
    ]
    peers, missing = [], []
    for maker in makers:
        try:
            peers.append(maker())
        except MissingPeer as reason:
            missing.append(str(reason))
    return peers, missing


def _timed(run: Callable[..., object], *arguments: object) -> float:
    start = time.perf_counter()
    run(*arguments)
    return (time.perf_counter() - start) * 1e3


def _disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def _measure(peer: Peer, size: int, parent: Path, *, appends: int, seconds: float) -> str:
    messages = make_messages(size + appends)
    with tempfile.TemporaryDirectory(dir=parent) as name:
        folder = Path(name)
        own = peer.convert(messages[:size])
        gc.collect()
        bulk = _timed(peer.bulk_save, folder, own)
        peer.close()
        del own
        size_before = _disk(folder)
        reloads = []
        for _ in range(3):
            gc.collect()
            reloads.append(_timed(peer.reload, folder))
            peer.close()
        more = peer.convert(messages[size:])
        gc.collect()
        peer.open_for_append(folder)
        times: list[float] = []
        # A slow row gets fewer appends, at least three, and never a shorter conversation.
        while len(times) < appends and (len(times) < 3 or sum(times) < seconds * 1e3):
            times.append(_timed(peer.append, more[len(times)]))
        peer.close()
        growth = (_disk(folder) - size_before) / len(times)
        count = peer.reload(folder)
        peer.close()
    if count != size + len(times):
        raise RuntimeError(f"{peer.name}: {count} messages instead of {size + len(times)}")
    return (
        f"{peer.name:<44}{size:>9,}{bulk:>10.1f}{min(reloads):>10.1f}{median(times):>10.2f}"
        f"{mean(times):>10.2f}{max(times):>10.1f}{len(times):>6}{size_before / 1e6:>9.1f}"
        f"{growth / 1e3:>11.1f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--folder", type=Path, help="where to write; a disk, not a tmpfs")
    parser.add_argument("--appends", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=8.0, help="for the appends of a row")
    args = parser.parse_args()
    peers, missing = everyone()
    print(f"Python {platform.python_version()}\n")
    for peer in peers:
        print(f"{peer.name} ({peer.version}): {peer.durability}\n")
    for reason in missing:
        print(f"left out: {reason}\n")
    print("milliseconds; disk in MB after the bulk save, and kB for each append\n")
    print(f"{'row':<44}{'messages':>9}{'bulk':>10}{'reload':>10}{'append':>10}{'mean':>10}{'max':>10}"
          f"{'of':>6}{'disk':>9}{'an append':>11}")  # fmt: skip
    for peer in peers:
        _measure(peer, 20, args.folder, appends=5, seconds=1)  # imports, and caches of theirs
    for size in args.sizes:
        for peer in peers:
            print(
                _measure(peer, size, args.folder, appends=args.appends, seconds=args.seconds),
                flush=True,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
