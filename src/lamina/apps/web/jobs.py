"""Long work outside turns: downloading a model, building an index.

Law: a job belongs to no connection. Its progress is numbered, anyone may watch it, and it runs
until it is done or stopped.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from lamina.apps.web.http_answers import failure_of, not_found, print_defect
from lamina.apps.web.server_events import EventLog
from lamina.errors import LaminaError

JobState = Literal["working", "done", "failed", "stopped"]
# How many finished jobs are kept.
KEPT = 50


class JobProgress(Struct, frozen=True, kw_only=True, tag="progress"):
    """A job's progress: `done` of `total`, both 0 while unknown."""

    text: str
    done: int = 0
    total: int = 0


class JobEnd(Struct, frozen=True, kw_only=True, tag="end"):
    """A job has ended; `result` is its result."""

    state: JobState
    result: Any = None


class JobStarted(Struct, frozen=True, kw_only=True):
    """The answer of a route that starts a job: `/api/jobs/{job}/events` streams its progress."""

    job: str
    name: str


class JobRow(Struct, frozen=True, kw_only=True):
    """One job, as shown to people."""

    job: str
    name: str
    state: JobState


Report = Callable[[JobProgress], None]
Work = Callable[[Report], Awaitable[Any]]


class Job:
    """One piece of work, its log, and how to stop it."""

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
    """All jobs of a server. They run in the task group passed to `bind`."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._group: TaskGroup | None = None
        self._count = 0

    def bind(self, group: TaskGroup | None) -> None:
        self._group = group

    def start(self, name: str, work: Work) -> Job:
        """Start `work`, which is called with a function that reports its progress; it returns the
        result. If a job of the same name is running, that job is returned instead."""
        for job in self._jobs.values():
            if job.name == name and job.state == "working":
                return job
        self._count += 1
        job = Job(f"job-{self._count}", name)
        self._jobs[job.id] = job
        over = [known for known in self._jobs.values() if known.state != "working"]
        for old in over[: max(0, len(self._jobs) - KEPT)]:
            del self._jobs[old.id]
        assert self._group is not None, "the server is not running"
        self._group.start_soon(self._run, job, work)
        return job

    def find(self, job: str) -> Job:
        """
        Raises:
            Refusal: there is no job with that id.
        """
        if (found := self._jobs.get(job)) is None:
            raise not_found("job", job, "jobs are forgotten when the server stops")
        return found

    def list_jobs(self) -> tuple[JobRow, ...]:
        return tuple(job.row for job in self._jobs.values())

    def stop(self, job: str) -> bool:
        """Stop the job; False if it had already ended."""
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
        except Exception as error:  # noqa: BLE001 - reported to those who watch the job
            if not isinstance(error, LaminaError):
                print_defect(error)
            job.state = "failed"
            job.log.add("failed", failure_of(error))
