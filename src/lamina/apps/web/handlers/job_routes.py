"""Long-running jobs: listing, watching and stopping them."""

from msgspec import Struct

from lamina.apps.web.http_bodies import EventStream
from lamina.apps.web.jobs import JobEnd, JobProgress, JobRow
from lamina.apps.web.routes import Call, Route
from lamina.apps.web.server_events import number_after
from lamina.apps.web.workspace_list import Done


class JobRows(Struct, frozen=True, kw_only=True):
    jobs: tuple[JobRow, ...]


async def list_jobs(call: Call) -> JobRows:
    return JobRows(jobs=call.desk.jobs.list_jobs())


async def watch_job(call: Call) -> EventStream:
    job = call.desk.jobs.find(call.path["job"])
    return EventStream(job.log.follow(number_after(call.headers)))


async def stop_job(call: Call) -> Done:
    return Done(changed=call.desk.jobs.stop(call.path["job"]))


ROUTES = (
    Route(
        method="GET", path="/api/jobs", handler=list_jobs, result=JobRows,
        summary="Lists running and recent jobs.",
    ),
    Route(
        method="GET", path="/api/jobs/{job}/events", handler=watch_job,
        result=JobProgress | JobEnd, form="events",
        summary="Streams a job's progress: `progress`, and finally `end` or `failed`.",
    ),
    Route(
        method="DELETE", path="/api/jobs/{job}", handler=stop_job, result=Done, right="admin",
        summary="Stops a job.",
    ),
)  # fmt: skip
