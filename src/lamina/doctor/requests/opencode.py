"""Requests of OpenCode's sessions, from an export, its files or its database.

Laws: a finished step is one request; of a message without steps its own figures are. `input` is
without what was cached.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lamina.adapters.formats.content import provider_of
from lamina.adapters.formats.json_lines import list_in, object_in, parse_moment, text_in
from lamina.adapters.formats.opencode import read_opencode_usage
from lamina.doctor.observed_request import ObservedRequest, StepKind
from lamina.doctor.requests.record_lines import ReadProblems

SOURCE = "opencode"


def read_opencode(
    document: Mapping[str, Any], name: str, problems: ReadProblems
) -> Iterator[ObservedRequest]:
    """The requests of one session, `{info, messages: [{info, parts}]}`."""
    about = object_in(document, "info")
    own = text_in(about, "id") or name
    # A subagent's session names the one that called it.
    session = text_in(about, "parentID") or own
    agent = own if session != own else ""
    last, blocks, thought = "", 0, False
    step: StepKind = ""
    sent_at: float | None = None
    events: list[str] = []
    for index, message in enumerate(list_in(document, "messages")):
        info = object_in(message, "info") if isinstance(message, dict) else {}
        parts = [part for part in list_in(message, "parts") if isinstance(part, dict)]
        times = object_in(info, "time")
        if info.get("role") == "user":
            step, sent_at = "turn", parse_moment(times.get("created"))
            blocks += len(parts)
            if any(text_in(part, "mime").startswith("image/") for part in parts):
                events.append("image")
            events += ["compaction"] * any(part.get("type") == "compaction" for part in parts)
            continue
        if info.get("role") != "assistant":
            continue
        events += ["compaction"] * (info.get("summary") is True)
        steps = [part for part in parts if part.get("type") == "step-finish"]
        figures = [object_in(part, "tokens") for part in steps] or [object_in(info, "tokens")]
        created = parse_moment(times.get("created"))
        for place, tokens in enumerate(figures):
            problems.check_figures(None, tokens)
            usage = read_opencode_usage(tokens)
            if usage is None or not usage.input:
                continue
            request = f"{own}/{text_in(info, 'id') or index}/{place}"
            yield ObservedRequest(
                source=SOURCE, session=session, id=request, usage=usage, depth="transcript",
                at=(sent_at or created) if not place else created,
                ended=parse_moment(times.get("completed")),
                provider=provider_of(text_in(info, "providerID")), model=text_in(info, "modelID"),
                agent=agent, parent=last, step=step or "loop", blocks=blocks or None,
                thought=thought, events=tuple(dict.fromkeys(events)), file=name, line=index + 1,
            )  # fmt: skip
            last, step, events, sent_at = request, "loop", [], None
            blocks = 0
        blocks += len(parts)
        thought = any(part.get("type") == "reasoning" for part in parts)
