"""A session that moves from one house to another in the middle, and back.

Law: whoever takes over is sent everything that was said, in a form that it accepts; what only
another one can read, as the signature of a thought, it is not sent.
"""

from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.adapters.providers.strict import png
from tests.contracts.houses import HOUSES, LOCAL, House, Town
from tests.contracts.talk import (
    Watch,
    calling,
    messages,
    replies,
    requests,
    require_sound,
    strings,
    text_of,
)
from tests.fakes.renderers import WORDS
from tests.fakes.sessions import note
from tests.fakes.tools import CLOSED, ToolHostFake, tool

import lamina
from lamina.adapters.providers.wires.gemini import SKIPPED_SIGNATURE
from lamina.apps.wiring.runners import open_agent
from lamina.core.text import UNSEEN_PICTURE
from lamina.core.values.entry import MessageEntry
from lamina.core.values.envelope import Options
from lamina.core.values.item import Item
from lamina.core.values.message import Message, Text, Thinking, ToolCall, ToolResult
from lamina.core.values.settings import Settings
from lamina.core.values.tool import DENIED
from lamina.emulators.answers import EmulatedAnswer
from lamina.engine.runners.runner import AgentRunner, Answer
from lamina.engine.session.session import Session
from lamina.errors import ProviderError

pytestmark = pytest.mark.anyio
PAIRS = list(permutations(HOUSES, 2))
# A note and what it became; not a file, whose times would be other bytes for every test.
FOUR = note("pier.md", "Pier 1 takes four boats.")
FIVE = note("pier.md", "Pier 1 takes five boats since the summer.")
PICTURE = "iVBORw0KGgo"  # how every PNG begins in base64
# Vendors whose thoughts are signed and go back to them.
SIGNING = ("anthropic", "gemini")


class Journey:
    """A session in a folder, with tools, between houses."""

    def __init__(self, town: Town, folder: Path, options: Options) -> None:
        self.town = town
        self.options = options
        self.folder = folder
        self.store = lamina.MemoryStore()
        self.watch = Watch()
        (folder / "map.png").write_bytes(png(64, 48))

    async def open(self, house: House, *, most: int = 2) -> AgentRunner:
        host = ToolHostFake(
            tool("depth", description="Tells how deep the water is.", parameters=CLOSED),
            tool("gate", "required", description="Opens a gate.", parameters=CLOSED),
        )
        return await open_agent(
            "moving", providers=self.town, tools=host, max_requests=most, target=house.target,
            workspace=self.folder, store=self.store, system="You keep a harbour. Be brief.",
            options=self.options, settings=Settings(target=house.target),
        )  # fmt: skip

    async def ask(
        self, agent: AgentRunner, text: str, *attach: str | Item, of: House | None = None
    ) -> Answer:
        target = of.target if of else None
        return await agent.run(text, attach=attach, target=target, on_event=self.watch)


async def settle(agent: AgentRunner, answer: Answer) -> Answer:
    """Denies what waits, until there is nothing that does."""
    while answer.ending == "waiting":
        for wanted in answer.waiting_calls:
            await agent.decide(wanted.call.id, "deny")
        answer = await agent.resume()
    return answer


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS])
async def test_a_session_moves_and_comes_back(
    first: str, second: str, town: Town, tmp_path: Path
) -> None:
    here, there = town[first], town[second]
    here.says(
        calling("depth", "gate", "depth", thinking="I should look."),
        EmulatedAnswer(text="Two boats can come.", thinking="It is deep enough."),
        EmulatedAnswer(text="They are the Anna, the Berta and the Clara.", thinking="Which ones?"),
        calling("gate", text="I open it.", thinking="They want in."),
        "Welcome back.",
        "Still here.",
    )
    there.says(
        calling("depth", "depth", text="I look, too.", thinking="What was it?"),
        EmulatedAnswer(text="Three boats now.", thinking="The note changed."),
    )
    # The embedded model takes its time: where it has only to understand, it says little.
    options = Options(reasoning="low", max_tokens=None if there.scripted else 16)
    journey = Journey(town, tmp_path, options)
    async with await journey.open(here, most=2 if here.scripted else 1) as agent:
        begun = await journey.ask(agent, "What can come in?", "map.png", FOUR)
        await settle(agent, begun)
        if here.scripted:
            here.fails("silent")
            with pytest.raises(ProviderError, match="broke off"):
                await journey.ask(agent, "Which boats?")
            assert messages(agent.session)[-1].text.startswith("They")
            # Nobody decides: the program ends with the call under way.
            await journey.ask(agent, "Open the gate at pier 1.")
            assert [call.name for call in agent.session.pending_calls] == ["gate"]
    async with await journey.open(here, most=2 if there.scripted else 1) as agent:
        moved = await settle(
            agent, await journey.ask(agent, "And what now?", FIVE, "map.png", of=there)
        )
        assert moved.ending in ("answered", "limit")
        handed = there.bodies[0]
        came = said_before(agent.session, "And what now?")
        require_all(came, handed)
        require_picture(handed, there)
        assert "takes five boats" in text_of(handed)
        back = await settle(agent, await journey.ask(agent, "Are you there?", of=here))
        returned = here.bodies[-back.requests]
        require_all(said_before(agent.session, "Are you there?"), returned)
        if here.scripted:
            stays = await journey.ask(agent, "Still?")
            assert (back.text, stays.text) == ("Welcome back.", "Still here.")
            assert [call.name for call in came_calls(came)][:4] == [
                "depth", "gate", "depth", "gate",
            ]  # fmt: skip
            results = [block.text for message in came for block in results_of(message)]
            assert results[1:4:2] == [DENIED, WORDS.call_superseded]
        if there.scripted:
            assert moved.text == "Three boats now."
        if there.name == "gemini" and any(message.calls for message in came):
            # It signs its own calls; of those that it did not make it is told so.
            assert SKIPPED_SIGNATURE in strings(handed)
        for house in (here, there):
            assert [row.status for row in house.rows] == [200] * len(house.rows), house.rows
        require_own_signatures(agent.session, town)
        require_boundaries(agent.session, here, there)
        require_verdicts(agent.session)
        if here.name in SIGNING:
            own = signatures(agent.session)[here.name]
            assert own & set(strings(returned))
        require_sound(agent.session)


# -- what must hold -------------------------------------------------------------------------------


def said_before(session: Session, question: str) -> list[Message]:
    """The conversation in front of a question."""
    found: list[Message] = []
    for message in messages(session):
        if message.role == "user" and message.text == question:
            return found
        found.append(message)
    raise AssertionError(f"{question!r} was not asked")


def came_calls(conversation: list[Message]) -> list[ToolCall]:
    return [call for message in conversation for call in message.calls]


def results_of(message: Message) -> list[ToolResult]:
    return [block for block in message.blocks if isinstance(block, ToolResult)]


def require_all(conversation: list[Message], body: Mapping[str, Any]) -> None:
    """That a request says everything that was said before it."""
    sent = text_of(body)
    for message in conversation:
        for block in message.blocks:
            match block:
                case Text(text=text) | ToolResult(text=text):
                    assert says(sent, text), (text, sent)
                case ToolCall(name=name):
                    assert name in sent
                case _:
                    pass


def require_picture(body: Mapping[str, Any], house: House) -> None:
    """That the picture is there, or what stands for it where none can be seen."""
    sent = text_of(body)
    assert (PICTURE in sent, UNSEEN_PICTURE in sent) == (house.name != LOCAL, house.name == LOCAL)


def says(sent: str, text: str) -> bool:
    """Whether a text stands in what was sent, as it is or as the text of a JSON value."""
    written = msgspec.json.encode(text.strip()).decode()[1:-1]
    return text.strip() in sent or written in sent


def signatures(session: Session) -> dict[str, set[str]]:
    """What was signed, by whose signature it is. Of those who sign calls there is one."""
    found: dict[str, set[str]] = {name: set() for name in HOUSES}
    for entry in session.entries:
        for block in entry.message.blocks if isinstance(entry, MessageEntry) else ():
            match block:
                case Thinking(signature=signature, provider=provider) if signature:
                    found[provider].add(signature)
                case ToolCall(signature=signature) if signature:
                    found["gemini"].add(signature)
                case _:
                    pass
    return found


def require_own_signatures(session: Session, town: Town) -> None:
    signed = signatures(session)
    for house in town:
        others = set().union(*(signed[name] for name in signed if name != house.name))
        for body in house.bodies:
            assert not others & set(strings(body)), house.name


def require_boundaries(session: Session, here: House, there: House) -> None:
    """That the moves, and only they, are changes of the model, each with its reason."""
    changes: list[tuple[str, str]] = []
    before = ""
    for request in requests(session):
        kinds = {boundary.kind: boundary.reason for boundary in request.context.boundaries}
        if "model_change" in kinds:
            reason = kinds["model_change"]
            assert before in reason
            assert request.target in reason
            changes.append((before, request.target))
        before = request.target
    assert changes == [(here.target, there.target), (there.target, here.target)]


def require_verdicts(session: Session) -> None:
    """That nobody is expected to have cached what only another one read, and that what the library
    cannot hold has left it with a word, unless it is sent again."""
    moved = {
        request.id: request
        for request in requests(session)
        if any(boundary.kind == "model_change" for boundary in request.context.boundaries)
    }
    judged = [reply.verdict for reply in replies(session) if reply.request in moved]
    assert [verdict.expected for verdict in judged if verdict] == [0, 0]
    assert all(v.meaning in ("model_changed", "more_than_expected") for v in judged if v), judged
    there, back = moved.values()
    assert "image:map.png" in {item.item for item in there.context.items}
    for request, is_out in ((there, False), (back, True)):
        left = {(omission.what, omission.reason) for omission in request.context.left_out}
        assert (("image:map.png", "has_images") in left) == is_out
