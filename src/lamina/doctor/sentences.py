"""Writes the doctor's sentences for screens, pages and cards."""

from datetime import UTC, datetime

from lamina.adapters.formats.agent_stores import SUFFIXES
from lamina.core.audit.break_causes import CAUSES, CauseName, count_of
from lamina.core.text.money import dollars
from lamina.doctor.doctor_report import DoctorReport
from lamina.doctor.findings import Finding

_PROGRAMS = {
    "claude_code": "Claude Code", "codex": "Codex", "pi": "pi", "opencode": "OpenCode",
    "copilot_cli": "Copilot CLI", "gemini_cli": "Gemini CLI", "lamina": "Lamina",
    "request_log": "request log", "har": "HAR",
}  # fmt: skip

_FRONT = "the system prompt or the tools changed"
_CANDIDATES: dict[CauseName, str] = {
    "clock": _FRONT, "system_changed": _FRONT, "tools_changed": _FRONT,
    "other_machine": "the provider no longer had it",
    "first_message": "the first message changed",
    "parameter": "a parameter changed",
    "thinking": "earlier thinking was dropped",
    "history_edited": "an earlier message changed",
    "gateway": "something rewrites requests on the way",
    "fan_out": "it was sent too early",
}  # fmt: skip


def name_program(source: str) -> str:
    return _PROGRAMS.get(source, source)


def short_count(number: int) -> str:
    """Return a shortened token count: `9,999`, `130k`, `1.5M`."""
    if number >= 999_500:
        return f"{number / 1e6:.1f}M"
    return f"{number / 1e3:.0f}k" if number >= 10_000 else f"{number:,}"


def short_tokens(number: int) -> str:
    return f"{short_count(number)} token{'s' * (number != 1)}"


def write_amount(amount: float | None) -> str:
    """Return an amount in US dollars; `?` if unknown."""
    return "?" if amount is None else dollars(amount)


def describe_unpriced(number: int, noun: str) -> str:
    """Describe what a sum of money leaves out; empty if nothing."""
    return f"without {count_of(number, noun)} of unknown price" if number else ""


def explain_no_requests(report: DoctorReport) -> str:
    """Explain why a report has no requests."""
    read = report.read
    since = "" if report.since is None else name_day(report.since)
    if not read.files and read.paths:
        places = ", ".join(repr(path) for path in read.paths)
        return f"No file in {places} ends with {' '.join(SUFFIXES)}."
    if not read.files:
        return (
            "No sessions were found on this machine. Name files or folders: transcripts of Claude "
            "Code, Codex, pi, OpenCode, Copilot CLI or Gemini CLI, Lamina's journals, request "
            "logs or HAR files. lamina doctor --sample shows an example."
        )
    if not read.requests:
        them = "it" if read.files == 1 else "them"
        return f"{count_of(read.files, 'file')} read, but no request with usage in {them}."
    amount = f"{count_of(read.requests, 'request')} in {count_of(read.sessions, 'session')}"
    if report.session and since:
        return (
            f"No session whose id begins with {report.session!r} has a request since {since}; "
            f"the files contain {amount}."
        )
    if report.session:
        return f"No session id begins with {report.session!r}; the files contain {amount}."
    newest = "none of them has a time" if read.newest is None else (
        f"the newest is from {name_day(read.newest)}"
    )  # fmt: skip
    return f"No request since {since} (UTC): the files contain {amount}, and {newest}."


def explain_unjudged(report: DoctorReport) -> str:
    """Explain why the loss cannot be judged; empty if it can."""
    totals = report.totals
    if not totals.requests:
        return explain_no_requests(report)
    if totals.unreported == totals.requests:
        return "No record says what was read from the cache."
    return ""


def name_day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")


def describe_finding(finding: Finding) -> str:
    """Describe a finding in one sentence."""
    when = ""
    if finding.at is not None:
        when = datetime.fromtimestamp(finding.at, UTC).strftime("%m-%d %H:%M ")
    agent = f" ({finding.agent[:12]})" if finding.agent else ""
    parts = [f"{when}{finding.session[:8]}{agent} request {finding.request}: {_reason(finding)}"]
    parts.append(f"{_place(finding)}")
    cost = f"{count_of(finding.tokens, 'token')} again"
    if finding.paid is not None and finding.would_have_cost is not None:
        cost += f", {dollars(finding.paid)} instead of {dollars(finding.would_have_cost)}"
    parts.append(cost)
    parts.append(_certainty(finding))
    return "; ".join(part for part in parts if part)


def _reason(finding: Finding) -> str:
    if finding.cause == "unexplained":
        names = [_candidate(name) for name in finding.candidates]
        if not names:
            return "the record does not say why"
        return f"either {' or '.join(dict.fromkeys(names))}"
    detail = f" ({finding.detail})" if finding.detail else ""
    return f"{CAUSES[finding.cause].sentence}{detail}"


def _candidate(cause: CauseName) -> str:
    """Describe one of several possible causes in a few words."""
    return _CANDIDATES.get(cause) or CAUSES[cause].label


def _place(finding: Finding) -> str:
    place = finding.place
    if place.segment:
        offset = f" byte {place.offset:,}" if place.offset is not None else ""
        return f"at {place.segment}{offset}"
    match place.stopped:
        case "nothing":
            return "nothing was read"
        case "floor":
            return f"read {place.start:,}, the tools and system"
        case "end_of" if place.request:
            return f"read {place.start:,}, where request {place.request} ended"
        case "end_of":
            return f"read {place.start:,}, as in an earlier request"
        case _:
            return f"read {place.start:,}"


def _certainty(finding: Finding) -> str:
    if finding.chance is None:
        return finding.certainty
    return f"{finding.certainty} ({finding.sign}: {finding.chance:.0%} by chance)"
