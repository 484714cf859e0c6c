"""What `lamina sessions` takes over hundreds of sessions: processor time of the whole command.

python bench/session_list.py [--sessions 340] [--turns 60] [--beside CHECKOUT]

Twice: with every session read whole, as nothing is known of them, and with the totals that are
kept. An older checkout of Lamina lists the same sessions, if there is one beside.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
from msgspec.structs import replace

import lamina
from assembly import reply
from lamina.adapters.stores.jsonl import JsonlStore
from lamina.apps.wiring.folders import workspace_folder
from lamina.core.values.entry import SessionEntry

ROUNDS = 3
COMMAND = "import sys; from lamina.apps.cli import main; sys.argv[0] = 'lamina'; main()"


async def write_sessions(folder: Path, count: int, turns: int) -> int:
    """Writes the sessions; gives the entries of each."""
    store = JsonlStore(folder)
    async with await lamina.open_session("s0", store=store, target="openai:gpt-5") as session:
        for number in range(turns):
            turn = await session.prepare(f"Question {number}: what does a berth cost in May?")
            await turn.commit(reply("A berth costs ten a night. " * 8))
    header, *entries = (await store.read("s0")).entries.values()
    assert isinstance(header, SessionEntry)
    for number in range(1, count):
        journal = await store.create(replace(header, session=f"s{number}"))
        await journal.append(entries)
        await journal.close()
    return 1 + len(entries)


def list_them(data: Path, workspace: Path, sources: Path | None) -> tuple[float, bytes]:
    """Processor time of one listing, in seconds, and what it printed."""
    environment = os.environ | {"LAMINA_DATA": str(data), "PYTHONDONTWRITEBYTECODE": ""}
    if sources is not None:
        environment["PYTHONPATH"] = str(sources / "src")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", COMMAND, "sessions", "--json"]
    done = subprocess.run(command, cwd=workspace, env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sessions", type=int, default=340)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--beside", type=Path, help="a checkout of an older Lamina")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        data, workspace = Path(place, "data"), Path(place, "notes")
        workspace.mkdir()
        os.environ["LAMINA_DATA"] = str(data)
        folder = workspace_folder(workspace)
        entries = anyio.run(write_sessions, folder, args.sessions, args.turns)
        for index in folder.glob("sessions/*.index"):
            index.unlink()
        size = sum(file.stat().st_size for file in folder.glob("sessions/*.jsonl"))
        print(f"{args.sessions} sessions of {entries} entries, {size / 1e6:.0f} MB")
        empty = min(list_them(Path(place, "none"), workspace, None)[0] for _ in range(ROUNDS))
        print(f"{empty:>8.2f} s  no sessions at all")
        if args.beside:
            times = [list_them(data, workspace, args.beside)[0] for _ in range(ROUNDS)]
            print(f"{min(times):>8.2f} s  the older Lamina, every time")
        whole, first = list_them(data, workspace, None)
        print(f"{whole:>8.2f} s  the first time: every session is read")
        times = []
        for _ in range(ROUNDS):
            seconds, again = list_them(data, workspace, None)
            assert again == first
            times.append(seconds)
        print(f"{min(times):>8.2f} s  with kept totals")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
