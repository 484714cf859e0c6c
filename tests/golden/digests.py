"""Digests of drawn sessions: every request on its wire, and every byte of their journals.

    python -m tests.golden.digests --check [--renderer N] [--count N]
    python -m tests.golden.digests --write [--count N]

Law: what happens in a session decides the bytes that it sends and keeps, and nothing else does.
There is a file for each renderer that sessions may go on with: `digests.jsonl` has the second, and
was written by the code before it was moved about; `digests-3.jsonl` has the present one. Only the
present one is ever written again, when a change of bytes is meant, and then the commit says why;
all else is a regression. `--check` checks all of them, or that of one `--renderer`.

`--show SEED` prints the requests and the journal of one session, to be compared with what another
version of the code prints.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import anyio
import msgspec
import pytest
from msgspec import Struct
from tests.fakes.renderers import renderer
from tests.golden.draw import Draw
from tests.golden.folder import FolderTalk
from tests.golden.runs import Run
from tests.golden.steps import Steps
from tests.golden.talk import Talk
from tests.golden.tape import Tape, journal_lines
from tests.golden.wires import TARGETS

from lamina import JsonlStore, MemoryStore
from lamina.core.audit.verification import verify
from lamina.core.ports import JournalStore
from lamina.core.values.entry import RENDERER

T = TypeVar("T")

# The file of each renderer.
FILES = {
    2: Path(__file__).with_name("digests.jsonl"),
    3: Path(__file__).with_name("digests-3.jsonl"),
}
COUNT = 2_400
# Hexadecimal digits of a digest that are kept: enough that no change hides.
LENGTH = 20


class Digest(Struct, frozen=True, array_like=True):
    seed: int
    target: str
    requests: str
    journal: str


class Played(Struct, frozen=True, kw_only=True):
    digest: Digest
    lines: Sequence[str]
    journal: Sequence[bytes]


class StillLoop(asyncio.SelectorEventLoop):
    """A loop in which no time passes: what a journal says of seconds is the same in every run."""

    def time(self) -> float:
        return 0.0


def run(body: Callable[..., Coroutine[Any, Any, T]], *given: Any, number: int = RENDERER) -> T:
    """Runs it with a cache of its own: what other sessions sent makes no difference to it. New
    sessions begin with the renderer of this `number`."""
    with TemporaryDirectory() as cache, renderer(number), pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_CACHE", cache)
        return anyio.run(body, *given, backend_options={"loop_factory": StillLoop})


async def play(seed: int) -> Played:
    """Plays the session of a seed."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        talk = draw_talk(seed, place)
        await lead(talk)
        lines = await journal_lines(talk.store)
        lines += file_lines(place)
    hashed = sha256(b"\n".join(lines)).hexdigest()
    digest = Digest(seed, talk.target.name, talk.tape.digest[:LENGTH], hashed[:LENGTH])
    return Played(digest=digest, lines=talk.tape.lines, journal=lines)


def draw_talk(seed: int, place: Path, store: JournalStore | None = None) -> Talk:
    """The session of a seed, not begun yet: in `store`, or in the one that is drawn for it."""
    draw, tape = Draw(seed), Tape()
    target = draw.pick(TARGETS)
    kind = draw.number(1, 10)
    if store is None:
        store = JsonlStore(place) if kind == 1 else MemoryStore()
    if kind <= 5:
        return Talk(draw, tape, store, target)
    if kind == 6:
        return FolderTalk(draw, tape, store, target, place / "notes")
    return Run(draw, tape, store, target)


def file_lines(place: Path) -> list[bytes]:
    """The lines of all journals as their files hold them, with their checksums."""
    files = sorted(place.glob("sessions/*.jsonl"))
    return [line for file in files for line in file.read_bytes().splitlines()]


async def lead(talk: Talk) -> None:
    """Some questions, and what a person does between them."""
    await talk.begin()
    steps = Steps(talk)
    for _ in range(talk.draw.number(3, 9)):
        while talk.draw.chance(0.45):
            await steps.take()
        await talk.attempt(talk.ask)
    await talk.session.close()
    if talk.draw.chance(0.3):
        verdict = verify(await talk.store.read(talk.name), talk.world.book)
        talk.tape.outcome(verdict.sound, len(verdict.checked))


# -- the file --------------------------------------------------------------------------------------


def read_digests(number: int = RENDERER) -> dict[int, Digest]:
    lines = FILES[number].read_bytes().splitlines()
    return {digest.seed: digest for digest in map(_decode, lines)}


def _decode(line: bytes) -> Digest:
    return msgspec.json.decode(line, type=Digest)


def differing(seeds: Iterable[int], number: int = RENDERER) -> list[int]:
    """Those of the seeds whose session gives other bytes than the renderer's file says."""
    known = read_digests(number)
    return [seed for seed in seeds if run(play, seed, number=number).digest != known[seed]]


def write(count: int) -> str:
    encoder = msgspec.json.Encoder()
    lines = [encoder.encode(run(play, seed).digest) for seed in range(count)]
    FILES[RENDERER].write_bytes(b"\n".join(lines) + b"\n")
    return f"{FILES[RENDERER]}: {count:,} sessions"


def check(count: int, numbers: Iterable[int]) -> str:
    found = {number: differing(range(count), number) for number in numbers}
    lines = [
        f"renderer {number}: {len(seeds):,} of {count:,} sessions differ, the first ones: "
        f"{seeds[:20]}"
        for number, seeds in found.items()
        if seeds
    ]
    return "\n".join(lines)


def show(seed: int, number: int) -> str:
    played = run(play, seed, number=number)
    journal = [line.decode() for line in played.journal]
    return "\n".join([str(played.digest), *played.lines, *journal])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden.digests",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="compare with the file")
    action.add_argument("--write", action="store_true", help="write the present renderer's file")
    action.add_argument("--show", type=int, metavar="SEED", help="print one session")
    parser.add_argument("--count", type=int, default=COUNT, help=f"sessions, {COUNT:,} if not said")
    parser.add_argument("--renderer", type=int, choices=FILES, help="only that one")
    given = parser.parse_args(arguments)
    numbers = [given.renderer] if given.renderer else [*FILES]
    problem = check(given.count, numbers) if given.check else ""
    said = problem or (
        write(given.count)
        if given.write
        else "All sessions give the bytes of their file."
        if given.check
        else show(given.show, numbers[-1])
    )
    sys.stdout.write(f"{said}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
