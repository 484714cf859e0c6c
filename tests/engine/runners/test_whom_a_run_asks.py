"""Issue 16, A.2: nothing reaches a provider that was not named, and a try that fails before
anything was sent leaves nothing behind."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.fakes.book import OTHER, SMALL
from tests.fakes.notes import NoteSourceFake, WordIndexFake
from tests.fakes.providers import ProviderFake, calling, saying
from tests.fakes.sessions import World, run
from tests.fakes.tools import ToolHostFake, tool

from lamina.core.ports import Provider
from lamina.core.values.settings import Target
from lamina.engine.runners.qa import QaRunner
from lamina.engine.runners.runner import AgentRunner, ChatRunner, PlanRunner, Runner
from lamina.engine.session.session import Session
from lamina.engine.sources.note_search import WorkspaceSearch
from lamina.errors import KeyMissing, LaminaError, ModelMissing, ProviderError


class ProvidersByTarget:
    """A provider for every target, who keeps what reached it; or the error in its place."""

    def __init__(self, *scripts: Any) -> None:
        self.by_name: dict[str, ProviderFake] = {
            SMALL.name: ProviderFake(), OTHER.name: ProviderFake(*scripts),
        }  # fmt: skip
        self.problem: LaminaError | None = None

    async def provider(self, target: Target) -> Provider:
        if self.problem is not None:
            raise self.problem
        return self.by_name[target.name]

    def reached(self, target: Target) -> str:
        return str(self.by_name[target.name].bodies)


def _qa(session: Session, providers: ProvidersByTarget) -> Runner:
    notes = NoteSourceFake({"a.md": "The pier opens in May."})
    return QaRunner(session, providers, WorkspaceSearch(notes, WordIndexFake()))


RUNNERS: dict[str, Callable[[Session, ProvidersByTarget], Runner]] = {
    "chat": ChatRunner,
    "agent": lambda session, providers: AgentRunner(session, providers, ToolHostFake(tool("find"))),
    "plan": lambda session, providers: PlanRunner(session, providers, ToolHostFake(tool("find"))),
    "qa": _qa,
}
modes = pytest.mark.parametrize("mode", RUNNERS)


@modes
def test_a_run_asks_whom_it_names_and_nobody_else(mode: str) -> None:
    async def body() -> None:
        providers = ProvidersByTarget()
        async with RUNNERS[mode](await World().open("s"), providers) as runner:
            await runner.run("Which pier?", target=OTHER.name)
            assert "Which pier?" in providers.reached(OTHER)
            assert providers.reached(SMALL) == "[]"

    run(body())


@modes
@pytest.mark.parametrize(
    "problem", [KeyMissing("no key"), ProviderError("no SDK"), ModelMissing("")]
)
def test_a_try_without_anybody_to_ask_writes_nothing(mode: str, problem: LaminaError) -> None:
    async def body() -> None:
        world, providers = World(), ProvidersByTarget()
        providers.problem = problem
        async with RUNNERS[mode](await world.open("s"), providers) as runner:
            entries = runner.session.entries
            with pytest.raises(type(problem)):
                await runner.run("Secret?", target=OTHER.name)
            assert runner.session.entries == entries
            providers.problem = None
            await runner.run("Which pier?")
            assert "Secret?" not in providers.reached(SMALL)
        assert "Secret?" not in str((await world.store.read("s")).entries)

    run(body())


@modes
def test_a_try_that_fails_after_sending_is_no_part_of_the_next_question(mode: str) -> None:
    async def body() -> None:
        providers = ProvidersByTarget(*[[ProviderError("no line")]] * 2)
        async with RUNNERS[mode](await World().open("s"), providers) as runner:
            with pytest.raises(ProviderError):
                await runner.run("Secret?", target=OTHER.name)
            await runner.run("Which pier?", target=SMALL.name)
            assert "Which pier?" in providers.reached(SMALL)
            assert "Secret?" not in providers.reached(SMALL)

    run(body())


@modes
def test_going_on_asks_whoever_was_named_since(mode: str) -> None:
    async def body() -> None:
        providers = ProvidersByTarget(*[[ProviderError("no line")]] * 2)
        async with RUNNERS[mode](await World().open("s"), providers) as runner:
            with pytest.raises(ProviderError):
                await runner.run("Which pier?", target=OTHER.name)
            sent = providers.reached(OTHER)
            answer = await runner.resume(target=SMALL.name)
            assert answer.text.startswith("Done.")
            assert "Which pier?" in providers.reached(SMALL)
            assert providers.reached(OTHER) == sent

    run(body())


def test_an_answer_from_notes_that_goes_on_elsewhere_has_its_sources() -> None:
    async def body() -> None:
        providers = ProvidersByTarget([ProviderError("no line")])
        providers.by_name[SMALL.name].scripts = [saying("In May [^1].")]
        async with _qa(await World().open("s"), providers) as runner:
            with pytest.raises(ProviderError):
                await runner.run("When does the pier open?", target=OTHER.name)
            answer = await runner.resume(target=SMALL.name)
            assert [source.path for source in answer.sources] == ["a.md"]

    run(body())


def test_going_on_with_calls_sends_their_results_to_whoever_is_named() -> None:
    async def body() -> None:
        providers = ProvidersByTarget(calling(("c", "find", {})))
        host = ToolHostFake(tool("find", "required"))
        async with AgentRunner(await World().open("s"), providers, host) as runner:
            assert (await runner.run("Which pier?", target=OTHER.name)).ending == "waiting"
            await runner.decide("c", "allow_once")
            sent = providers.reached(OTHER)
            assert (await runner.resume(target=SMALL.name)).text == "Done."
            assert "find gave" in providers.reached(SMALL)
            assert providers.reached(OTHER) == sent

    run(body())
