"""Drawn sessions with Claude's models, some of which bind thinking to what stood before it, and a
vendor that holds every request against that by its bytes.

    python -m tests.core.layers.bound_sessions [--count 1000] [--vendor rules] [--json FILE]

The vendor is the emulator, or a second reading of the vendor's rules. Either knows requests and
signatures, and nothing of how Lamina decides what to send. Thinking that was left out is tried at
its place, so that what could have been sent is known. The same sessions are played once more by a
client that sends all thinking and leaves it to the vendor to drop what fails.
"""

import argparse
import json
import logging
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import date
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import pytest
from msgspec import Struct
from msgspec.structs import asdict, replace
from tests.golden.digests import run
from tests.golden.draw import Draw
from tests.golden.steps import Steps
from tests.golden.talk import Talk
from tests.golden.tape import Tape
from tests.golden.wires import ANTHROPIC, CHAT, Calls, WireBook

from lamina import JsonlStore, MemoryStore
from lamina.core.audit.verification import verify
from lamina.core.values.message import Message, Text, Thinking
from lamina.emulators.anthropic.bound_thinking import (
    ThinkingControls,
    check_controls,
    check_thinking,
    sign_answer,
)
from lamina.engine.session.turn import Turn

JSON = Mapping[str, Any]
_EARLIER = ("claude-opus-5", "claude-sonnet-5")
# Whose thinking each of them reads besides its own.
READS: Mapping[str, tuple[str, ...]] = {
    "claude-fable-5-1": (*_EARLIER, "claude-opus-5-5"),
    "claude-opus-5-5": _EARLIER,
    "claude-sonnet-5-5": ("claude-sonnet-5",),
}
BINDING = tuple(
    replace(ANTHROPIC, model=model, binds_thinking=True, reads_thinking=reads, loads_tools=True)
    for model, reads in READS.items()
)
FREE = tuple(replace(ANTHROPIC, model=model) for model in _EARLIER)
TARGETS = (*BINDING, *BINDING, *FREE, CHAT)


class Tally(Struct, kw_only=True):
    """What came of a number of sessions: requests, those that a vendor would refuse, thinking that
    a model could read, thinking that failed, and thinking that would not have failed."""

    sessions: int = 0
    requests: int = 0
    refused: int = 0
    kept: int = 0
    dropped: int = 0
    left_out: int = 0
    valid_left_out: int = 0
    reported: int = 0

    def __iadd__(self, other: "Tally") -> "Tally":
        for name, count in asdict(other).items():
            setattr(self, name, getattr(self, name) + count)
        return self


# -- vendors ---------------------------------------------------------------------------------------


class Verdict(Struct, frozen=True, kw_only=True):
    """What a vendor makes of one block of thinking."""

    signature: str
    is_read: bool
    is_valid: bool


class Vendor(Protocol):
    def sign(self, blocks: Sequence[dict[str, Any]], body: JSON) -> list[dict[str, Any]]:
        """The blocks of an answer to `body`, its thinking signed."""

    def judge(self, body: JSON) -> list[Verdict]:
        """What becomes of each block of thinking in a request."""


class EmulatedVendor:
    """What `lamina emulate anthropic` does with a young account's request that sets nothing."""

    def __init__(self) -> None:
        self._targets = {target.model: target for target in (*BINDING, *FREE)}
        self._controls = ThinkingControls(has_beta=False, account="a", since=date(2026, 9, 15))

    def sign(self, blocks: Sequence[dict[str, Any]], body: JSON) -> list[dict[str, Any]]:
        return sign_answer(blocks, body, self._targets[body["model"]], "a")

    def judge(self, body: JSON) -> list[Verdict]:
        unset = {name: value for name, value in body.items() if name != "thinking"}
        target = self._targets[body["model"]]
        check_controls(unset, target, has_beta=False)
        check = check_thinking(unset, target, self._controls)
        return [
            Verdict(
                signature=signature_of(block),
                is_read=(path := f"messages.{place}.content.{index}") not in check.dropped,
                is_valid=path not in check.refused,
            )
            for place, message in enumerate(body["messages"])
            for index, block in enumerate(message["content"])
            if is_thought(block)
        ]


class RulesVendor:
    """A second reading of the vendor's rules, which shares no line with the emulator."""

    def sign(self, blocks: Sequence[dict[str, Any]], body: JSON) -> list[dict[str, Any]]:
        previous = next((v.signature for v in reversed(self.judge(body))), "")
        signed: list[dict[str, Any]] = []
        for block in blocks:
            if is_thought(block):
                name = "signature" if block["type"] == "thinking" else "data"
                previous = _sign(body, signed, previous)
                block = block | {name: previous}
            signed.append(block)
        return signed

    def judge(self, body: JSON) -> list[Verdict]:
        model, previous = body["model"], ""
        verdicts = []
        for place, message in enumerate(body["messages"]):
            for index, block in enumerate(message["content"]):
                if not is_thought(block):
                    continue
                signature = signature_of(block)
                bound = json.loads(b64decode(signature))
                is_valid = True
                if model in READS and "prefix" in bound:
                    before = [*body["messages"][:place]]
                    before.append({"role": "assistant", "content": message["content"][:index]})
                    is_valid = bound["prefix"] == _prefix(body, before)
                    is_valid = is_valid and previous in ("", bound["follows"])
                is_read = bound["model"] in (model, *READS.get(model, ()))
                verdicts.append(Verdict(signature=signature, is_read=is_read, is_valid=is_valid))
                previous = signature
        return verdicts


VENDORS: Mapping[str, type[Vendor]] = {"emulator": EmulatedVendor, "rules": RulesVendor}


def _sign(body: JSON, content: Sequence[JSON], previous: str) -> str:
    model = body["model"]
    bound: dict[str, str] = {"model": model}
    if model in READS:
        messages = [*body["messages"], {"role": "assistant", "content": content}]
        bound |= {"prefix": _prefix(body, messages), "follows": previous}
    # No two are alike, as no two of a vendor's are.
    bound["number"] = sha256(json.dumps([body, content], sort_keys=True).encode()).hexdigest()
    return b64encode(json.dumps(bound).encode()).decode()


def _prefix(body: JSON, messages: Sequence[JSON]) -> str:
    """The digest of what is compared: tools that count, system and messages, without thinking."""
    blocks = [
        (message["role"], [_plain(block) for block in message["content"] if not is_thought(block)])
        for message in messages
    ]
    referenced = {
        part["tool_name"]
        for _, parts in blocks
        for block in parts
        if isinstance(block.get("content"), list)
        for part in block["content"]
        if part["type"] == "tool_reference"
    }
    tools = [
        tool
        for tool in body.get("tools", ())
        if not tool.get("defer_loading") or tool["name"] in referenced
    ]
    system = [_plain(block) for block in body.get("system", ())]
    compared = [tools, system, [pair for pair in blocks if pair[1] or pair[0] == "assistant"]]
    return sha256(json.dumps(compared, sort_keys=True).encode()).hexdigest()


def _plain(block: JSON) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control"}


def is_thought(block: JSON) -> bool:
    return block["type"] in ("thinking", "redacted_thinking")


def signature_of(block: JSON) -> str:
    return str(block.get("signature") or block.get("data"))


# -- sessions --------------------------------------------------------------------------------------


class BoundTalk(Talk):
    """A session whose every request to Claude is judged."""

    name = "bound"
    targets = TARGETS

    def __init__(self, vendor: Vendor, *given: Any) -> None:
        super().__init__(*given)
        self.vendor = vendor
        self.world.book = WireBook(TARGETS)
        self.tally = Tally(sessions=1)
        self.problems: list[str] = []
        self._body: dict[str, Any] = {}

    def sent(self, turn: Turn) -> Turn:
        body = turn.request()
        self._body = body
        target = self.world.book.find(turn.context.target)
        if target.wire != "anthropic":
            return turn
        verdicts = self.vendor.judge(body)
        self.tally.requests += 1
        failing = [verdict for verdict in verdicts if verdict.is_read and not verdict.is_valid]
        self.tally.refused += bool(failing)
        self.tally.dropped += len(failing)
        self.tally.kept += sum(verdict.is_read and verdict.is_valid for verdict in verdicts)
        if failing:
            self.problems.append(f"request {turn.id} would be refused")
        left_out = list(self._left_out(turn, {verdict.signature for verdict in verdicts}))
        self.tally.left_out += len(left_out)
        for message, thought in left_out if target.binds_thinking else ():
            if _would_be_valid(self.vendor, turn, message, thought):
                self.tally.valid_left_out += 1
                self.problems.append(f"request {turn.id} leaves out thinking of {message.id}")
        reports = [o for o in turn.context.left_out if o.reason == "thinking"]
        self.tally.reported += len(reports)
        return turn

    def _left_out(self, turn: Turn, there: set[str]) -> Iterator[tuple[Message, Thinking]]:
        for message in self.session.envelope.cached:
            for block in message.blocks:
                if not isinstance(block, Thinking) or block.provider != "anthropic":
                    continue
                if (block.signature or block.redacted) not in there:
                    yield message, block

    def reply(self, turn: Turn, text: str, calls: Calls) -> object:
        if self._body.get("model") not in {target.model for target in (*BINDING, *FREE)}:
            return super().reply(turn, text, calls)
        return claude_reply(self.draw, self.vendor, self._body, text, calls, self.number)


def _would_be_valid(vendor: Vendor, turn: Turn, message: Message, thought: Thinking) -> bool:
    """Whether a block that was left out would pass at its place. Every segment is one block, so
    that place can be counted out."""
    behind = message.blocks[message.blocks.index(thought) + 1 :]
    contents = [block for block in behind if not isinstance(block, Thinking)]
    segments = [
        segment
        for segment in turn.prompt.since(turn.prompt.ends[0])
        if not (isinstance(segment.content, Text) and not segment.content.text.strip())
    ]
    places = [
        place
        for place, segment in enumerate(segments)
        if segment.message == message.id and segment.content in contents
    ]
    if not places:
        return False
    tried = deepcopy(turn.request())
    for wire_message in tried["messages"]:
        if places[0] < len(wire_message["content"]):
            block = {"type": "thinking", "thinking": thought.text, "signature": thought.signature}
            if thought.redacted:
                block = {"type": "redacted_thinking", "data": thought.redacted}
            wire_message["content"].insert(places[0], block)
            break
        places[0] -= len(wire_message["content"])
    signature = thought.signature or thought.redacted
    return any(v.is_valid and v.is_read for v in vendor.judge(tried) if v.signature == signature)


def claude_reply(
    draw: Draw, vendor: Vendor, body: JSON, text: str, calls: Calls, number: int
) -> dict[str, Any]:
    """An answer of Claude's, with thinking before it and between its parts."""
    content: list[dict[str, Any]] = []

    def think() -> None:
        block: dict[str, Any] = {"type": "redacted_thinking"}
        if draw.chance(0.8):
            block = {"type": "thinking", "thinking": draw.pick(("", "Let me see."))}
        content.append(block)

    if draw.chance(0.7):
        think()
    if draw.chance(0.2):
        think()
    if text:
        content.append({"type": "text", "text": text})
    if text and draw.chance(0.2):
        think()
        content.append({"type": "text", "text": draw.words(3)})
    for call, name, given in calls:
        if draw.chance(0.2):
            think()
        content.append({"type": "tool_use", "id": call, "name": name, "input": given})
    return {
        "id": f"msg_{number}",
        "model": body["model"],
        "content": vendor.sign(content, body),
        "stop_reason": "tool_use" if calls else draw.pick(("end_turn", "end_turn", "max_tokens")),
        "usage": {"input_tokens": 100, "cache_read_input_tokens": 0, "output_tokens": 5},
    }


async def play(seed: int, vendor: Vendor, place: Path) -> BoundTalk:
    """Plays the session of a seed, and verifies its journal."""
    draw = Draw(seed)
    target = draw.pick(BINDING)
    store = JsonlStore(place) if draw.chance(0.3) else MemoryStore()
    talk = BoundTalk(vendor, draw, Tape(), store, target)
    await talk.begin()
    steps = Steps(talk)
    for _ in range(draw.number(3, 10)):
        while draw.chance(0.4):
            await steps.take()
        await talk.attempt(talk.ask)
    await talk.session.close()
    verification = verify(await store.read(talk.name), talk.world.book)
    if not verification.sound:
        talk.problems.append("the journal does not verify")
    return talk


def play_many(seeds: Sequence[int], vendor: Vendor, place: Path) -> tuple[Tally, list[str]]:
    """What came of the sessions of these seeds, and what was wrong with each."""
    tally, problems = Tally(), []
    for seed in seeds:
        talk = run(play, seed, vendor, place / str(seed))
        tally += talk.tally
        problems += [f"session {seed}: {problem}" for problem in talk.problems]
    return tally, problems


def play_unplanned(seeds: Sequence[int], vendor: Vendor, place: Path) -> Tally:
    """The same sessions by a client that sends all thinking, and has the vendor drop what fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lamina.core.layers.assembler.is_valid", lambda block, standing: True)
        return play_many(seeds, vendor, place)[0]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.core.layers.bound_sessions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=1_000, help="sessions (1,000)")
    parser.add_argument("--vendor", choices=VENDORS, default="emulator", help="who judges")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    given = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    with TemporaryDirectory() as folder:
        seeds, vendor = range(given.count), VENDORS[given.vendor]()
        tally, problems = play_many(seeds, vendor, Path(folder) / "planned")
        unplanned = play_unplanned(seeds, vendor, Path(folder) / "unplanned")
    figures = {"planned": asdict(tally), "drop_block alone": asdict(unplanned)}
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))
    for problem in problems[:20]:
        sys.stdout.write(f"{problem}\n")
    width = max(map(len, figures))
    sys.stdout.write(" " * width + "".join(f"{name:>16}" for name in asdict(tally)) + "\n")
    for name, row in figures.items():
        sys.stdout.write(f"{name:{width}}" + "".join(f"{n:16,}" for n in row.values()) + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
