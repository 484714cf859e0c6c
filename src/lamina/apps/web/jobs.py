"""Long work that is no turn: a model that is fetched, an index that is built.

Law: a job belongs to no connection. Its progress is numbered and can be watched by anybody, and it
runs until it is done or somebody stops it.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from lamina.apps.web.http_answers import failure_of, not_found, tell_defect
from lamina.apps.web.server_events import EventLog
from lamina.errors import LaminaError

JobState = Literal["working", "done", "failed", "stopped"]
# How many jobs that are over can still be looked at.
KEPT = 50


class JobProgress(Struct, frozen=True, kw_only=True, tag="progress"):
    """How far a job is: `done` of `total`, both 0 while nobody knows."""

    text: str
    done: int = 0
    total: int = 0


class JobEnd(Struct, frozen=True, kw_only=True, tag="end"):
    """A job is over; `result` is what it came to."""

    state: JobState
    result: Any = None


class JobStarted(Struct, frozen=True, kw_only=True):
    """What a route answers that starts a job: `/api/jobs/{job}/events` tells how far it is."""

    job: str
    name: str


class JobRow(Struct, frozen=True, kw_only=True):
    """One job, as people are shown it."""

    job: str
    name: str
    state: JobState


Report = Callable[[JobProgress], None]
Work = Callable[[Report], Awaitable[Any]]


class Job:
    """One piece of work, its log, and how it is stopped."""

    def __init__(self, job: str, name: str) -> None:
        self.id = job
        self.name = name
        self.log = EventLog()
        self.state: JobState = "working"
        self.scope = anyio.CancelScope()

    @property
    def started(self) -> JobStarted:
        return JobStarted(job=self.id, name=self.name)

    @property
    def row(self) -> JobRow:
        return JobRow(job=self.id, name=self.name, state=self.state)

    def report(self, progress: JobProgress) -> None:
        self.log.add("progress", progress)


class Jobs:
    """All jobs of a server. They run in the task group that `bind` gives."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._group: TaskGroup | None = None
        self._count = 0

    def bind(self, group: TaskGroup | None) -> None:
        self._group = group

    def start(self, name: str, work: Work) -> Job:
        """Starts `work`, which is called with what it reports its progress to; what it returns is
        the result. A job of the same name that still works is that job: nothing is done twice."""
        for job in self._jobs.values():
            if job.name == name and job.state == "working":
                return job
        self._count += 1
        job = Job(f"job-{self._count}", name)
        self._jobs[job.id] = job
        over = [known for known in self._jobs.values() if known.state != "working"]
        for old in over[: max(0, len(self._jobs) - KEPT)]:
            del self._jobs[old.id]
        assert self._group is not None, "the server has not begun, or is over"
        self._group.start_soon(self._run, job, work)
        return job

    def find(self, job: str) -> Job:
        """
        Raises:
            Refusal: there is none of that id.
        """
        if (found := self._jobs.get(job)) is None:
            raise not_found("job", job, "jobs are forgotten when the server ends")
        return found

    def list_jobs(self) -> tuple[JobRow, ...]:
        return tuple(job.row for job in self._jobs.values())

    def stop(self, job: str) -> bool:
        """Stops it; False if it was over."""
        found = self.find(job)
        if found.state != "working":
            return False
        found.scope.cancel()
        return True

    async def _run(self, job: Job, work: Work) -> None:
        try:
            with job.scope:
                result = await work(job.report)
                job.state = "done"
                job.log.add("end", JobEnd(state="done", result=result))
                return
            job.state = "stopped"
            job.log.add("end", JobEnd(state="stopped"))
        except Exception as error:  # noqa: BLE001 - whoever watches is told; nobody else waits
            if not isinstance(error, LaminaError):
                tell_defect(error)
            job.state = "failed"
            job.log.add("failed", failure_of(error))
