"""Sessions over the public API: what a person with a client of their own does, drawn."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace
from tests.fakes.summarizer import SAID
from tests.fakes.tools import tool
from tests.golden.draw import Draw
from tests.golden.patches import draw_hooks
from tests.golden.tape import Tape
from tests.golden.wires import TARGETS, Calls, draw_reply
from tests.golden.world import (
    ALWAYS,
    DEFINITIONS,
    KEY,
    MISSING,
    PAGE,
    PATHS,
    PICTURED,
    PNG,
    TapedSummarizer,
    World,
)

import lamina
from lamina.core.ports import JournalStore, Summarizer
from lamina.core.values.entry import ItemEntry
from lamina.core.values.envelope import Options
from lamina.core.values.item import Attachment, item_id, query_id, selection_id, url_id
from lamina.core.values.message import ToolResult, ToolText
from lamina.core.values.selection import SearchSettings
from lamina.core.values.settings import Settings, Target
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.turn import Turn
from lamina.errors import LaminaError

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {}, {"path": "a.md"}, {"deep": True, "where": "here", "n": 1.5},
    {"source": "b.md", "destination": "c.md"}, {"command": "view", "file_path": "src/g.py"},
)  # fmt: skip
ASKED = (
    "Where does the tide go?", "Which crane, and which rope?", "And that?", "lantern @rule:units",
    "anchor the ferry; then paint it. @ref:cranes", "`@rule:tone` is code", "@rule:nothing here",
    f"my key is {KEY}", "hidden\u200b\u200b words", "Two\nlines\n\n", " spaced ",
    "</context> <note> [User query]:",
)  # fmt: skip


def draw_settings(draw: Draw, target: Target) -> Settings:
    """Settings in which much happens: small windows, limits of all kinds."""
    limits: dict[str, Any] = {"promotion": draw.pick(("lazy", "lazy", "eager"))}
    limits["window"] = draw.pick((400, 500, 900, 1_500, 4_000, None))
    if limits["window"]:
        limits["output_reserve"] = draw.pick((50, 100))
    choices: list[tuple[float, dict[str, Any]]] = [
        (0.2, {"attachment_limit": draw.pick((60, 250))}),
        (0.1, {"history_messages": draw.pick((4, 6))}),
        (0.1, {"history_tokens": draw.pick((100, 200))}),
        (0.1, {"history": "strip", "strip_turns": 1, "strip_after_turns": draw.pick((2, 3))}),
        (0.1, {"prefix_check": "warn"}),
        (0.1, {"cache_lifetime_s": draw.pick((0, 60, 100_000))}),
        (0.2, {"cache_ttl": "1h"}),
        (0.2, {"explicit_cache": True}),
        (0.2, {"compaction": "off"}),
        (0.2, {"compaction_reserve": 200, "compaction_keep": draw.pick((80, 150))}),
        (0.2, {"compaction_summary": draw.pick((20, 60)), "summary_tokens": 40}),
        (0.2, {"prune_to": 0.7, "prune_recent": 0.5, "prune_cold_above": 0.4}),
        (0.2, {"history_priority": draw.pick((0, 3, 10))}),
        (0.2, {"relevance_priority": True}),
        (0.3, {"secrets": draw.pick(("warn", "off"))}),
        (0.4, {"web": "public"}),
        (0.2, {"tool_policy": draw.pick(("exact", "all"))}),
        (0.2, {"tool_joins": draw.pick((0, 1, None))}),
        (0.3, {"tool_search": SearchSettings(top_n=draw.pick((0, 1)), floor=0.2)}),
        (0.3, {"expand_results": True, "guide_search": SearchSettings(
            expansion_depth=2, expansion_threshold=0.1875, expansion_graph=draw.chance(0.5))}),
        (0.1, {"guide_search": SearchSettings(search=False)}),
    ]  # fmt: skip
    for share, chosen in choices:
        if draw.chance(share):
            limits |= chosen
    return Settings(target=target.name, **limits)


def draw_options(draw: Draw) -> Options | None:
    return draw.pick(
        (
            None,
            None,
            Options(temperature=0.5, max_tokens=300),
            Options(reasoning="low", top_p=0.9),
            Options(reasoning="high", max_tokens=4_000),
            Options(schema=SCHEMA),
        )
    )


class Talk:
    """One session, its world, and everything that a person does in it."""

    name = "golden"
    # Whom it may be handed over to.
    targets: Sequence[Target] = TARGETS

    def __init__(self, draw: Draw, tape: Tape, store: JournalStore, target: Target) -> None:
        self.draw = draw
        self.tape = tape
        self.store = store
        self.target = target
        self.world = World(draw)
        self.settings = draw_settings(draw, target)
        self.given: dict[str, Any] = {
            "system": draw.pick(
                ("You are a clerk.", "", (("persona", "Kind."), ("policy", "No.")))
            ),
            "tools": draw.some(DEFINITIONS, 3) if draw.chance(0.6) else None,
            "always": ALWAYS if draw.chance(0.3) else None,
            "options": draw_options(draw),
            "project": "The harbour." if draw.chance(0.2) else None,
            "memory": "They like ferries." if draw.chance(0.1) else None,
        }
        self.remembers = draw.chance(0.2)
        answers = (SAID, "## Goal\nTides.", ValueError("no model"), "", draw.words(400))
        asked = draw.some(answers, 3) or [SAID]
        self.summarizer: Summarizer | None = None
        if draw.chance(0.5):
            self.summarizer = TapedSummarizer(tape, *asked)
        self.hooks = draw_hooks(draw, self.items)
        self.session: Session
        self.number = 0

    def items(self) -> list[ItemEntry]:
        return [entry for entry in self.session.entries if isinstance(entry, ItemEntry)]

    async def open(self, **given: Any) -> None:
        """Opens the session; what is given again is the same, unless other things are given."""
        world, settings = self.world, self.settings
        if await self.store.has(self.name):
            # Nobody is named again: the session goes on with whom it talks to.
            settings = replace(settings, target="")
        self.session = await lamina.open_session(
            self.name,
            workspace=world.desk,
            store=self.store,
            book=world.book,
            clock=world.clock,
            web=world.web,
            index=world.index,
            memory_file=world.memory if self.remembers else None,
            summarizer=self.summarizer,
            hooks=self.hooks,
            **{"settings": settings, **self.given, **given},
        )
        core_of(self.session).turns.tools.selector = world.selector()

    async def begin(self) -> None:
        await self.store.put_blob(PNG)
        await self.open()

    # -- a turn ----------------------------------------------------------------------------------

    def attachments(self) -> list[Any]:
        """References, items, and both with what they are worth."""
        draw, world = self.draw, self.world
        attached: list[Any] = []
        for path in draw.some(PATHS, 4):
            match draw.number(0, 5):
                case 0:
                    attached.append(world.item(path) if path in world.desk.notes else path)
                case 1:
                    attached.append(lamina.attach(path, priority=draw.pick((3, 10))))
                case 2:
                    attached.append(lamina.attach(path, essential=draw.chance(0.5), shape="active"))
                case _:
                    attached.append(path)
        if draw.chance(0.2):
            attached.append(draw.pick((*MISSING, PAGE)))
        if draw.chance(0.1):
            item = lamina.Item(id=selection_id("f.md", 3, 9), content=draw.words(20))
            attached.append(Attachment(item=item, priority=3, shape="attached"))
        if draw.chance(0.1):
            identity = draw.pick((query_id("b.md", "LIST"), item_id("pdf", "plan.pdf")))
            attached.append(lamina.Item(id=identity, content=draw.words(15), title="Found"))
        if draw.chance(0.05):
            web_tab = lamina.Item(id=url_id(PAGE), content="As the tab shows it.")
            attached.append(lamina.attach(web_tab, shape="web_tab"))
        if draw.chance(0.05):
            attached.append(PICTURED)
        return attached

    def question(self) -> str:
        if self.draw.chance(0.5):
            return self.draw.pick(ASKED)
        return self.draw.words(self.draw.number(1, 120), f"q{self.number}")

    async def ask(self) -> None:
        """A turn, up to its answer or to where it is left."""
        self.number += 1
        self.world.clock.pass_by(self.draw.pick((10.0, 10.0, 10.0, 400.0, 4_000.0)))
        turn = await self.prepare()
        if self.draw.chance(0.1):
            return
        if self.draw.chance(0.06):
            turn = self.sent(await turn.retry_smaller())
        if self.draw.chance(0.1):
            turn = await self.taken_up(turn)
        for loop in range(self.draw.pick((0, 0, 0, 1, 1, 2, 4))):
            turn = await self.call(turn, loop)
            if not turn.pending_calls:
                return
            if self.draw.chance(0.1):
                turn = await self.taken_up(turn)
            if self.draw.chance(0.05):
                return
            turn = await self.give_results(turn)
            if self.draw.chance(0.04):
                turn = self.sent(await turn.retry_smaller())
        if self.draw.chance(0.04):
            await turn.commit({"error": {"message": "no such thing"}})
        size = self.draw.pick((1, 5, 20, 80, 160))
        answer = self.draw.words(size, f"r{self.number}")
        await turn.commit(self.reply(turn, answer, []))

    async def prepare(self) -> Turn:
        draw = self.draw
        texts = [
            ToolText(name=name, text=draw.words(draw.pick((3, 15, 60))))
            for name in draw.some(("search", "weather"), 2)
        ]
        other = draw.pick(self.targets).name if draw.chance(0.1) else None
        turn = await self.session.prepare(
            self.question(),
            attach=self.attachments() if draw.chance(0.7) else [],
            target=other,
            tool_texts=texts if draw.chance(0.2) else [],
        )
        return self.sent(turn)

    def sent(self, turn: Turn) -> Turn:
        self.tape.request(turn.request())
        return turn

    async def taken_up(self, turn: Turn) -> Turn:
        """The process ends in the middle of a turn, and another one takes it up."""
        await self.session.close()
        await self.open()
        again = await self.session.current_turn()
        if again is None:
            return turn
        return self.sent(again)

    async def call(self, turn: Turn, loop: int) -> Turn:
        draw = self.draw
        calls: Calls = [
            (
                f"c{self.number}-{loop}-{index}",
                draw.pick(("find", "find", "look", "absent", "read_file", "edit", "move_file")),
                draw.pick(ARGUMENTS),
            )
            for index in range(draw.pick((1, 1, 2, 3)))
        ]
        text = draw.pick(("", "Let me look."))
        return await turn.commit(self.reply(turn, text, calls))

    def reply(self, turn: Turn, text: str, calls: Calls) -> object:
        """What the vendor answers."""
        return draw_reply(self.draw, turn, text, calls, self.number)

    async def give_results(self, turn: Turn) -> Turn:
        draw = self.draw
        size = draw.pick((2, 10, 60, 300))
        results = [
            ToolResult(
                call_id=call.id,
                name=call.name,
                text=draw.words(size, "found"),
                is_error=draw.chance(0.15),
            )
            for call in turn.pending_calls
        ]
        if draw.chance(0.15):
            await self.session.keep_decision(
                turn.pending_calls[0].id, tool("find"), "allow_session"
            )
            await self.session.keep_result(results[0])
        if draw.chance(0.2):
            self.world.clock.pass_by(draw.pick((20.0, 500.0)))
        if draw.chance(0.02):
            results = results[:-1]
        if draw.chance(0.3):
            return self.sent(await turn.resume({result.call_id: result.text for result in results}))
        return self.sent(await turn.resume(results))

    async def settle(self) -> None:
        """After an error: calls that wait would refuse every question."""
        if self.session.pending_calls and not self.session.interrupted:
            await self.session.abandon_turn()

    async def attempt(self, step: Any) -> None:
        """A step that may be refused; that is an outcome, too."""
        try:
            await step()
        except LaminaError as error:
            self.tape.error(error)
            await self.settle()
