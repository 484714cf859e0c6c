"""`lamina log --requests`: every request of a session, a line each, or two where that is too much
for a terminal."""

from rich.cells import cell_len

from lamina.apps.cli.report_text import damage_lines, moment, pad_cells
from lamina.apps.views.sent_requests import VERDICT_MEANINGS, list_marks
from lamina.core.audit.requests import ListedRequest, list_requests
from lamina.core.journal import Journal

HEAD = ("#", "entry", "when", "target", "tokens", "agree", "new", "cached", "what came of it")
NUMERIC = {0, 4, 5, 6, 7}


def render_requests(journal: Journal, width: int = 0) -> str:
    """Without a `width`, a request is one line."""
    requests = list_requests(journal)
    lines = []
    if requests.listed:
        rows = pad_cells([HEAD, *map(_row, requests.listed)], NUMERIC)
        if width and max(cell_len("  ".join(row)) for row in rows) > width:
            indent = " " * (len(rows[0][0]) + 2)
            for *cells, outcome in rows:
                lines += ["  ".join(cells).rstrip(), f"{indent}{outcome}".rstrip()]
        else:
            lines += ["  ".join(row).rstrip() for row in rows]
    else:
        lines.append("No request was made in this session.")
    lines += [f"request {request} is lost; a reply to it is there" for request in requests.lost]
    return "\n".join([*lines, "", *damage_lines(journal.damage)]).rstrip()


def _row(listed: ListedRequest) -> tuple[str, ...]:
    request, reply = listed.request, listed.reply
    agreement = request.context.agreement
    cached = "" if reply is None else f"{reply.usage.cached:,}"
    if reply and not reply.usage.cache_reported:
        cached = "?"
    meanings = [VERDICT_MEANINGS[reply.verdict.meaning]] if reply and reply.verdict else []
    return (
        str(listed.number),
        request.id,
        moment(request.at, "%m-%d %H:%M:%S"),
        request.target,
        f"{request.tokens:,}",
        f"{agreement.tokens:,}",
        f"{agreement.reprocessed:,}",
        cached,
        " · ".join([*meanings, *list_marks(listed)]),
    )
