"""A summarizer that says what it was told to, and the sessions that ask one."""

from collections.abc import Callable
from typing import Any

import anyio
from tests.fakes.sessions import World

from lamina.core.audit.verification import verify
from lamina.core.ports import SummaryJob
from lamina.core.values.message import ToolCall, ToolResult
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn

# An answer that never comes.
NEVER = object()
SAID = "## Goal\nThe harbour plan."
SUMMARY_MARK = "Earlier messages were removed"


class FakeSummarizer:
    """Gives its answers in turn, the last one for ever. Exceptions are raised, functions are asked
    for the answer to a job, and for NEVER it waits until it is cancelled."""

    def __init__(self, *answers: Any) -> None:
        self._answers = answers or (SAID,)
        self.jobs: list[SummaryJob] = []
        self.requests: list[dict[str, Any]] = []
        self.cancelled = 0

    @property
    def asked(self) -> int:
        return len(self.jobs)

    async def summarize(self, job: SummaryJob) -> object:
        self.jobs.append(job)
        self.requests.append(job.request())
        answer = self._answers[min(len(self.jobs), len(self._answers)) - 1]
        if answer is NEVER:
            try:
                await anyio.Event().wait()
            except BaseException:
                self.cancelled += 1
                raise
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Callable):  # type: ignore[arg-type]
            return answer(job)
        return answer


async def compacting(
    summarizer: FakeSummarizer | None, world: World | None = None, **given: Any
) -> Session:
    """A session of 1,200 tokens: compaction is due above 900, and keeps 400 of history; a summary
    may take 200, and a request 1,100."""
    limits = {"window": 1_200, "output_reserve": 100, **given}
    return await (world or World()).open(summarizer=summarizer, **limits)


def compactions(turn: Turn) -> list[str]:
    """The reasons of the compactions that a request says it came behind."""
    return [
        boundary.reason for boundary in turn.context.boundaries if boundary.kind == "compaction"
    ]


def summaries_in(turn: Turn) -> list[str]:
    return [segment.text for segment in turn.prompt if SUMMARY_MARK in segment.text]


def require_paired(turn: Turn) -> None:
    """Every call is followed by its result and every result follows its call."""
    waiting: list[str] = []
    for segment in turn.prompt:
        match segment.content:
            case ToolCall(id=call):
                waiting.append(call)
            case ToolResult(call_id=call):
                assert call in waiting, call
                waiting.remove(call)
            case _:
                assert not waiting, waiting
    assert not waiting, waiting


async def require_sound(world: World, session: Session) -> None:
    """Every request of the session can be rebuilt byte for byte from its journal."""
    verdict = verify(await world.store.read(session.id), world.book)
    assert verdict.sound, verdict
