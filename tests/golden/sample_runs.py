"""Golden sessions that a runner leads, or that come from elsewhere; and some that are drawn."""

from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.adapters.formats.samples import PI_OBJECTS, lines
from tests.fakes.index import IndexFake
from tests.fakes.notes import NoteSourceFake, WordIndexFake
from tests.fakes.providers import ProviderFake, ProvidersFake, calling, saying
from tests.fakes.tools import ApproverFake, ToolHostFake, tool
from tests.golden.draw import Draw
from tests.golden.runs import NOTES
from tests.golden.samples import USAGE, Sample
from tests.golden.wires import ANTHROPIC, CHAT, COMPATIBLE
from tests.golden.world import GUIDES, RELATIONS

from lamina import AgentRunner, JsonlStore, PlanRunner, QaRunner
from lamina.apps.wiring.session_importer import import_data
from lamina.core.values.entry import UnknownEntry
from lamina.core.values.selection import SearchSettings
from lamina.core.values.tool import ToolOutput
from lamina.engine.session.session import core_of
from lamina.engine.sources.note_search import WorkspaceSearch
from lamina.engine.sources.selector import Selector
from lamina.errors import ProviderError


def craft(name: str) -> Any:
    return replace(tool(name), include="agent", about="A server of crafts.")


async def agent(folder: Path, name: str) -> None:
    """An agent with rules, references and tools: chosen by search, added and removed by hand."""
    sample = Sample(
        folder, name, ANTHROPIC, tool_joins=1, tool_search=SearchSettings(top_n=1),
        expand_results=True,
    )  # fmt: skip
    session = await sample.open()
    world = sample.world
    world.guides.listed = GUIDES
    core_of(session).turns.tools.selector = Selector(world.index, world.guides, relations=RELATIONS)
    names = ("read", "write", "send", "paint", "sing", "cook", "sew")
    host = ToolHostFake(tool("find"), tool("ask", "required"), *map(craft, names))
    host.outputs["read"] = ToolOutput(text="The tide table: rope, crane.", is_error=True)
    given = {"name": "sew", "arguments": {"path": "sail.md"}}
    provider = ProviderFake(
        calling(("k1", "find", {"q": 1}), ("k2", "ask", {}), text="Let me see.", usage=USAGE),
        saying("Found.", usage=USAGE),
        calling(("k3", "read", {"path": "a.md"}), ("k4", "absent", "{broken"), usage=USAGE),
        saying("Read.", usage=USAGE),
        saying("Painted.", usage=USAGE),
        calling(("k5", "use_tool", given), usage=USAGE),
        saying("Sewn.", usage=USAGE),
    )
    approver = ApproverFake("allow_session", "deny")
    runner = AgentRunner(session, ProvidersFake(provider), host, approver=approver)
    await runner.run("Where does the tide go?", attach=["a.md", "src/g.py"])
    await session.add("rule:units")
    await session.remove("reference:glossary")
    await runner.run("Which crane? @ref:ropes")
    await runner.run("A lantern.")
    await session.add("reference:glossary")
    await runner.run("A rope, please; then the tide.")
    host.tools = host.tools[1:]
    world.clock.pass_by(9_000.0)
    provider.scripts = [[ProviderError("it fell over")]]
    try:
        await runner.run("@composer write it down")
    except ProviderError:
        provider.scripts = [saying("Written.", usage=USAGE)]
        await runner.resume()
    await session.close()


async def found(folder: Path, name: str) -> None:
    """Tools that the model looked for: one it called, others in a turn that waits for a person."""
    sample = Sample(folder, name, CHAT, tool_search=SearchSettings(top_n=0, include_score=1.0))
    session = await sample.open()
    names = ("read", "write", "send")
    alike = {each: {f"tool:fake/{each}": 0.8} for each in names}
    core_of(session).turns.tools.selector = Selector(IndexFake(alike))
    host = ToolHostFake(tool("ask", "required"), *map(craft, names))
    given = {"name": "write", "arguments": {"path": "a.md"}}
    provider = ProviderFake(
        calling(("k1", "find_tools", {"query": "write it down"}), usage=USAGE),
        calling(("k2", "use_tool", given), usage=USAGE),
        saying("Written.", usage=USAGE),
        calling(("k3", "find_tools", {"query": "send, write"}), ("k4", "ask", {}), usage=USAGE),
    )
    runner = AgentRunner(session, ProvidersFake(provider), host)
    await runner.run("Keep this.")
    await runner.run("And send it.")
    await session.close()


async def plan(folder: Path, name: str) -> None:
    """Plans, what was run for them, and searches."""
    sample = Sample(folder, name, COMPATIBLE)
    session = await sample.open()
    host = ToolHostFake(tool("find"), tool("ask", "required"))
    search = WorkspaceSearch(NoteSourceFake(NOTES), WordIndexFake())
    provider = ProviderFake(
        calling(("p1", "localSearch", {"query": "berths of the quay"}), ("p2", "find", {}),
                ("p3", "find", {}), ("p4", "absent", {}), ("p5", "ask", {}), usage=USAGE),
        saying("Nine [^1].", usage=USAGE),
        saying("No tools.", usage=USAGE),
        saying("Gladly.", usage=USAGE),
    )  # fmt: skip
    runner = PlanRunner(session, ProvidersFake(provider), host, search=search)
    await runner.run("How many berths?", attach=["b.md"])
    await runner.run("Thanks!")
    await session.close()


async def questions(folder: Path, name: str) -> None:
    """Questions about notes."""
    sample = Sample(folder, name, CHAT)
    session = await sample.open()
    search = WorkspaceSearch(NoteSourceFake(NOTES), WordIndexFake())
    provider = ProviderFake(saying("Nine [^1].", usage=USAGE), saying("At noon [^2].", usage=USAGE))
    runner = QaRunner(session, ProvidersFake(provider), search, top=3)
    await runner.run("How many berths does the north quay have?")
    await runner.run("When does the ferry sail?", attach=["a.md"])
    await session.close()


async def imported(folder: Path, name: str) -> None:
    """A session of another system."""
    await import_data(
        lines(*PI_OBJECTS),
        name="pi.jsonl",
        session=name,
        workspace=folder,
        store=JsonlStore(folder),
        target=CHAT.name,
    )


async def unknown(folder: Path, name: str) -> None:
    """An entry of a kind that a later version may know."""
    sample = Sample(folder, name)
    session = await sample.open()
    await sample.ask("First?", "a.md")
    leaf = session.path[-1]
    await session.close()
    opened = await sample.store.open(name)
    number = f"{int(leaf.id, 16) + 1:06x}"
    entry = UnknownEntry(
        id=number, parent=leaf.id, at=leaf.at, kind="hologram", fields={"depth": [1, 2.5]}
    )
    await opened.append([entry])
    await opened.close()


async def long(folder: Path, name: str) -> None:
    """Enough of a session that an index is kept beside its file."""
    sample = Sample(folder, name)
    session = await sample.open()
    draw = Draw(3)
    for number in range(32):
        attach = ("a.md", "c.md", "d.md")[: number % 4]
        await sample.ask(draw.words(60, f"q{number}"), *attach, answer=draw.words(120))
    await session.close()
