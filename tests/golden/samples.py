"""The sessions behind the golden journals, each about one thing; every one is played under a name.

Together they hold every kind of entry and every op of a patch; the test asks for that.
"""

from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.fakes.summarizer import FakeSummarizer
from tests.fakes.tools import tool
from tests.golden.draw import Draw
from tests.golden.patches import said
from tests.golden.talk import SCHEMA
from tests.golden.wires import (
    ANTHROPIC,
    BOUND,
    BREAKPOINTS,
    CHAT,
    EMBEDDED,
    GEMINI,
    TARGETS,
    WireBook,
)
from tests.golden.world import ALWAYS, FIND, LOOK, PICTURED, PNG, SECRET, World

import lamina
from lamina import Hooks, JsonlStore, Session, Settings, Turn
from lamina.core.values.entry import AdoptEntry, RequestEntry
from lamina.core.values.envelope import LaidItem, Options, SystemPart
from lamina.core.values.item import Item, ItemId, note_id
from lamina.core.values.message import Text, Thinking, ToolCall, ToolResult, ToolText
from lamina.core.values.patch import (
    CompactionApply,
    Display,
    ItemLay,
    ItemSupersede,
    LibraryConsolidate,
    MessagesCachedAppend,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OptionsSet,
    Patch,
    PatchOp,
    ResultsReplace,
    SystemPartRemove,
    SystemPartSet,
    SystemPartsReplace,
    ToolsRemove,
    ToolsReplace,
)
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.engine.session.session import core_of
from lamina.engine.sources.hooks import ContextEvent

USAGE = Usage(input=60, cached=20, output=4)


class Sample:
    """A session in the making."""

    def __init__(self, folder: Path, name: str, target: Target = CHAT, **given: Any) -> None:
        self.store = JsonlStore(folder)
        self.name = name
        self.world = World(Draw(0))
        limits = {key: given.pop(key) for key in Settings.__struct_fields__ if key in given}
        self.settings = Settings(target=target.name, **limits)
        self.given: dict[str, Any] = {"system": "You are a clerk.", **given}
        self.session: Session
        self.calls = 0

    async def open(self, **given: Any) -> Session:
        world = self.world
        self.session = await lamina.open_session(
            self.name,
            workspace=world.desk,
            store=self.store,
            book=world.book,
            clock=world.clock,
            web=world.web,
            index=world.index,
            **{"settings": self.settings, **self.given, **given},
        )
        await self.store.put_blob(PNG)
        return self.session

    async def ask(self, text: str, *attach: Any, answer: str = "Yes.", **given: Any) -> Turn:
        """A whole turn."""
        self.world.clock.pass_by(10.0)
        turn = await self.session.prepare(text, attach=attach, **given)
        return await turn.commit(Reply(blocks=(Text(answer),), usage=USAGE, stop="stop"))

    async def call(self, turn: Turn, *names: str, text: str = "") -> Turn:
        """The model calls tools."""
        blocks: list[Any] = [Thinking(text="hm", signature="signed", provider="anthropic")]
        blocks += [Text(text)] if text else []
        for name in names:
            self.calls += 1
            blocks.append(ToolCall(id=f"c{self.calls}", name=name, arguments='{"path":"a.md"}'))
        return await turn.commit(Reply(blocks=tuple(blocks), usage=USAGE, stop="tool_use"))


async def attachments(folder: Path, name: str) -> None:
    """Notes that change, are pinned, forgotten or missing; a picture, a secret, a page."""
    sample = Sample(folder, name, web="public", always=ALWAYS)
    session = await sample.open()
    await sample.ask("What is this?", "a.md", PICTURED, SECRET)
    await session.pin("b.md")
    await sample.ask("And now?", "a.md", "gone.md", lamina.attach(PICTURED, shape="active"))
    sample.world.desk.edit("a.md")
    await sample.ask("It changed.", "a.md", lamina.attach("d.md", priority=3))
    sample.world.desk.edit("a.md")
    await sample.ask("It changed back.", "a.md", "https://harbour.example/tides")
    await session.forget("d.md")
    await session.unpin("b.md")
    sample.world.desk.edit("c.md")
    await session.preload(["c.md"])
    sample.world.desk.edit("c.md")
    await session.refresh()
    sample.world.clock.pass_by(4_000.0)
    await sample.ask("Later.", "a.md", tool_texts=[ToolText(name="search", text="found it")])
    await session.close()


async def eager(folder: Path, name: str) -> None:
    """Eager promotion, then lazy; a window for attachments; options."""
    options = Options(temperature=0.5, max_tokens=300, schema=SCHEMA)
    sample = Sample(
        folder, name, GEMINI, promotion="eager", attachment_limit=90, always=ALWAYS,
        options=options, explicit_cache=True,
    )  # fmt: skip
    session = await sample.open()
    for number in range(4):
        await sample.ask(f"Question {number}?", "a.md", "b.md", "d.md", SECRET)
    await session.update_settings(promotion="lazy", prefix_check="warn")
    await sample.ask("And lazily?", "c.md")
    await session.close()


async def tool_loop(folder: Path, name: str) -> None:
    """Parallel calls, results kept early, decisions, errors, a turn that was given up."""
    sample = Sample(folder, name, ANTHROPIC, tools=[FIND, LOOK], cache_ttl="1h")
    session = await sample.open()
    turn = await session.prepare("Look around.", attach=["b.md"])
    turn = await sample.call(turn, "find", "look", text="Let me look.")
    await session.keep_decision("c1", tool("find"), "allow_session")
    await session.keep_result(ToolResult(call_id="c1", name="find", text="a.md"))
    results = [
        ToolResult(call_id="c1", name="find", text="a.md"),
        ToolResult(call_id="c2", name="look", text="nothing there", is_error=True),
    ]
    turn = await turn.resume(results)
    turn = await sample.call(turn, "find")
    turn = await turn.resume({"c3": "b.md"})
    await turn.commit(Reply(blocks=(Text("Two notes."),), usage=USAGE, stop="end_turn"))
    turn = await session.prepare("Once more.")
    await sample.call(turn, "look")
    await session.abandon_turn()
    await sample.ask("Thanks.")
    await session.set_tools([FIND], reason="less is more")
    await sample.ask("Bye.")
    await session.close()


async def hooks(folder: Path, name: str) -> None:
    """Hooks that return every op there is, one for each question, and text for one request."""
    item = Item(id=note_id("a.md"), content="a0 a0 a0 a0 a0")
    laid = LaidItem(item=item.id, version=item.version)
    result = ToolResult(call_id="c1", name="find", text="shortened")
    why = "a hook wants it"
    ops: dict[str, PatchOp] = {
        "q2": SystemPartSet(name="mood", text="Be kind.", reason=why),
        "q3": SystemPartRemove(name="mood", reason=why),
        "q4": SystemPartsReplace(parts=(SystemPart(name="only", text="Be."),), reason=why),
        "q5": ToolsReplace(tools=(FIND, LOOK), reason=why),
        "q6": ToolsRemove(names=("look",), reason=why),
        "q8": ItemLay(item=item.id, version=item.version),
        "q9": LibraryConsolidate(items=(laid,), reason=why),
        "q10": OptionsSet(temperature=0.25, reasoning="low"),
        "q11": CompactionApply(first_kept=4, summary="They began.", reason=why),
        "q12": MessagesCachedReplace(
            messages=(said("Begin again."), said("Gladly.", "assistant")), reason=why
        ),
    }
    made = Hooks()

    @made.context(reason="before_request", name="golden.change")
    async def change(event: ContextEvent) -> Any:
        text = event.message.text if event.message else ""
        if text == "q1":
            return None
        if text == "q13":
            return {"op": "options_set", "top_p": 0.5}
        if op := ops.get(text):
            return Patch(ops=(op,), display=Display(title="Changed", markdown="*now*"))
        return None

    @made.context(reason="ephemeral", name="golden.remind")
    async def remind(event: ContextEvent) -> Any:
        return MessagesUncachedAppend(messages=(said("It is late."),))

    @made.context(reason="turn_end", name="golden.shorten")
    async def shorten(event: ContextEvent) -> Any:
        for message in event.envelope.cached:
            for block in message.blocks:
                if isinstance(block, ToolResult) and block.text != result.text:
                    return ResultsReplace(message=message.id, results=(result,), reason=why)
        return None

    @made.message(name="golden.polite")
    async def polite(event: Any) -> Any:
        if event.message.role != "assistant" or event.message.calls:
            return None
        return replace(event.message, blocks=(Text(f"{event.message.text} Sir."),))

    sample = Sample(folder, name, BREAKPOINTS, tools=[FIND], hooks=made)
    session = await sample.open()
    turn = await session.prepare("q1", attach=[item])
    turn = await sample.call(turn, "find")
    turn = await turn.resume({"c1": "a long result " * 5})
    await turn.commit(Reply(blocks=(Text("Found."),), usage=USAGE, stop="stop"))
    for number in range(2, 14):
        await sample.ask(f"q{number}")
    # What hooks do not write: an op that leaves the envelope as it is, and text for one request.
    await session.apply("golden.old", ItemSupersede(item=item.id, version=item.version))
    await sample.ask("And now?", item)
    await session.apply("golden.once", MessagesUncachedAppend(messages=(said("Once."),)))
    await session.close()


async def appended(folder: Path, name: str) -> None:
    """Hooks that add a message to every request: by saying so, and by giving back all of history;
    also while calls wait for their results."""
    made = Hooks()

    @made.context(reason="before_request", name="golden.append")
    async def append(event: ContextEvent) -> Any:
        return MessagesCachedAppend(messages=(said("Mind the tide."),), reason="safety")

    @made.context(reason="before_request", name="golden.marker")
    async def mark(event: ContextEvent) -> Any:
        if event.message is None or event.message.role != "user":
            return None
        messages = (*event.envelope.cached, said("[marker]"))
        return MessagesCachedReplace(messages=messages, reason="add marker")

    sample = Sample(folder, name, ANTHROPIC, tools=[FIND], hooks=made)
    session = await sample.open()
    await sample.ask("First?", "a.md")
    turn = await sample.call(await session.prepare("Look."), "find")
    turn = await turn.resume({"c1": "a.md"})
    await turn.commit(Reply(blocks=(Text("There."),), usage=USAGE, stop="end_turn"))
    messages = [*session.envelope.cached.until(3), said("It was cut here.")]
    await session.apply("golden.cut", MessagesCachedReplace(messages=tuple(messages), reason="cut"))
    await sample.ask("Third?", "a.md")
    await session.close()


async def once(folder: Path, name: str) -> None:
    """Hooks that change one request only: every op that moves something, and options."""
    why = "only this once"
    ops: dict[str, Any] = {
        "q2": SystemPartSet(name="mood", text="Be kind.", reason=why),
        "q3": ToolsReplace(tools=(FIND, LOOK), reason=why),
        "q4": [OptionsSet(temperature=0.25), MessagesUncachedAppend(messages=(said("Late."),))],
        "q5": MessagesCachedReplace(messages=(said("Begin again."),), reason=why),
        "q6": MessagesCachedAppend(messages=(said("Mind the tide."),)),
        "q7": CompactionApply(first_kept=2, summary="They began.", reason=why),
    }
    made = Hooks()

    @made.context(reason="ephemeral", name="golden.once")
    async def change(event: ContextEvent) -> Any:
        return ops.get(event.message.text) if event.message else None

    sample = Sample(folder, name, ANTHROPIC, tools=[FIND], hooks=made)
    session = await sample.open()
    for number in range(1, 9):
        await sample.ask(f"q{number}", "a.md")
    calm = OptionsSet(reasoning="low", scope="cached", reason="it is easy")
    await session.apply("golden.calm", calm)
    await sample.ask("And now?")
    await session.apply("golden.next", OptionsSet(temperature=0.5, scope="uncached"))
    await session.close()


async def compactions(folder: Path, name: str) -> None:
    """History that gives way to summaries: by a model, extracted, by hand and by threshold."""
    summarizer = FakeSummarizer("## Goal\nThe harbour plan.", ValueError("no model"))
    sample = Sample(
        folder, name, CHAT, window=700, output_reserve=100, summarizer=summarizer, tools=[FIND]
    )
    session = await sample.open()
    draw = Draw(1)
    for number in range(12):
        turn = await session.prepare(draw.words(30, f"q{number}"), attach=["b.md"])
        if number % 3 == 0:
            turn = await sample.call(turn, "find")
            turn = await turn.resume({f"c{sample.calls}": draw.words(25)})
        answer = draw.words(40, f"r{number}")
        await turn.commit(Reply(blocks=(Text(answer),), usage=USAGE, stop="stop"))
        sample.world.clock.pass_by(10.0)
        if number == 5:
            await session.compact()
    await session.close()


async def prunes(folder: Path, name: str) -> None:
    """A window that is too small: items left out, history pruned in the middle, results cut."""
    sample = Sample(
        folder, name, EMBEDDED, window=500, output_reserve=50, compaction="off", tools=[FIND]
    )
    session = await sample.open()
    draw = Draw(2)
    for number in range(10):
        attach = ("d.md", "e.md")[: number % 3]
        turn = await session.prepare(draw.words(20, f"q{number}"), attach=attach)
        if number % 4 == 1:
            for _ in range(3):
                turn = await sample.call(turn, "find")
                turn = await turn.resume({f"c{sample.calls}": draw.words(160)})
        answer = draw.words(50, f"r{number}")
        await turn.commit(Reply(blocks=(Text(answer),), usage=USAGE, stop="stop"))
    await session.update_settings(history="strip", strip_after_turns=2, strip_turns=1)
    await sample.ask("And stripped?", "a.md")
    await session.close()


async def branches(folder: Path, name: str) -> None:
    """Going back, siblings, a summary of what was left; names, labels and an application's data."""
    sample = Sample(folder, name)
    session = await sample.open()
    await sample.ask("First?", "a.md")
    await sample.ask("Second?", "b.md")
    requests = [entry.id for entry in session.entries if isinstance(entry, RequestEntry)]
    await session.navigate(requests[0])
    await sample.ask("Second, in other words?", "b.md")
    await session.navigate(requests[1], summary="It led nowhere.")
    await session.label(requests[0], "here")
    await session.label(requests[0], "")
    await session.rename(" Ferries ")
    await session.add_custom_entry("app.score", {"n": [1, 2.5, None, "{"]})
    await session.prepare("Never answered?")
    await sample.ask("Asked beside it.")
    await session.set_system("mood", "Be kind.", reason="a change of mood")
    await session.update_settings(target=GEMINI.name)
    await sample.ask("Somebody else?")
    copy = await session.fork(f"{name}-fork")
    await copy.close()
    await session.close()


async def opened_again(folder: Path, name: str) -> None:
    """Other things are given when the session is opened again; what is remembered changes."""
    sample = Sample(folder, name, tools=[FIND])
    memory = sample.world.memory
    session = await sample.open(memory_file=memory)
    await sample.ask("First?", "a.md")
    await session.close()
    memory.text = "They moved."
    session = await sample.open(
        memory_file=memory, system="You are a pilot.", tools=[LOOK], always=ALWAYS,
        options=Options(reasoning="high"),
    )  # fmt: skip
    await sample.ask("Second?", "a.md")
    memory.text = ""
    await sample.ask("Third?")
    await session.close()


async def bound_thinking(folder: Path, name: str) -> None:
    """Thinking that goes back, until what stood before it changes."""
    sample = Sample(folder, name, BOUND)
    sample.world.book = WireBook((*TARGETS, BOUND))
    session = await sample.open()
    await think(sample, "First?")
    await think(sample, "Second?", "a.md")
    await session.set_system("mood", "Be brief.", reason="asked to")
    await think(sample, "Third?")
    await think(sample, "Fourth?")
    await session.close()


async def think(sample: Sample, text: str, *attach: Any) -> None:
    turn = await sample.session.prepare(text, attach=attach)
    thought = Thinking(text="hm", signature=f"signed {text}", provider="anthropic")
    await turn.commit(Reply(blocks=(thought, Text("Yes.")), usage=USAGE, stop="end_turn"))


async def adopted(folder: Path, name: str) -> None:
    """What an agent's files say by now is taken over."""
    sample = Sample(folder, name)
    session = await sample.open()
    await sample.ask("Before?")
    modes = {ItemId("rule:tone"): "always", ItemId("reference:cranes"): "manual"}
    await core_of(session).record.write(AdoptEntry, include_modes=modes, with_agent="harbour")
    await sample.ask("After?")
    await session.close()


async def interrupted(folder: Path, name: str) -> None:
    """A request that was never answered is the last thing in it."""
    sample = Sample(folder, name, BREAKPOINTS)
    session = await sample.open()
    await sample.ask("First?", "a.md")
    await session.prepare("Second?", attach=["b.md"])
    await session.close()


async def waiting(folder: Path, name: str) -> None:
    """Two calls wait; one has its result."""
    sample = Sample(folder, name, ANTHROPIC, tools=[FIND])
    session = await sample.open()
    turn = await session.prepare("Look around.", attach=["a.md"])
    await sample.call(turn, "find", "find")
    await session.keep_result(ToolResult(call_id="c1", name="find", text="a.md"))
    await session.close()


async def inbox(folder: Path, name: str) -> None:
    """One message was taken up, one waits, and so does one that was sent beside an open request."""
    sample = Sample(folder, name, ANTHROPIC)
    session = await sample.open()
    await core_of(session).inbox.keep("Also the crane.", "steer")
    (message,) = core_of(session).inbox.waiting("steer")
    turn = await core_of(session).turns.prepare(message.text, (), None, (), taken=message)
    await turn.commit(Reply(blocks=(Text("The crane, too."),), usage=USAGE, stop="stop"))
    await core_of(session).inbox.keep("And the rope.", "follow_up")
    await session.prepare("What else?")
    await core_of(session).inbox.keep("In blue!", "steer")
    await session.close()
