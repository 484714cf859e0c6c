"""Warm from the first word: what the first request of a session, a fork or a branch reads.

    python bench/warm.py [--json FILE] [--targets NAME...]

Every vendor's emulator is asked through the vendor's own SDK. `cacheable` is the most that the
vendor's rules allow to be read of the request (`allowed.py`), `predicted` what the ledger expected
before the answer came, `read` what the emulator reported. Sessions share tools, L1 and rules of
8,000 tokens; a person's memory is their own.
"""

import argparse
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import msgspec
from msgspec import Struct

import lamina
from allowed import Sent, allowed, recording
from lamina import Item, JsonlStore, Session, Settings, ToolDefinition, Turn
from lamina.adapters.providers.model_book import load_book
from lamina.core.values.entry import MessageEntry
from lamina.core.values.item import ItemId
from lamina.core.values.settings import Target
from lamina.emulators.emulator import Emulator, serve_emulator
from played import Writer
from versions import version

# Before and from GPT-5.6; with markers; implicit.
TARGETS = (
    "openai:gpt-5.1", "openai:gpt-5.6", "anthropic:claude-sonnet-5", "gemini:gemini-3.1-flash",
)  # fmt: skip
SHARED_TOKENS = 8_000
SMALL_TOKENS = 300
ANSWER_TOKENS = 120
KEY = "no-key"
Send = Callable[[dict[str, Any]], Awaitable[Any]]


class WarmRow(Struct, frozen=True, kw_only=True):
    """The first request of one scene."""

    target: str
    scene: str
    input: int
    cacheable: int
    predicted: int
    read: int
    meaning: str

    @property
    def share(self) -> float:
        """What was read of what could be."""
        return self.read / self.cacheable if self.cacheable else 1.0


# -- asking ----------------------------------------------------------------------------------------


@asynccontextmanager
async def connect(target: Target, url: str) -> AsyncIterator[Send]:
    """A client of the vendor's own."""
    if target.wire == "openai":
        from openai import AsyncOpenAI

        async with AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1") as openai:
            yield lambda body: openai.chat.completions.create(**body)
    elif target.wire == "anthropic":
        from anthropic import AsyncAnthropic

        async with AsyncAnthropic(api_key=KEY, base_url=url) as anthropic:
            yield lambda body: anthropic.messages.create(**body)
    else:
        from google import genai
        from google.genai import types

        gemini = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=url))
        try:
            yield lambda body: gemini.aio.models.generate_content(**body)
        finally:
            await gemini.aio.aclose()
            gemini.close()


async def ask(session: Session, text: str, send: Send) -> Turn:
    turn = await session.prepare(text)
    return await turn.commit(await send(turn.request()))


# -- an agent --------------------------------------------------------------------------------------


def opening(target: Target, person: str, tokens: int = SHARED_TOKENS) -> dict[str, Any]:
    """What sessions of one agent begin with; of a person only the memory is their own."""
    shared = Writer(f"agent of {tokens}")
    rules = tuple(
        Item(id=ItemId(f"rule:{name}"), content=shared.text(tokens // 8))
        for name in ("tone", "units", "dates")
    )
    tool = ToolDefinition(
        name="look_up",
        description=shared.text(tokens // 8),
        parameters={"type": "object", "properties": {"what": {"type": "string"}}},
    )
    return {
        "system": shared.text(tokens // 4),
        "project": shared.text(tokens // 4),
        "memory": Writer(f"memory of {person}").text(150),
        "tools": (tool,),
        "always": rules,
        "settings": Settings(target=target.name),
    }


class Scenes:
    """Sessions of one agent at one emulator; every scene begins where nothing was sent."""

    def __init__(
        self, target: Target, url: str, send: Send, folder: Path, sent: list[Sent],
        emulator: Emulator | None = None,
    ) -> None:  # fmt: skip
        self.target = target
        self.url = url
        self.send = send
        self.folder = folder
        self.sent = sent
        self.emulator = emulator
        self._count = 0

    async def open(self, session: str | None = None, **given: Any) -> Session:
        self._count += session is None
        name = session or f"s{self._count}"
        store = JsonlStore(self.folder / "store")
        return await lamina.open_session(name, store=store, workspace=self.folder, **given)

    async def ask(self, session: Session, text: str) -> Turn:
        return await ask(session, text, self.send)

    def row(self, scene: str, turn: Turn) -> WarmRow:
        """What became of the last request."""
        counts = allowed(self.sent, self.target, self.target.cache)
        return self.row_of(scene, counts[-1], turn)

    def row_of(self, scene: str, cacheable: int, turn: Turn) -> WarmRow:
        verdict, usage = turn.verdict, turn.usage
        assert verdict is not None
        assert usage is not None
        return WarmRow(
            target=self.target.name,
            scene=scene,
            input=usage.input,
            cacheable=cacheable,
            predicted=verdict.expected,
            read=verdict.reported,
            meaning=verdict.meaning,
        )


def question_in(session: Session) -> str:
    """The entry of the latest question."""
    entries = [entry for entry in session.path if isinstance(entry, MessageEntry)]
    return next(entry.id for entry in reversed(entries) if entry.message.role == "user")


Scene = Callable[[Scenes], Awaitable[WarmRow]]


async def second_session(scenes: Scenes) -> WarmRow:
    """The same person asks the same agent something else, in another session."""
    async with await scenes.open(**opening(scenes.target, "Ann")) as first:
        await scenes.ask(first, "Where does the ferry land?")
    async with await scenes.open(**opening(scenes.target, "Ann")) as second:
        return scenes.row("second session", await scenes.ask(second, "Which crane is free?"))


async def second_person(scenes: Scenes) -> WarmRow:
    """Another person, with another memory, asks the same agent."""
    async with await scenes.open(**opening(scenes.target, "Ann")) as first:
        await scenes.ask(first, "Where does the ferry land?")
    async with await scenes.open(**opening(scenes.target, "Bob")) as second:
        return scenes.row("another person", await scenes.ask(second, "Which crane is free?"))


async def second_process(scenes: Scenes) -> WarmRow:
    """Another process asks while the first session is still open."""
    async with await scenes.open(**opening(scenes.target, "Ann")) as first:
        await scenes.ask(first, "Where does the ferry land?")
        command = [
            sys.executable, __file__, "--child", scenes.target.name, scenes.url,
            str(scenes.folder),
        ]  # fmt: skip
        done = await anyio.run_process(command, env=dict(os.environ), stderr=None)
        row = msgspec.json.decode(done.stdout, type=WarmRow)
        return msgspec.structs.replace(
            row, cacheable=allowed(scenes.sent, scenes.target, scenes.target.cache)[-1]
        )


async def fork(scenes: Scenes) -> WarmRow:
    """A fork goes on under a name of its own."""
    async with await scenes.open(**opening(scenes.target, "Ann")) as first:
        await scenes.ask(first, "Where does the ferry land?")
        await scenes.ask(first, "And when?")
        async with await first.fork() as copy:
            return scenes.row("fork", await scenes.ask(copy, "Who is the pilot?"))


async def branch_after_restart(scenes: Scenes) -> WarmRow:
    """The session is opened again and goes on from its first answer."""
    async with await scenes.open(**opening(scenes.target, "Ann")) as first:
        await scenes.ask(first, "Where does the ferry land?")
        await scenes.ask(first, "And when?")
        question = question_in(first)
    async with await scenes.open("s1") as again:
        await again.navigate(question)
        return scenes.row("branch after a restart", await scenes.ask(again, "And how often?"))


async def first_question_edited(scenes: Scenes) -> WarmRow:
    """The very first question is asked otherwise: nothing was sent on its path."""
    async with await scenes.open(**opening(scenes.target, "Ann")) as first:
        await scenes.ask(first, "Where does the ferry land?")
        other = await first.edit(question_in(first), "Where does the pilot live?")
        done = await other.commit(await scenes.send(other.request()))
        return scenes.row("first question edited", done)


async def regenerated(scenes: Scenes) -> WarmRow:
    """The same answer is asked for once more."""
    async with await scenes.open(**opening(scenes.target, "Ann")) as first:
        await scenes.ask(first, "Where does the ferry land?")
        await scenes.ask(first, "And when?")
        other = await first.regenerate()
        done = await other.commit(await scenes.send(other.request()))
        return scenes.row("asked for again", done)


async def below_minimum(scenes: Scenes) -> WarmRow:
    """What is shared is too small for the vendor to keep."""
    async with await scenes.open(**opening(scenes.target, "Ann", SMALL_TOKENS)) as first:
        await scenes.ask(first, "Where does the ferry land?")
    async with await scenes.open(**opening(scenes.target, "Ann", SMALL_TOKENS)) as second:
        return scenes.row("below the minimum", await scenes.ask(second, "Which crane is free?"))


SCENES: tuple[Scene, ...] = (
    second_session, second_person, second_process, fork, branch_after_restart,
    first_question_edited, regenerated, below_minimum,
)  # fmt: skip


# -- playing ---------------------------------------------------------------------------------------


@asynccontextmanager
async def stage(target: Target, **given: Any) -> AsyncIterator[Scenes]:
    """An emulator that knows nothing, and folders in which nothing is remembered."""
    emulator, sent = recording(target.provider, **given)
    with TemporaryDirectory() as folder:
        before = os.environ.get("LAMINA_CACHE")
        os.environ["LAMINA_CACHE"] = str(Path(folder) / "cache")
        try:
            async with serve_emulator(emulator) as url, connect(target, url) as send:
                yield Scenes(target, url, send, Path(folder), sent, emulator)
        finally:
            if before is None:
                del os.environ["LAMINA_CACHE"]
            else:
                os.environ["LAMINA_CACHE"] = before


async def play(target: str, scene: Scene) -> WarmRow:
    async with stage(load_book().find(target)) as scenes:
        return await scene(scenes)


async def play_child(target: str, url: str, folder: str) -> WarmRow:
    model = load_book().find(target)
    async with connect(model, url) as send:
        scenes = Scenes(model, url, send, Path(folder), [])
        async with await scenes.open("child", **opening(model, "Ann")) as session:
            turn = await scenes.ask(session, "Which crane is free?")
            return scenes.row_of("second session, another process", 0, turn)


def table(rows: Sequence[WarmRow]) -> str:
    head = ("target", "scene", "input", "cacheable", "predicted", "read", "share")
    lines = [head, *((
        row.target, row.scene, f"{row.input:,}", f"{row.cacheable:,}", f"{row.predicted:,}",
        f"{row.read:,}", f"{row.share:.1%}" if row.cacheable else "-",
    ) for row in rows)]  # fmt: skip
    return "\n".join(
        ["| " + " | ".join(lines[0]) + " |", "|---|---|---:|---:|---:|---:|---:|"]
        + ["| " + " | ".join(line) + " |" for line in lines[1:]]
    )


async def measure(targets: Sequence[str]) -> list[WarmRow]:
    return [await play(target, scene) for target in targets for scene in SCENES]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    parser.add_argument("--targets", nargs="+", default=TARGETS, metavar="NAME")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        sys.stdout.buffer.write(msgspec.json.encode(anyio.run(play_child, *given.child)))
        return 0
    names = ("lamina", "openai", "anthropic", "google-genai")
    versions = {name: version(name) for name in names}
    rows = anyio.run(measure, given.targets)
    sys.stdout.write(", ".join(f"{name} {number}" for name, number in versions.items()) + "\n\n")
    sys.stdout.write(table(rows) + "\n")
    if given.json:
        figures = {"versions": versions, "rows": msgspec.to_builtins(rows)}
        given.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
