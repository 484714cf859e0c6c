"""The laws of the runners, over agents' lives that could be.

What is drawn is plain: what the model does, when somebody stops it, when the process ends. After
every step the journal is sound, calls stand with their results, what was sent stays in front or a
reason is recorded, and nothing runs twice; in the end the session takes another question.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

import anyio
from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st
from msgspec import Struct
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import Call, Script, Step, calling, saying, spoken
from tests.fakes.sessions import run, words
from tests.fakes.store import FakeStore
from tests.fakes.summarizer import FakeSummarizer
from tests.fakes.tools import ApproverFake, tool

from lamina.core.values.event import Event, ToolStarted
from lamina.core.values.tool import Decision, OfferedTool
from lamina.engine.runners.runner import Answer, Delivery
from lamina.engine.session.session import core_of
from lamina.errors import BudgetError, ProviderError, RequestTooLong, TurnStateError

lives_settings = settings(
    max_examples=150,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

# -- what is drawn --------------------------------------------------------------------------------


class Says(Struct, frozen=True):
    size: int


class Calls(Struct, frozen=True):
    """`free` runs unasked, `asked` does not; the model was told of no `unknown`, and writes
    `broken` arguments."""

    kinds: tuple[str, ...]


class Fails(Struct, frozen=True):
    how: Literal["error", "breaks off", "too long"]
    after: int


Does = Says | Calls | Fails


class Stop(Struct, frozen=True):
    """At which event, and how; when the process dies, only what was written by then is there."""

    at: int
    how: Literal["abort", "cancel", "death"]


class Ask(Struct, frozen=True, kw_only=True):
    size: int
    does: tuple[Does, ...]
    stop: Stop | None = None
    meanwhile: Delivery | None = None


class GoOn(Struct, frozen=True, kw_only=True):
    does: tuple[Does, ...]
    stop: Stop | None = None


class Decide(Struct, frozen=True):
    decision: Decision


class Offer(Struct, frozen=True):
    names: tuple[str, ...]
    describes: str


class Restart(Struct, frozen=True):
    """The process ends in order, and another opens the session."""


Deed = Ask | GoOn | Decide | Offer | Restart


class Life(Struct, frozen=True, kw_only=True):
    deeds: tuple[Deed, ...]
    # Nobody is asked, or somebody who decides so in turn.
    decisions: tuple[Literal["allow_once", "allow_session", "deny", "fails"], ...] = ()
    window: int = 10_000


calls = st.lists(
    st.sampled_from(["free", "free", "asked", "asked", "unknown", "broken"]), max_size=4
)
does = st.one_of(
    st.builds(Says, st.integers(1, 60)),
    st.builds(Calls, calls.map(tuple)),
    st.builds(Calls, calls.map(tuple)),
    st.builds(Fails, st.sampled_from(["error", "breaks off", "too long"]), st.integers(0, 3)),
)
scripts = st.lists(does, max_size=4).map(tuple)
stops = st.none() | st.builds(
    Stop, st.integers(0, 18), st.sampled_from(["abort", "cancel", "death"])
)
deeds = st.one_of(
    st.builds(
        Ask,
        size=st.integers(1, 40),
        does=scripts,
        stop=stops,
        meanwhile=st.sampled_from([None, None, None, "steer", "follow_up"]),
    ),
    st.builds(GoOn, does=scripts, stop=stops),
    st.builds(Decide, st.sampled_from(["allow_once", "allow_session", "deny"])),
    st.builds(
        Offer,
        st.permutations(["free", "asked", "more"]).flatmap(
            lambda names: st.integers(0, 3).map(lambda count: tuple(names[:count]))
        ),
        st.sampled_from(["so", "so", "otherwise"]),
    ),
    st.builds(Restart),
)
lives = st.builds(
    Life,
    deeds=st.lists(deeds, min_size=3, max_size=9).map(tuple),
    decisions=st.sampled_from(
        [
            (),
            (),
            ("allow_once", "deny"),
            ("deny", "allow_session"),
            ("fails", "allow_once", "fails", "deny"),
        ]
    ),
    window=st.sampled_from([10_000, 700]),
)


# -- how it is played -----------------------------------------------------------------------------


class NoScreen(Exception):
    """There is nobody to ask."""


class Player:
    def __init__(self, life: Life) -> None:
        self.life = life
        self._ids = 0
        decisions = [NoScreen() if decision == "fails" else decision for decision in life.decisions]
        self.scene = Scene(
            tools=offered(("free", "asked"), "so"),
            approver=ApproverFake(*decisions) if decisions else None,
            max_requests=3,
            window=life.window,
            output_reserve=50,
            compaction_summary=40,
            summarizer=FakeSummarizer("## Goal\nThe plan."),
        )
        # Calls that ran when the process died: they may have to run again.
        self.excused: set[str] = set()

    async def play(self) -> None:
        async with self.scene:
            for deed in self.life.deeds:
                await self._do(deed)
                await self._require_laws()
            self.scene.provider.scripts.clear()
            inbox = core_of(self.scene.runner.session).inbox
            for message in (*inbox.waiting("steer"), *inbox.waiting("follow_up")):
                await inbox.discard(message)
            await self.scene.require_sound("And after all that?")

    async def _do(self, deed: Deed) -> None:
        scene = self.scene
        match deed:
            case Ask(size=size, meanwhile=meanwhile):
                if meanwhile:
                    await scene.agent.send_message(words(5, "meanwhile"), deliver=meanwhile)
                await self._turn(deed, words(size, "question"))
            case GoOn():
                await self._turn(deed, None)
            case Decide(decision=decision):
                for call in scene.runner.session.pending_calls[:1]:
                    with suppress(TurnStateError):
                        await scene.agent.decide(call.id, decision)
            case Offer(names=names, describes=describes):
                scene.host.tools = offered(names, describes)
            case Restart():
                before = scene.runner.session.state
                await scene.restart()
                assert scene.runner.session.state == before

    async def _turn(self, deed: Ask | GoOn, text: str | None) -> None:
        scene = self.scene
        scene.provider.scripts = [self._script(each) for each in deed.does]
        assert isinstance(scene.store, FakeStore)
        dead: Mapping[str, list[bytes]] | None = None
        with anyio.CancelScope() as scope:

            def watch(seen: Event, number: int) -> None:
                nonlocal dead
                if deed.stop is None or number != deed.stop.at:
                    return
                if deed.stop.how == "abort":
                    assert scene.runner.abort() or not scene.runner.running
                    return
                if deed.stop.how == "death":
                    dead = {name: list(kept) for name, kept in scene.store._sessions.items()}  # type: ignore[attr-defined]
                scope.cancel()

            scene.on_event = watch
            expected = (ProviderError, BudgetError, NoScreen)
            with suppress(*expected, *([TurnStateError] if text is None else [])):
                answer = await (scene.go_on() if text is None else scene.ask(text))
                self._require_answer(answer)
            scene.on_event = None
        assert not scene.runner.running
        if dead is not None:
            event("died")
            self.excused |= {str(given["id"]) for _, given in scene.host.calls}
            await scene.runner.session.close()
            scene.store._sessions = dict(dead)
            scene.store._ids = {}
            await scene.open()

    def _script(self, does: Does) -> Script:
        match does:
            case Says(size=size):
                return saying(words(size, "answer"))
            case Calls(kinds=kinds):
                return calling(*map(self._call, kinds)) if kinds else saying("Nothing.")
            case Fails(how=how, after=after):
                said: list[Step] = [*spoken(words(after, "half"))] if after else []
                if how == "error":
                    said.append(ProviderError("no line"))
                elif how == "too long":
                    said.append(RequestTooLong("too long"))
                return said

    def _call(self, kind: str) -> Call:
        self._ids += 1
        call = f"c{self._ids}"
        if kind == "broken":
            return call, "free", '{"id": '
        return call, kind, {"id": call}

    # -- the laws --------------------------------------------------------------------------------

    def _require_answer(self, answer: Answer) -> None:
        scene = self.scene
        event(answer.ending)
        session = scene.runner.session
        waiting = [call.id for call in session.pending_calls]
        if answer.ending == "waiting":
            assert [each.call.id for each in answer.waiting_calls] == waiting
            assert waiting
        elif answer.ending in ("answered", "limit"):
            assert not waiting
            assert not session.interrupted

    async def _require_laws(self) -> None:
        scene = self.scene
        await scene.verify()
        ran = Counter(str(given["id"]) for _, given in scene.host.calls)
        twice = {call for call, times in ran.items() if times > 1}
        assert twice <= self.excused, twice
        results = {call.id for call in scene.runner.session.pending_calls}
        assert not results & scene.runner.session.state.turn.results.keys()


def offered(names: tuple[str, ...], describes: str) -> list[OfferedTool]:
    return [
        tool(name, "required" if name == "asked" else "free", description=f"Does {describes}.")
        for name in names
    ]


@lives_settings
@given(lives)
def test_whatever_happens_the_session_is_sound_and_goes_on(life: Life) -> None:
    note(str(life))

    async def body() -> None:
        await Player(life).play()

    run(body())


def test_a_tool_that_began_before_the_process_died_is_the_only_one_to_run_again() -> None:
    async def body() -> None:
        scene = Scene(calling(("a", "free", {"id": "a"})), tools=offered(("free",), "so"))
        kept: list[Any] = []
        async with scene:
            assert isinstance(scene.store, FakeStore)
            store = scene.store

            def die(seen: Event, number: int) -> None:
                if isinstance(seen, ToolStarted):
                    kept.append({name: list(lines) for name, lines in store._sessions.items()})

            scene.on_event = die
            await scene.ask()
            store._sessions, store._ids = kept[0], {}
            await scene.open()
            scene.on_event = None
            assert (await scene.go_on()).ending == "answered"
            assert scene.host.called == ["free", "free"]
            await scene.require_sound()

    run(body())
