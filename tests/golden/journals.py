"""Golden journals: files as today's code writes them, sound and damaged, and what comes of them.

    python -m tests.golden.journals --check
    python -m tests.golden.journals --record
    python -m tests.golden.journals --write

Law: a journal that was written once can be opened, verified and gone on with by every later
version, to the byte. `journals/` is a folder of a `JsonlStore`; `expected.json` says what came of
each file when it was written: the damage that was found, the verdict on its requests, and the
digests of one more request and of the journal behind it. `--record` writes that anew and leaves the
journals as they are: for when new entries hold more than they did. Writing journals anew is right
only when a change of bytes is meant, and then the commit says why. Even then the old files are
worth keeping: people have such journals.
"""

import argparse
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct
from tests.fakes.clock import FakeClock
from tests.fakes.index import IndexFake
from tests.fakes.selection import GuideSourceFake
from tests.golden.damages import DAMAGES
from tests.golden.digests import lead, run
from tests.golden.draw import Draw
from tests.golden.runs import Run
from tests.golden.sample_runs import agent, found, imported, long, plan, questions, unknown
from tests.golden.samples import (
    adopted,
    appended,
    attachments,
    bound_thinking,
    branches,
    compactions,
    eager,
    hooks,
    inbox,
    interrupted,
    once,
    opened_again,
    prunes,
    tool_loop,
    waiting,
)
from tests.golden.talk import Talk
from tests.golden.tape import Tape
from tests.golden.wires import ANTHROPIC, BOUND, TARGETS, WireBook
from tests.golden.world import ALIKE, GUIDES, RELATIONS, Desk, MemoryFake, WebFake

import lamina
from lamina import JsonlStore, Session
from lamina.core.audit.verification import pictures_of, verify
from lamina.core.ports import JournalStore
from lamina.core.values.message import Text
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.engine.session.session import core_of
from lamina.engine.sources.selector import Selector
from lamina.errors import LaminaError

FOLDER = Path(__file__).with_name("journals")
EXPECTED = FOLDER / "expected.json"
# The renderer that the journals were written and their records made with.
RECORDED = 2
BOOK = WireBook((*TARGETS, BOUND))
# Long after everything in a journal: whatever was cached is gone.
LATER = 1_800_000_000.0

Play = Callable[[Path, str], Awaitable[None]]
SAMPLES: Mapping[str, Play] = {
    "attachments": attachments,
    "eager": eager,
    "tool-loop": tool_loop,
    "hooks": hooks,
    "appended": appended,
    "once": once,
    "compactions": compactions,
    "prunes": prunes,
    "branches": branches,
    "opened-again": opened_again,
    "bound-thinking": bound_thinking,
    "adopted": adopted,
    "interrupted": interrupted,
    "waiting": waiting,
    "inbox": inbox,
    "agent": agent,
    "found": found,
    "plan": plan,
    "questions": questions,
    "imported": imported,
    "unknown": unknown,
    "indexed": long,
    "missing-index": long,
    "wrong-index": long,
}
# Drawn sessions that were chosen for what happens in them.
SEEDS = (11, 42, 77, 138, 205, 311)


class Expected(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of a journal. `refused` is the code of the error if it cannot be opened."""

    # Its kind, line, offset and length; what is said of it to people may change.
    damage: tuple[str, ...] = ()
    # Sound, broken, or not covered, where the record cannot prove all of a request.
    state: str = "broken"
    checked: int = 0
    # The requests that cannot be rebuilt, and the damage that shows when entries are applied.
    wrong: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    problems: int = 0
    refused: str = ""
    requests: str = ""
    journal: str = ""


# -- making ----------------------------------------------------------------------------------------


async def make(folder: Path) -> None:
    """Plays every session into a store's folder, and damages what is to be damaged."""
    store = JsonlStore(folder)
    for name, play in SAMPLES.items():
        await play(folder, name)
    for name in DAMAGES:
        await tool_loop(folder, f"damaged-{name}")
    for seed in SEEDS:
        await drawn(store, seed)
    _damage(store)


async def drawn(store: JsonlStore, seed: int) -> None:
    draw = Draw(seed)
    target = draw.pick(TARGETS)
    kind = Run if seed % 2 else Talk
    talk = kind(draw, Tape(), store, target)
    talk.name = f"drawn-{seed}"
    await lead(talk)


def _damage(store: JsonlStore) -> None:
    for name, damage in DAMAGES.items():
        path = store.path_of(f"damaged-{name}")
        path.write_bytes(damage(path.read_bytes()))
    index = store.path_of("indexed").with_suffix(".index")
    store.path_of("missing-index").with_suffix(".index").unlink()
    shutil.copyfile(index, store.path_of("wrong-index").with_suffix(".index"))


# -- going on --------------------------------------------------------------------------------------


def names() -> list[str]:
    return sorted(path.name.removesuffix(".jsonl") for path in FOLDER.glob("sessions/*.jsonl"))


async def examine(folder: Path, name: str) -> Expected:
    """What comes of a journal in a folder that may be written to."""
    store = JsonlStore(folder)
    try:
        journal = await store.read(name)
        verdict = verify(journal, BOOK)
        lost = 0
        for digest in sorted(pictures_of(journal.entries.values())):
            try:
                await store.get_blob(digest)
            except LaminaError:
                lost += 1
        session = await open_journal(store, name)
    except LaminaError as error:
        return Expected(refused=error.code)
    tape = Tape()
    try:
        await go_on(session, tape)
    except LaminaError as error:
        tape.error(error)
    finally:
        await session.close()
    return Expected(
        damage=tuple(f"{d.kind} {d.line} {d.offset} {d.length}" for d in session.damage),
        state="broken" if lost else verdict.state,
        checked=len(verdict.checked),
        wrong=tuple(each.request for each in verdict.checked if each.problem),
        found=tuple(damage.kind for damage in verdict.damage),
        problems=len(verdict.problems) + lost,
        requests=tape.digest,
        journal=sha256(_read(store.path_of(name))).hexdigest(),
    )


def _read(path: Path) -> bytes:
    return path.read_bytes()


async def open_journal(store: JournalStore, name: str) -> Session:
    session = await lamina.open_session(
        name,
        workspace=Desk(),
        store=store,
        book=BOOK,
        clock=FakeClock(LATER),
        web=WebFake(),
        index=IndexFake(),
        memory_file=MemoryFake() if name == "opened-again" else None,
        # Whom it talks to was said in the header.
        target=ANTHROPIC.name if name == "damaged-lost-header" else None,
    )
    if name == "agent":
        source = GuideSourceFake(*GUIDES)
        core_of(session).turns.tools.selector = Selector(
            IndexFake(ALIKE), source, relations=RELATIONS
        )
    return session


async def go_on(session: Session, tape: Tape) -> None:
    """What was left in the middle, then one more turn."""
    turn = await session.current_turn()
    if turn is not None:
        tape.request(turn.request())
        if turn.pending_calls:
            turn = await turn.resume({call.id: "It is there." for call in turn.pending_calls})
            tape.request(turn.request())
        await turn.commit(_reply("As I was saying."))
    turn = await session.prepare("And now?", attach=["a.md", "c.md"])
    tape.request(turn.request())
    await turn.commit(_reply("Now it is late."))


def _reply(text: str) -> Reply:
    return Reply(blocks=(Text(text),), usage=Usage(input=90, cached=30, output=4), stop="stop")


def examine_copy(name: str, place: Path, number: int = RECORDED) -> Expected:
    """What comes of a copy of a golden journal where boundaries lead to this renderer."""
    for file in (*FOLDER.glob(f"sessions/{name}.*"), *FOLDER.glob("blobs/*/*")):
        copy = place / file.relative_to(FOLDER)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return run(examine, place, name, number=number)


# -- the files -------------------------------------------------------------------------------------


def read_expected() -> dict[str, Expected]:
    return msgspec.json.decode(EXPECTED.read_bytes(), type=dict[str, Expected])


def examine_all() -> dict[str, Expected]:
    found: dict[str, Expected] = {}
    for name in names():
        with TemporaryDirectory() as folder:
            found[name] = examine_copy(name, Path(folder) / "copy")
    return found


def write() -> str:
    with TemporaryDirectory() as made:
        run(make, Path(made))
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.copytree(made, FOLDER)
    return record()


def record() -> str:
    found = examine_all()
    EXPECTED.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return f"{FOLDER}: {len(found):,} journals"


def check() -> str:
    found, known = examine_all(), read_expected()
    differing = [
        name for name in sorted(found.keys() | known) if found.get(name) != known.get(name)
    ]
    return f"these give something else than was recorded: {', '.join(differing)}" * bool(differing)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden.journals",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="compare with what was recorded")
    action.add_argument("--record", action="store_true", help="write only what comes of them")
    action.add_argument("--write", action="store_true", help="write journals and records anew")
    given = parser.parse_args(arguments)
    problem = check() if given.check else ""
    told = problem or "All journals give what was recorded."
    if given.write or given.record:
        told = write() if given.write else record()
    sys.stdout.write(f"{told}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
