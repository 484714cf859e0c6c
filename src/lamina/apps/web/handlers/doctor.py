"""The doctor: on a session, on files that were dropped, on this machine, on a sample."""

from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from anyio.to_thread import run_sync
from msgspec import Struct

from lamina.adapters.formats.agent_stores import files_under
from lamina.apps.web.doctor_view import DoctorPage, show_report
from lamina.apps.web.jobs import JobProgress, JobStarted, Report
from lamina.apps.web.refusals import Refusal
from lamina.apps.web.route import Call, RequestBody, RequestQuery, Route
from lamina.apps.wiring.stores import list_everywhere
from lamina.doctor.collector import (
    GivenFile,
    RequestCollector,
    collect_given,
    collect_journal,
    collect_machine,
)
from lamina.doctor.records import DoctorOptions, parse_since, report_on
from lamina.doctor.sample import sample_files

SESSION = "/api/workspaces/{workspace}/sessions/{session}"


class DoctorQuery(RequestQuery, frozen=True, kw_only=True):
    """With `text` what was said is shown, and not its digest."""

    text: bool = False


class UploadedFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that was dropped: its name is shown, and never made a path."""

    name: str
    content: str
    encoding: Literal["utf-8", "base64"] = "utf-8"


class DoctorUpload(RequestBody, frozen=True, kw_only=True):
    files: tuple[UploadedFile, ...]
    text: bool = False


class DoctorMachine(RequestBody, frozen=True, kw_only=True):
    """`since` as `30d` or a date; empty for all there is."""

    since: str = ""
    text: bool = False


async def examine_session(call: Call) -> DoctorPage:
    journal = await call.desk.read_journal(call.workspace, call.session)
    collector = await run_sync(collect_journal, journal, call.session)
    return await _show(collector, DoctorOptions(), call.query.text)


async def examine_upload(call: Call) -> DoctorPage:
    upload: DoctorUpload = call.body
    if not upload.files:
        raise Refusal(422, "invalid", "there are no files to look at", ("files",))
    files = [GivenFile(name=file.name, data=_decode(file)) for file in upload.files]
    collector = await run_sync(collect_given, files)
    return await _show(collector, DoctorOptions(), upload.text)


async def examine_machine(call: Call) -> JobStarted:
    asked: DoctorMachine = call.body
    since = parse_since(asked.since, datetime.now(UTC)) if asked.since else None

    async def work(report: Report) -> DoctorPage:
        def tell(done: int, total: int) -> None:
            report(JobProgress(text="reading sessions", done=done, total=total))

        collector = await collect_machine(tell, list_everywhere)
        return await _show(collector, DoctorOptions(since=since), asked.text)

    return call.desk.jobs.start("doctor", work).started


async def examine_sample(call: Call) -> DoctorPage:
    def collect_sample() -> RequestCollector:
        collector = RequestCollector()
        with sample_files() as folders:
            for file in files_under(Path(folders[0])):
                collector.add_path(file, file.name)
        return collector

    return await _show(await run_sync(collect_sample), DoctorOptions(), call.query.text)


async def _show(collector: RequestCollector, options: DoctorOptions, with_text: bool) -> DoctorPage:
    report = await run_sync(report_on, collector, options)
    return show_report(report, with_text=with_text)


def _decode(file: UploadedFile) -> bytes:
    if file.encoding == "utf-8":
        return file.content.encode("utf-8", "surrogatepass")
    try:
        return b64decode(file.content, validate=True)
    except ValueError as error:
        raise Refusal(422, "invalid", f"{file.name!r} is not base64: {error}", ("files",)) from None


ROUTES = (
    Route(
        method="GET", path=f"{SESSION}/doctor", handler=examine_session, result=DoctorPage,
        query=DoctorQuery, summary="Where the session's cache did not hit, why, and what it cost.",
    ),
    Route(
        method="POST", path="/api/doctor", handler=examine_upload, result=DoctorPage,
        body=DoctorUpload, summary="The same of files of any program, which are not kept.",
    ),
    Route(
        method="POST", path="/api/doctor/machine", handler=examine_machine, result=JobStarted,
        body=DoctorMachine, status=202,
        summary="The same of all sessions of this machine: a job whose result is the report.",
    ),
    Route(
        method="GET", path="/api/doctor/sample", handler=examine_sample, result=DoctorPage,
        query=DoctorQuery, summary="The same of a made-up sample.",
    ),
)  # fmt: skip
