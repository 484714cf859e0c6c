"""What a request says of the compactions in front of it."""

from collections.abc import Sequence

from msgspec.structs import replace

from lamina.core.assembly.draft import Draft
from lamina.core.assembly.history import OVER_HISTORY
from lamina.core.values.request import Attachments, Boundary, LeftOut
from lamina.engine.session.compactor import CompactionOutcome


def compaction_warnings(outcome: CompactionOutcome | None) -> tuple[str, ...]:
    """What a person should know about a compaction: that it did not help, or how it was made."""
    if outcome is None:
        return ()
    warnings = []
    if outcome.problem:
        instead = "nothing was left out" if outcome.idle else "the summary was extracted"
        instead = "" if outcome.by == "model" else f"; {instead}"
        warnings.append(f"compaction: {outcome.problem}{instead}")
    if not outcome.changed and not outcome.idle:
        warnings.append(f"compaction would not help: {outcome.reason}")
    return tuple(warnings)


def report_strip(draft: Draft, strip: CompactionOutcome) -> Draft:
    """The draft with what a limit on history took away, and how the summary was made."""
    warnings = []
    if strip.problem:
        extracted = "" if strip.changed else "; the summary was extracted"
        warnings.append(f"{strip.reason}: {strip.problem}{extracted}")
    return replace(
        draft,
        attachments=draft.attachments + Attachments(warnings=tuple(warnings)),
        reports=(*draft.reports, *strip.reports),
        boundaries=(*draft.boundaries, *((OVER_HISTORY,) if strip.changed else ())),
    )


def report_compaction(
    draft: Draft, outcome: CompactionOutcome | None, earlier: Sequence[tuple[str, int]]
) -> Draft:
    """The draft with what gave way to summaries since the last request: `earlier`, at the end of
    its turn or by hand, and right before it. What an overflow asked for is in `earlier`, too."""
    reports = []
    for reason, count in earlier[:-1] if draft.retry else earlier:
        detail = f"{count} earlier messages gave way to a summary: {reason}"
        reports.append(LeftOut(what="history", reason="history", detail=detail))
    reasons = [reason for reason, _ in earlier if reason.startswith("compaction")]
    if outcome is not None:
        reports += outcome.reports
        reasons = [outcome.reason] if outcome.changed else reasons
    kinds = [Boundary(kind="compaction", reason=reason) for reason in dict.fromkeys(reasons)]
    return replace(
        draft,
        attachments=draft.attachments + Attachments(warnings=compaction_warnings(outcome)),
        reports=tuple(reports),
        boundaries=tuple(kinds),
        summary=outcome.price if outcome else None,
    )
