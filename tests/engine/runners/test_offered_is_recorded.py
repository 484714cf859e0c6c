"""Issue 16, B.6: one list of tools, offered and recorded. Whatever people, hooks and servers do, a
request names the tools that stand on its wire, and which of them may be called; what was removed
may not be, and comes back only when it is given back."""

import re
from collections.abc import Awaitable, Mapping
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.engine.session.conversations import modest
from tests.fakes.book import SMALL
from tests.fakes.index import IndexFake
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import run
from tests.fakes.tools import tool

from lamina.core.assembly.engine_tools import ENGINE_TOOLS, FIND_TOOLS, USE_TOOL
from lamina.core.audit.rebuilt_request import rebuild_request, wire_request
from lamina.core.audit.requests import list_requests
from lamina.core.audit.verification import verify
from lamina.core.values.entry import RequestEntry
from lamina.core.values.item import ItemId
from lamina.core.values.message import Text, ToolDefinition, ToolResult
from lamina.core.values.patch import ToolsRemove
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.engine.sources.hooks import ContextEvent, Hooks
from lamina.errors import UsageError

# A target on every wire, with and without a way to bar tools.
TARGETS = tuple(
    replace(SMALL, provider=provider, model=model, wire=wire, restricts_tools=restricts)
    for provider, model, wire, restricts in (
        ("openai", "gpt-4o", "openai", False),
        ("openai", "gpt-5", "openai", True),
        ("anthropic", "claude", "anthropic", False),
        # Nobody can say it on this wire, whatever a file of models claims.
        ("gemini", "flash", "gemini", True),
        ("compatible", "qwen", "openai", False),
        ("local", "smol", "llamacpp", True),
        ("embedded", "smol", "llamacpp", False),
    )
)
CHOSEN = ("c", "d")
TOOLS = (tool("a"), tool("b"), *(replace(tool(name), include="agent") for name in CHOSEN))
DEFINITIONS = {row.definition.name: row.definition for row in TOOLS}
NAMES = tuple(DEFINITIONS)
GIVEN = ToolDefinition(name="own", description="An application's own.")
ALIKE = {f"seek-{name}": {f"tool:fake/{name}": 0.8} for name in CHOSEN}
REASON = "a change of mind"


class Ask(Struct, frozen=True):
    """A question, which may choose tools; the model calls `uses`, perhaps through `use_tool`."""

    text: str = "Q"
    uses: str = ""
    through: bool = False
    looks: str = ""


class AskByHand(Struct, frozen=True):
    """A question that an application sends by a client of its own."""


class Remove(Struct, frozen=True):
    """A person takes a tool out of the session."""

    name: str


class Add(Struct, frozen=True):
    name: str


class Withdraw(Struct, frozen=True):
    """A patch removes a tool: at once, or from a hook when the next turn comes to it."""

    name: str
    hook: str = ""


class GiveBack(Struct, frozen=True):
    name: str


class Serve(Struct, frozen=True):
    """The server has these tools from now on."""

    names: frozenset[str]


class Wait(Struct, frozen=True):
    pass


class Reopen(Struct, frozen=True):
    runner: str


class Retarget(Struct, frozen=True):
    number: int


names = st.sampled_from(NAMES)
steps = st.lists(
    st.one_of(
        st.builds(
            Ask,
            text=st.sampled_from(["Q", "seek-c", "seek-d", "seek-c seek-d"]),
            uses=st.sampled_from(["", *NAMES, GIVEN.name]),
            through=st.booleans(),
            looks=st.sampled_from(["", "", "seek-c", "seek-d"]),
        ),
        st.builds(Ask, uses=names),
        st.builds(AskByHand),
        st.builds(Remove, names),
        st.builds(Add, names),
        st.builds(
            Withdraw,
            st.sampled_from([*NAMES, *ENGINE_TOOLS]),
            st.sampled_from(["", "", "before_request", "turn_end"]),
        ),
        st.builds(GiveBack, names),
        st.builds(Serve, st.frozensets(names, min_size=1)),
        st.builds(Wait),
        st.builds(Reopen, st.sampled_from(["agent", "agent", "chat", "plan"])),
        st.builds(Retarget, st.integers(0, len(TARGETS) - 1)),
    ),
    min_size=3,
    max_size=9,
)


class Play:
    """A session that is played, and what must be true of its requests."""

    def __init__(self, target: Target, *, brings: bool, policy: str, joins: int | None) -> None:
        hooks = Hooks()
        # What was removed, by a patch and by hand, and what hooks are about to remove.
        self.withdrawn: set[str] = set()
        self.taken_out: set[str] = set()
        # What came as a definition, for the application to run.
        self.brought = {GIVEN.name} if brings else set[str]()
        # What was removed once the answer was there.
        self.late: set[str] = set()
        self.waiting: dict[str, list[str]] = {"before_request": [], "turn_end": []}

        def withdraw(event: ContextEvent) -> Any:
            if not self.waiting[event.reason]:
                return None
            name = self.waiting[event.reason].pop()
            (self.late if event.reason == "turn_end" else self.withdrawn).add(name)
            return ToolsRemove(names=(name,), reason=REASON)

        hooks.context(reason="before_request", name="test.before")(withdraw)
        hooks.context(reason="turn_end", name="test.after")(withdraw)
        self.scene = Scene(
            tools=TOOLS, target=target, index=IndexFake(ALIKE), hooks=hooks,
            definitions=[GIVEN] if brings else None, tool_policy=policy, tool_joins=joins,
        )  # fmt: skip
        for other in TARGETS:
            self.scene.book.put(other)

    @property
    def removed(self) -> set[str]:
        return self.withdrawn | self.taken_out

    async def take(self, step: Struct) -> None:
        scene = self.scene
        session = scene.runner.session
        match step:
            case Ask():
                await self._ask(step)
            case AskByHand():
                await self._ask_by_hand()
            case Remove(name=name):
                await _unless_unknown(session.remove(f"tool:fake/{name}"))
                if session.state.library.members.get(ItemId(f"tool:fake/{name}")) == "removed":
                    self.taken_out.add(name)
            case Add(name=name):
                if await _unless_unknown(session.add(f"tool:fake/{name}")):
                    self.withdrawn.discard(name)
                    self.taken_out.discard(name)
            case Withdraw(name=name, hook=""):
                await session.apply("test", ToolsRemove(names=(name,), reason=REASON))
                self.withdrawn.add(name)
            case Withdraw(name=name, hook=hook):
                self.waiting[hook].append(name)
            case GiveBack(name=name) if name not in self.taken_out:
                others = [row for row in session.envelope.tools if row.name != name]
                back = DEFINITIONS[name]
                await session.set_tools([*others, back], reason=f"{name} is given back")
                self.brought.add(name)
                self.withdrawn.discard(name)
            case Serve(names=there):
                scene.host.tools = [row for row in TOOLS if row.definition.name in there]
            case Wait():
                scene.clock.pass_by(301)
            case Reopen(runner=kind):
                await session.abandon_turn()
                scene.kind = kind  # type: ignore[assignment]
                await scene.restart()
            case Retarget(number=number):
                await session.update_settings(target=TARGETS[number].name)

    async def _ask(self, step: Ask) -> None:
        scene = self.scene
        before, bodies, ran = self._requests(), len(scene.provider.bodies), len(scene.host.calls)
        if step.looks and step.uses:
            scene.plays(calling((f"f{bodies}", FIND_TOOLS.name, {"query": step.looks})))
        if step.uses:
            given = {"name": step.uses, "arguments": {}}
            name, arguments = (USE_TOOL.name, given) if step.through else (step.uses, {})
            scene.plays(calling((f"c{bodies}", name, arguments)), saying("Ok."))
        await scene.ask(step.text)
        scene.provider.scripts.clear()
        requests = self._requests()[len(before) :]
        sent = scene.provider.bodies[-len(requests) :]
        for request, body in zip(requests, sent, strict=True):
            self._require_laws(request, body)
        for called, _ in scene.host.calls[ran:]:
            assert called not in self.removed
        if scene.kind == "agent" and step.uses and not scene.host.calls[ran:]:
            (result,) = [result for result in self._results() if result.call_id == f"c{bodies}"]
            assert result.is_error
        self._end_turn()

    async def _ask_by_hand(self) -> None:
        session = self.scene.runner.session
        await session.abandon_turn()
        turn = await session.prepare("By hand?")
        self._require_laws(turn.entry, turn.request(), by_hand=True)
        await turn.commit(Reply(blocks=(Text("Yes."),), usage=Usage(), stop="end"))
        self._end_turn()

    def _end_turn(self) -> None:
        self.withdrawn |= self.late
        self.late.clear()

    def _requests(self) -> list[RequestEntry]:
        return self.scene.kept(RequestEntry)

    def _results(self) -> list[ToolResult]:
        messages = self.scene.runner.session.envelope.cached.since(0)
        blocks = [block for message in messages for block in message.blocks]
        return [block for block in blocks if isinstance(block, ToolResult)]

    def _require_laws(
        self, request: RequestEntry, body: Mapping[str, Any], *, by_hand: bool = False
    ) -> None:
        context, target = request.context, self.scene.book.find(request.target)
        listed = [row.name for row in context.tools]
        offered = [name for name in listed if context.allows(name)]
        # What is recorded is what was sent.
        assert names_on_wire(body, target) == listed
        if target.bars_tools:
            assert callable_on_wire(body, target, listed) == offered
        elif context.allowed_tools is not None:
            # Nobody can be told, so only what answers alone runs none of them.
            assert context.allowed_tools == ()
            assert self.scene.kind == "plan"
        # What was removed is not offered, and stands there only if it is barred.
        assert not set(offered) & self.removed, context
        if not target.bars_tools:
            assert not set(listed) & self.removed, context
        # What is offered can be run.
        there = {row.definition.name for row in self.scene.host.tools} | {*ENGINE_TOOLS}
        if self.scene.kind != "chat" and not by_hand:
            assert set(offered) <= there, context
            always = {"a", "b"} & there - self.removed
            # The answer of a plan calls nothing: its list is barred, or there is none.
            is_answer = context.allowed_tools == () or (self.scene.kind == "plan" and not listed)
            assert is_answer or always <= set(offered), context
        elif not by_hand:
            assert set(offered) <= self.brought
        out = {omission.what for omission in context.left_out}
        assert not out & {str(row.item) for row in context.tools if row.name in offered}
        if context.agreement.broke is not None:
            assert context.agreement.broke.reason.strip()

    async def require_sound(self) -> None:
        """The journal proves what was sent, what may be called included."""
        scene = self.scene
        journal = await scene.store.read(scene.runner.session.id)
        assert verify(journal, scene.book).sound
        requests = list_requests(journal)
        if requests.listed and scene.provider.bodies:
            last = requests.listed[-1]
            recorded = rebuild_request(journal, requests, last, scene.book)
            target = scene.book.find(last.request.target)
            body = scene.book.wire(target).encode(wire_request(recorded, scene.book, {}))
            listed = [row.name for row in last.request.context.tools]
            assert names_on_wire(body, target) == listed
            if target.bars_tools:
                allows = last.request.context.allows
                assert callable_on_wire(body, target, listed) == list(filter(allows, listed))


async def _unless_unknown(act: Awaitable[bool]) -> bool:
    try:
        return await act
    except UsageError:
        return False


def names_on_wire(body: Mapping[str, Any], target: Target) -> list[str]:
    """The tools that a model is told of, as every vendor is told of them."""
    match target.wire:
        case "openai" | "llamacpp_tools":
            return [row["function"]["name"] for row in body.get("tools", ())]
        case "anthropic":
            return [row["name"] for row in body.get("tools", ())]
        case "gemini":
            tools = body.get("config", {}).get("tools", ())
            return [row["name"] for some in tools for row in some["function_declarations"]]
        case "llamacpp":
            head = body["messages"][0]
            text = head["content"] if head["role"] == "system" else ""
            return re.findall(r"^## (\S+)$", text, re.MULTILINE)


def callable_on_wire(body: Mapping[str, Any], target: Target, listed: list[str]) -> list[str]:
    """Those of them that the request lets it call."""
    if target.wire == "llamacpp":
        form = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        tools = [row["properties"].get("tool") for row in form.get("anyOf", ())]
        return [row["const"] for row in tools if row]
    match body.get("tool_choice"):
        case None:
            return listed
        case "none":
            return []
        case choice:
            return [row["function"]["name"] for row in choice["allowed_tools"]["tools"]]


@modest
@given(
    steps,
    st.sampled_from(TARGETS),
    st.booleans(),
    st.sampled_from(["sticky", "sticky", "exact", "all"]),
    st.sampled_from([0, 1, None]),
)
# A plan of a session whose list is still empty.
@example([Remove("a"), Reopen("plan")], TARGETS[0], False, "sticky", 0)
def test_whatever_happens_the_tools_offered_are_those_recorded_and_those_that_can_be_called(
    drawn: list[Struct], target: Target, brings: bool, policy: str, joins: int | None
) -> None:
    async def body() -> None:
        play = Play(target, brings=brings, policy=policy, joins=joins)
        async with play.scene:
            for step in drawn:
                await play.take(step)
            await play.take(Ask())
            await play.require_sound()

    run(body())
