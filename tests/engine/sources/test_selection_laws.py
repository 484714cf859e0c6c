"""Whatever is asked, added, taken out and edited: the laws of a request hold with selection."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.engine.session.conversations import modest
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.providers import calling, saying
from tests.fakes.selection import GuideSourceFake, guide
from tests.fakes.sessions import run
from tests.fakes.tools import tool

from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.core.assembly.engine_tools import ENGINE_TOOLS
from lamina.core.text import label_of
from lamina.core.values.agent import Guide
from lamina.core.values.entry import RequestEntry
from lamina.core.values.item import Include, ItemId, kind_of, tool_id
from lamina.core.values.request import ContextItem, ContextTool
from lamina.core.values.settings import Settings
from lamina.core.values.tool import OfferedTool
from lamina.errors import UsageError

WORDS = ("boat", "fish", "tax", "song")
MODES: tuple[Include, ...] = ("always", "manual", "agent")
GUIDES = tuple(
    guide("reference" if word in "fish song" else "rule", f"{word}-{mode}", mode,
          text=f"All about {word} here.", globs=("*.md",) if word == "tax" else ())
    for word in WORDS for mode in MODES
)  # fmt: skip
TOOLS = tuple(
    replace(tool(f"{word}_{mode}", description=f"Handles {word}."), include=mode)
    for word in WORDS for mode in MODES
)  # fmt: skip
MEMBERS = (*(each.id for each in GUIDES), *(each.id for each in TOOLS))


class Ask(Struct, frozen=True, kw_only=True):
    """A question; `uses` is a tool that the answer calls, whether it can or not."""

    text: str
    attach: bool = False
    uses: str = ""
    through: bool = False


class Add(Struct, frozen=True):
    item: ItemId


class Remove(Struct, frozen=True):
    item: ItemId


class Edit(Struct, frozen=True):
    """A guide says otherwise, or is deleted, or comes back."""

    number: int
    gone: bool


class Take(Struct, frozen=True):
    """A tool goes away, says otherwise of itself, or comes back."""

    number: int
    gone: bool


class Wait(Struct, frozen=True):
    """The cache's lifetime passes."""


class Restart(Struct, frozen=True):
    """Another process opens the session."""


Step = Ask | Add | Remove | Edit | Take | Wait | Restart

mentions = st.sampled_from(["", "", "", " @rule:boat-manual", " @ref:fish-manual", " @rule:none"])
asks = st.builds(
    Ask,
    text=st.tuples(st.sampled_from(WORDS), st.sampled_from([*WORDS, "thing"]), mentions).map(
        lambda drawn: f"{drawn[0]} and {drawn[1]}{drawn[2]}"
    ),
    attach=st.booleans(),
    uses=st.sampled_from(["", "", "boat_always", *(f"{word}_agent" for word in WORDS)]),
    through=st.booleans(),
)
steps: st.SearchStrategy[Step] = st.one_of(
    asks,
    asks,
    asks,
    st.builds(Add, st.sampled_from(MEMBERS)),
    st.builds(Remove, st.sampled_from(MEMBERS)),
    st.builds(Edit, st.integers(0, len(GUIDES) - 1), st.booleans()),
    st.builds(Take, st.integers(0, len(TOOLS) - 1), st.booleans()),
    st.just(Wait()),
    st.just(Restart()),
)
policies = st.sampled_from(
    [
        Settings(),
        Settings(tool_joins=0),
        Settings(tool_joins=None),
        Settings(tool_policy="exact"),
        Settings(tool_policy="all"),
        Settings(promotion="eager"),
        Settings(window=700, output_reserve=100, tool_joins=1),
    ]
)


class Player:
    def __init__(self, folder: Path, settings: Settings) -> None:
        self.guides = dict(enumerate(GUIDES))
        self.tools = dict(enumerate(TOOLS))
        self.source = GuideSourceFake(*GUIDES)
        fields = {
            name: getattr(settings, name)
            for name in ("tool_joins", "tool_policy", "promotion", "window", "output_reserve")
        }
        self.scene = Scene(
            tools=TOOLS,
            guides=self.source,
            index=SqliteIndex(folder / "index.sqlite", FakeEmbedder()),
            relations={"tool:fake/boat_agent": ["tool:fake/fish_agent"]},
            **fields,
        )
        self.scene.workspace.notes["a.md"] = "a note of its own"
        self.edits = 0

    async def play(self, steps: Sequence[Step]) -> None:
        async with self.scene:
            for step in steps:
                await self.take(step)
            await self.scene.verify()

    async def take(self, step: Step) -> None:
        scene, session = self.scene, self.scene.runner.session
        match step:
            case Ask():
                await self._ask(step)
            case Add(item=item):
                await _unless_unknown(session.add(item))
            case Remove(item=item):
                await _unless_unknown(session.remove(item))
            case Edit(number=number, gone=gone):
                self.edits += 1
                text = f"{GUIDES[number].text} Edited {self.edits} times."
                _change(self.guides, number, replace(GUIDES[number], text=text), gone)
                self.source.listed = tuple(self.guides[at] for at in sorted(self.guides))
            case Take(number=number, gone=gone):
                self.edits += 1
                name = TOOLS[number].definition.name
                other = tool(name, description=f"{TOOLS[number].definition.description} Anew.")
                other = replace(other, include=TOOLS[number].include)
                _change(self.tools, number, other, gone)
                scene.host.tools = tuple(self.tools[at] for at in sorted(self.tools))
            case Wait():
                scene.clock.pass_by(301)
            case Restart():
                await scene.restart()

    async def _ask(self, step: Ask) -> None:
        scene = self.scene
        if step.uses:
            given = {"name": step.uses, "arguments": {}}
            name, arguments = ("use_tool", given) if step.through else (step.uses, {})
            scene.plays(calling((f"c{len(scene.provider.bodies)}", name, arguments)), saying("Ok."))
        ran = len(scene.host.calls)
        requests = len(scene.kept(RequestEntry))
        answer = await scene.ask(step.text, attach=["a.md"] if step.attach else [])
        assert answer.ending == "answered", answer
        assert not any("search failed" in warning for warning in scene.context.warnings)
        for request in scene.kept(RequestEntry)[requests:]:
            await self._require_laws(request)
        members = scene.runner.session.state.library.members
        for name, _ in scene.host.calls[ran:]:
            (called,) = [each for each in self.tools.values() if each.definition.name == name]
            assert members.get(called.id) != "removed"

    async def _require_laws(self, request: RequestEntry) -> None:
        scene, context = self.scene, request.context
        members = scene.runner.session.state.library.members
        used = {item.item: item for item in context.items}
        tools = {each.item: each for each in context.tools}
        out = {each.what for each in context.left_out}
        # What the session holds is in the request, or said to be out of it.
        known: dict[ItemId, ContextItem | ContextTool] = {**used, **tools}
        for held in await scene.runner.session.items():
            if held.missing or held.item not in known:
                assert held.item in out, (held, context)
            else:
                assert not held.missing
                assert known[held.item].include == held.include
                assert known[held.item].score is None
        # Nobody is there against a person's word, nor passes for used when it is gone.
        there = {each.id for each in self.guides.values()} | {e.id for e in self.tools.values()}
        there |= {tool_id("", name) for name in ENGINE_TOOLS}
        for item in (*used, *tools):
            assert members.get(item) != "removed", (item, context)
            assert item in there or kind_of(item) == "note", (item, context)
        # Nothing is in and out at once, and nothing is out twice for the same reason.
        in_vain = [e for e in context.left_out if e.what in tools or e.what in used]
        assert [e for e in in_vain if e.reason != "superseded"] == [], context
        # Everything that is named stands in the words that were sent.
        wire = str(scene.provider.bodies[-1])
        for item in used:
            assert label_of(item).rpartition("/")[2] in wire
        # The list is what the context says it is.
        listed = [each["function"]["name"] for each in scene.provider.bodies[-1].get("tools", ())]
        assert [each.name for each in context.tools] == listed


def _change(
    among: dict[int, Guide] | dict[int, OfferedTool],
    number: int,
    other: Guide | OfferedTool,
    gone: bool,
) -> None:
    if gone:
        among.pop(number, None)
    else:
        among[number] = other  # type: ignore[assignment]


async def _unless_unknown(done: object) -> None:
    try:
        await done  # type: ignore[misc]
    except UsageError as error:
        assert "there is no" in str(error)  # noqa: PT017


@modest
@given(st.lists(steps, min_size=2, max_size=9), policies)
def test_whatever_happens_a_request_is_what_it_says_it_is(
    drawn: list[Step], settings: Settings
) -> None:
    with TemporaryDirectory() as folder:
        run(Player(Path(folder), settings).play(drawn))
