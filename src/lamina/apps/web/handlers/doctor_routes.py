"""The doctor in the web app: for a session, uploaded files, this machine, or a sample; every
finding with a sentence and a price.

Law: session texts leave this module as digests, unless text is requested.
"""

from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from anyio.to_thread import run_sync
from msgspec import Struct
from msgspec.structs import asdict

from lamina.adapters.formats.agent_stores import files_under
from lamina.apps.web.http_answers import Refusal
from lamina.apps.web.http_bodies import RequestBody, RequestQuery
from lamina.apps.web.jobs import JobProgress, JobStarted, Report
from lamina.apps.web.routes import Call, Route
from lamina.apps.wiring.stores import list_everywhere
from lamina.core.audit.break_causes import CAUSES
from lamina.doctor.collector import (
    ReadFiles,
    ReceivedFile,
    RequestCollector,
    collect_journal,
    collect_machine,
    collect_uploads,
)
from lamina.doctor.doctor_report import (
    Advice,
    CauseSum,
    DoctorOptions,
    DoctorReport,
    ReportTotals,
    SessionSum,
    Unknown,
    parse_since,
    report_on,
    show_bytes,
)
from lamina.doctor.findings import Finding, Loss, RequestFigures
from lamina.doctor.sample import sample_files
from lamina.doctor.sentences import describe_finding, name_program


class FindingRow(Loss[str | None], frozen=True, kw_only=True):
    """One loss. `before` and `after` are the content at that byte, as a digest or as text. Money is
    in US dollars at list price; `extra` is the extra cost over reading the same tokens."""

    program: str
    label: str
    sentence: str
    extra: float | None


# How much of a report is shown; totals cover all of it.
MAX_FINDINGS, MAX_REQUESTS = 500, 5_000


class DoctorPage(Struct, frozen=True, kw_only=True):
    """A report as a page shows it. `with_text` says that it contains texts of sessions; `is_cut`
    that there are more findings or requests than listed; the most expensive findings come first."""

    lamina: str
    prices_of: str
    with_text: bool
    is_cut: bool
    programs: tuple[str, ...]
    read: ReadFiles
    totals: ReportTotals
    lost_share: float
    causes: tuple[CauseSum, ...]
    findings: tuple[FindingRow, ...]
    fixes: tuple[Advice, ...]
    unknowns: tuple[Unknown, ...]
    sessions: tuple[SessionSum, ...]
    requests: tuple[RequestFigures, ...]


def show_report(report: DoctorReport, *, with_text: bool) -> DoctorPage:
    """Return the report with every finding in words."""
    return DoctorPage(
        lamina=report.lamina,
        prices_of=report.prices_of,
        with_text=with_text,
        is_cut=len(report.findings) > MAX_FINDINGS or len(report.requests) > MAX_REQUESTS,
        programs=tuple(name_program(source) for source in report.read.sources if source),
        read=report.read,
        totals=report.totals,
        lost_share=report.totals.lost_share,
        causes=report.causes,
        findings=tuple(
            _show_finding(finding, with_text) for finding in report.findings[:MAX_FINDINGS]
        ),
        fixes=report.fixes,
        unknowns=report.unknowns,
        sessions=report.sessions,
        requests=report.requests[:MAX_REQUESTS],
    )


def _show_finding(finding: Finding, with_text: bool) -> FindingRow:
    shown = {
        "before": show_bytes(finding.before, with_text=with_text),
        "after": show_bytes(finding.after, with_text=with_text),
        "program": name_program(finding.source),
        "label": CAUSES[finding.cause].label,
        "sentence": describe_finding(finding),
        "extra": finding.extra,
    }
    return FindingRow(**asdict(finding) | shown)


SESSION = "/api/workspaces/{workspace}/sessions/{session}"


class DoctorQuery(RequestQuery, frozen=True, kw_only=True):
    """With `text`, texts are shown instead of their digests."""

    text: bool = False


class UploadedFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An uploaded file: its name is shown, and never used as a path."""

    name: str
    content: str
    encoding: Literal["utf-8", "base64"] = "utf-8"


class DoctorUpload(RequestBody, frozen=True, kw_only=True):
    files: tuple[UploadedFile, ...]
    text: bool = False


class DoctorMachine(RequestBody, frozen=True, kw_only=True):
    """`since` as `30d` or a date; empty for everything."""

    since: str = ""
    text: bool = False


async def examine_session(call: Call) -> DoctorPage:
    journal = await call.desk.read_journal(call.workspace, call.session)
    collector = await run_sync(collect_journal, journal, call.session)
    return await _show(collector, DoctorOptions(), call.query.text)


async def examine_upload(call: Call) -> DoctorPage:
    upload: DoctorUpload = call.body
    if not upload.files:
        raise Refusal(422, "invalid", "no files were uploaded", ("files",))
    files = [ReceivedFile(name=file.name, data=_decode(file)) for file in upload.files]
    collector = await run_sync(collect_uploads, files)
    return await _show(collector, DoctorOptions(), upload.text)


async def examine_machine(call: Call) -> JobStarted:
    asked: DoctorMachine = call.body
    since = parse_since(asked.since, datetime.now(UTC)) if asked.since else None

    async def work(report: Report) -> DoctorPage:
        def report_step(done: int, total: int) -> None:
            report(JobProgress(text="reading sessions", done=done, total=total))

        collector = await collect_machine(report_step, list_everywhere)
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
        query=DoctorQuery, summary="Reports the session's cache misses, why, and their cost.",
    ),
    Route(
        method="POST", path="/api/doctor", handler=examine_upload, result=DoctorPage,
        body=DoctorUpload, summary="Reports on files of any program, which are not stored.",
    ),
    Route(
        method="POST", path="/api/doctor/machine", handler=examine_machine, result=JobStarted,
        body=DoctorMachine, status=202,
        summary="Reports on all sessions of this machine, as a job.",
    ),
    Route(
        method="GET", path="/api/doctor/sample", handler=examine_sample, result=DoctorPage,
        query=DoctorQuery, summary="Reports on an invented sample.",
    ),
)  # fmt: skip
