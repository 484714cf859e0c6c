"""The same conversation gives the same bytes in every process, whatever the hash seed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

SCRIPT = dedent("""
    import json
    import anyio
    import lamina
    from lamina.types import ItemId, note_id

    class Clock:
        time = 1_794_000_000.0
        def now(self):
            return self.time

    def reply(text):
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}

    async def main():
        clock, made = Clock(), []
        parameters = {"type": "object", "properties": {name: {} for name in "zyxab"}}
        for promotion in ("lazy", "eager"):
            session = await lamina.open_session(
                "s", system="You are terse.", target="openai:gpt-4o", clock=clock,
                settings=lamina.Settings(promotion=promotion), store=lamina.MemoryStore(),
                tools=[lamina.ToolDefinition(name="find", parameters=parameters)],
                always=[lamina.Item(id=ItemId(f"rule:{name}"), content=name) for name in "qpo"],
            )
            notes = [lamina.Item(id=note_id(f"{n}.md"), content=n * 9) for n in "dcba"]
            for number in range(4):
                clock.time += 200 * number
                turn = await session.prepare(f"Q{number}", attach=notes[: number + 1])
                made.append([turn.layer_digests, turn.request()])
                await turn.commit(reply(f"A{number}"))
        print(json.dumps(made))

    anyio.run(main)
""")


def play(seed: str, folder: Path) -> list[list[dict[str, object]]]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"PYTHONHASHSEED": seed},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    made: list[list[dict[str, object]]] = json.loads(done.stdout)
    return made


def test_layer_digests_and_requests_are_equal_for_every_hash_seed(tmp_path: Path) -> None:
    one, two = play("1", tmp_path), play("4242", tmp_path)
    assert one == two
    assert len(one) == 8
    assert len({json.dumps(digests) for digests, _ in one}) > 4
