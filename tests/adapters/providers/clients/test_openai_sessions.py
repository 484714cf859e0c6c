"""Whole sessions against an emulated OpenAI: its account of the cache and ours are the same."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.providers.clients.openai_scene import emulated, fault
from tests.adapters.providers.strict import png
from tests.fakes.providers import ProvidersFake

from lamina.apps.wiring.clients import Clients
from lamina.apps.wiring.runners import open_agent, open_chat
from lamina.core.values.event import UsageReported
from lamina.core.values.request import CacheVerdict
from lamina.core.values.settings import Settings
from lamina.emulators.answers import EmulatedAnswer, EmulatedCall, ScriptedAnswers
from lamina.emulators.openai.emulator import OpenAIEmulator
from lamina.errors import ProviderError

TURNS = 12
PERSONA = "You are the clerk of the harbour master, and you answer in few words. " * 60
TARGETS = ["openai:gpt-4o", "openai:gpt-5.6", "compatible:vllm/some-model"]


def says() -> ScriptedAnswers:
    return ScriptedAnswers([f"Berth {number} is free. " * 12 for number in range(7)])


def write_notes(folder: Path) -> None:
    for number in range(6):
        lines = [
            f"Berth {n} of pier {number} takes ships of {n * 7 + 20} metres." for n in range(60)
        ]
        (folder / f"pier{number}.md").write_text("\n".join(lines), "utf-8")
    (folder / "map.png").write_bytes(png(600, 400))


def markers(body: dict[str, Any]) -> int:
    return sum(
        "prompt_cache_breakpoint" in part
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    )


class Verdicts:
    """What was made of the usage of each request."""

    def __init__(self) -> None:
        self.found: list[CacheVerdict] = []

    async def __call__(self, event: object) -> None:
        if isinstance(event, UsageReported):
            assert event.verdict is not None
            self.found.append(event.verdict)


def check(
    emulator: OpenAIEmulator, verdicts: list[CacheVerdict], *, least: float, slack: int = 0
) -> None:
    """That we expected what the emulator found, and that this is the most it could have found."""
    rows = emulator.report.rows
    assert len(rows) == len(verdicts)
    for row, verdict in zip(rows, verdicts, strict=True):
        assert verdict.reported == row.usage.cached
        assert verdict.meaning in ("as_expected", "nothing_sent_before"), verdict
    expected = sum(verdict.expected for verdict in verdicts)
    reported = sum(verdict.reported for verdict in verdicts)
    assert abs(expected - reported) <= max(0.01 * reported, slack)
    # Every request but its own news could be read, had it been sent before.
    allowed = sum(row.usage.input for row in rows[:-1])
    assert reported >= least * allowed
    assert all(markers(body) <= 4 for body in emulator.bodies)


@pytest.mark.parametrize("target", TARGETS)
def test_twelve_turns_with_attachments_find_what_the_rules_allow(
    target: str, tmp_path: Path
) -> None:
    write_notes(tmp_path)

    async def main() -> None:
        async with emulated(target, answers=says()) as (emulator, client):
            heard = Verdicts()
            async with await open_chat(
                providers=ProvidersFake(client), target=target, workspace=tmp_path, system=PERSONA
            ) as chat:
                for turn in range(TURNS):
                    emulator.clock.move(20)
                    await chat.run(
                        f"Where does ship {turn} go?",
                        attach=[f"pier{turn // 2}.md"] if turn % 2 == 0 else [],
                        on_event=heard,
                    )
            check(emulator, heard.found, least=0.98)

    anyio.run(main)


@pytest.mark.parametrize("target", TARGETS)
def test_a_library_that_grows_is_found_as_far_as_it_stood_before(
    target: str, tmp_path: Path
) -> None:
    write_notes(tmp_path)

    async def main() -> None:
        async with emulated(target, answers=says()) as (emulator, client):
            heard = Verdicts()
            async with await open_chat(
                providers=ProvidersFake(client), target=target, workspace=tmp_path,
                system="Be brief.", settings=Settings(promotion="eager"),
            ) as chat:  # fmt: skip
                for turn in range(6):
                    attach = [f"pier{turn // 2}.md"] if turn % 2 == 0 else []
                    await chat.run(f"Where does ship {turn} go?", attach=attach, on_event=heard)
            for verdict in heard.found:
                assert abs(verdict.expected - verdict.reported) <= 16, verdict
            assert sum(verdict.reported for verdict in heard.found) > 5_000
            assert all(markers(body) <= 4 for body in emulator.bodies)

    anyio.run(main)


@pytest.mark.parametrize("target", TARGETS[:2])
def test_tools_and_eighteen_calls_at_once_leave_the_prefix_where_it_is(
    target: str, tmp_path: Path
) -> None:
    write_notes(tmp_path)

    def depth(berth: int) -> str:
        """How deep the water is at a berth."""
        return f"Berth {berth}: {berth + 4} metres at low tide, and more when the wind is west."

    def look(count: int) -> EmulatedAnswer:
        calls = (EmulatedCall(name="depth", arguments={"berth": n}) for n in range(count))
        return EmulatedAnswer(text="Let me see.", calls=tuple(calls))

    script: list[EmulatedAnswer | str] = [
        look(18),
        look(1),
        "Berth 7.",
        look(2),
        "Berth 3.",
        "None.",
    ]

    async def main() -> None:
        async with emulated(target, answers=ScriptedAnswers(script)) as (emulator, client):
            heard = Verdicts()
            async with await open_agent(
                providers=ProvidersFake(client), target=target, workspace=tmp_path,
                system=PERSONA, tools=[depth], settings=Settings(ask_before_tools="never"),
            ) as agent:  # fmt: skip
                answers = [
                    await agent.run(question, attach=["pier1.md"], on_event=heard)
                    for question in ("Where is it deep?", "And shallow?", "Dry?")
                ]
            assert [answer.text for answer in answers] == ["Berth 7.", "Berth 3.", "None."]
            assert [answer.requests for answer in answers] == [3, 2, 1]
            # Few requests: a count of ours that is off may fall into another step of 128.
            check(emulator, heard.found, least=0.95, slack=128)

    anyio.run(main)


@pytest.mark.parametrize("target", TARGETS[:2])
def test_a_picture_in_the_history_is_found_again(target: str, tmp_path: Path) -> None:
    write_notes(tmp_path)

    async def main() -> None:
        async with emulated(target, answers=says()) as (emulator, client):
            async with await open_chat(
                providers=ProvidersFake(client), target=target, workspace=tmp_path, system=PERSONA
            ) as chat:
                await chat.run("Where is the pier?", attach=["map.png", "pier1.md"])
                await chat.run("And the crane?")
            first, second = emulator.report.rows
            assert second.usage.cached >= first.usage.input - 128

    anyio.run(main)


def test_an_answer_that_breaks_off_is_kept_and_the_next_request_goes_on_from_it(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with emulated(answers=says(), faults=fault("silent")) as (emulator, client):
            async with await open_chat(
                providers=ProvidersFake(client), target=TARGETS[0], workspace=tmp_path,
                system=PERSONA * 2,
            ) as chat:  # fmt: skip
                with pytest.raises(ProviderError, match="what came of it is kept"):
                    await chat.run("Which berth?")
                answer = await chat.run("Go on.")
            assert answer.ending == "answered"
            roles = [message["role"] for message in emulator.bodies[-1]["messages"]]
            assert roles == ["system", "user", "assistant", "user"]
            assert emulator.bodies[-1]["messages"][2]["content"].startswith("Berth 0 is free.")
            assert emulator.report.rows[-1].usage.cached > 1_024

    anyio.run(main)


def test_a_server_is_found_by_the_address_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with emulated("compatible:any", answers=says(), key="") as (_, client):
            monkeypatch.setenv("LAMINA_COMPATIBLE_URL", client._target.base_url)
            clients = Clients()
            async with await open_chat(
                providers=clients, target="compatible:any", workspace=tmp_path
            ) as chat:
                answer = await chat.run("Which berth?")
                assert answer.text.startswith("Berth 0 is free.")
            found: Any = await clients.provider(client._target)
            await found.aclose()

    anyio.run(main)
