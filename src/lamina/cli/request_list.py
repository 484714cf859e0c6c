"""`lamina log --requests`: every request of a session, a line each."""

from lamina.audit.requests import ListedRequest, list_requests
from lamina.cli.report_text import damage_lines, moment, pad_cells
from lamina.faces.sent_requests import VERDICT_MEANINGS, list_marks
from lamina.journal import Journal

HEAD = ("#", "entry", "when", "target", "tokens", "agree", "new", "cached", "what came of it")
NUMERIC = {0, 4, 5, 6, 7}


def render_requests(journal: Journal) -> str:
    requests = list_requests(journal)
    lines = []
    if requests.listed:
        rows = [HEAD, *map(_row, requests.listed)]
        lines += ["  ".join(row).rstrip() for row in pad_cells(rows, NUMERIC)]
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
