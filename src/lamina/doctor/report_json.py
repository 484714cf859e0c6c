"""The doctor's report as plain data, and back.

Law: what was said in a session leaves this module as a digest, unless text is asked for.
"""

from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from lamina.adapters.files.own_file import open_regular_file
from lamina.doctor.findings import Finding, FindingPlace
from lamina.doctor.records import SCHEMA, DoctorReport
from lamina.doctor.report import CauseSum, ReportTotals
from lamina.errors import UsageError


def plain_report(report: DoctorReport, *, with_text: bool) -> dict[str, Any]:
    """The report as plain data. What was said is a digest unless `with_text` is asked for."""
    fields = {
        name: getattr(report, name)
        for name in report.__struct_fields__
        if name not in ("findings", "totals")
    }
    plain: dict[str, Any] = msgspec.to_builtins(fields)
    totals = msgspec.to_builtins(report.totals)
    plain["totals"] = totals | {"lost_share": report.totals.lost_share}
    plain["findings"] = [plain_finding(f, with_text=with_text) for f in report.findings]
    order = [name for name in report.__struct_fields__ if name in plain]
    return {name: plain[name] for name in order}


def plain_finding(finding: Finding, *, with_text: bool) -> dict[str, Any]:
    fields = {name: getattr(finding, name) for name in finding.__struct_fields__}
    fields |= {
        "before": show_bytes(finding.before, with_text=with_text),
        "after": show_bytes(finding.after, with_text=with_text),
        "extra": finding.extra,
        "place": _plain_place(finding.place),
    }
    plain: dict[str, Any] = msgspec.to_builtins(fields)
    return plain


def _plain_place(place: FindingPlace) -> dict[str, Any]:
    return {name: getattr(place, name) for name in place.__struct_fields__}


def show_bytes(data: bytes, *, with_text: bool) -> str | None:
    """A few bytes of a prompt: as text if that was asked for, else their digest."""
    if not data:
        return None
    if with_text:
        return data.decode("utf-8", "replace")
    return f"sha256:{sha256(data).hexdigest()[:16]}"


def read_report(path: Path) -> DoctorReport | None:
    """A report that `--json` wrote; None if the file is none.

    Raises:
        UsageError: it was written by a version with another schema.
    """
    try:
        with open_regular_file(path) as file:
            value = msgspec.json.decode(file.read())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(value, dict) or "schema" not in value or "totals" not in value:
        return None
    if value["schema"] != SCHEMA:
        raise UsageError(
            f"{str(path)!r} is a report of schema {value['schema']!r}, and this is {SCHEMA}; "
            f"give the sessions themselves, or a time"
        )
    try:
        return DoctorReport(
            totals=msgspec.convert(value["totals"], ReportTotals),
            causes=msgspec.convert(value.get("causes", []), tuple[CauseSum, ...]),
        )
    except msgspec.ValidationError as error:
        raise UsageError(f"{str(path)!r} is a report that cannot be read: {error}") from error
