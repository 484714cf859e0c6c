"""Writes Lamina's log records to Python's `logging`, with their levels and wording.

Laws: a record contains ids, counts, target and tool names, and recorded reasons; never a string
that was sent or received, a key, or another program's error message. A record is formatted only if
a handler will emit it. Unless the program installs a handler, nothing is written.

Private: see `lamina` for what is public. The loggers are `lamina` and, below it, `session`,
`request`, `tools`, `hooks` and `downloads`.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from logging import DEBUG, INFO, WARNING

from lamina.core.audit.break_causes import name_verdict
from lamina.core.ledger import cost_of
from lamina.core.values.damage import Damage
from lamina.core.values.entry import Entry, RequestEntry, TransformEntry
from lamina.core.values.event import (
    ApprovalDecided,
    ApprovalWanted,
    Event,
    RequestRetried,
    ToolFinished,
    ToolStarted,
)
from lamina.core.values.patch import CompactionApply
from lamina.core.values.request import CacheVerdict
from lamina.core.values.settings import Target
from lamina.core.values.usage import InputTransformation, Usage
from lamina.errors import LaminaError

ROOT = "lamina"
# The maximum length of a name in a record; longer names, and names with unusual characters, are
# rewritten.
_MAX_LETTERS = 80
# Verdicts for a cache that read less than expected.
_MISSES = ("prefix_moved", "routed_elsewhere")

logging.getLogger(ROOT).addHandler(logging.NullHandler())


class LogLine:
    """A kind of log record: its logger, its level and its wording."""

    def __init__(self, owner: str, level: int, words: str) -> None:
        self.logger = logging.getLogger(f"{ROOT}.{owner}")
        self.level = level
        self.words = words

    @property
    def is_wanted(self) -> bool:
        return self.logger.isEnabledFor(self.level)

    def log(self, *values: object) -> None:
        """Write the record; strings in it are shortened to names that fit on one line."""
        if self.is_wanted:
            names = [_name(value) if isinstance(value, str) else value for value in values]
            self.logger.log(self.level, self.words, *names)


OPENED = LogLine("session", INFO, "session %s opened: entries %d, target %s")
CLOSED = LogLine("session", INFO, "session %s closed")
DAMAGED = LogLine("session", WARNING, "session %s has a damaged journal: %s")
COMPACTED = LogLine("session", INFO, "session %s: messages replaced by a summary %d, reason: %s")
PREPARED = LogLine(
    "request", DEBUG,
    "request %s of session %s for %s: tokens %d, as sent before %d, items %d, left out %d",
)  # fmt: skip
BROKEN = LogLine(
    "request", INFO,
    "request %s of session %s moves the prefix: from %s on, tokens read again %d, %s, reason: %s",
)  # fmt: skip
PRICED = LogLine(
    "request", INFO,
    "request %s of session %s reads history again: tokens %d, cost %s",
)  # fmt: skip
SUMMED_UP = LogLine(
    "request", INFO,
    "request %s of session %s: a summary %s for tokens %d, cost %s, saved on each request %s",
)  # fmt: skip
UNEXPLAINED = LogLine(
    "request", WARNING,
    "request %s of session %s moves the prefix without a reason: from %s on, places %d",
)  # fmt: skip
WARNED = LogLine("request", WARNING, "request %s of session %s carries warnings: %d")
ANSWERED = LogLine(
    "request", INFO,
    "request %s of session %s %s by %s: tokens in %s, cached %s, out %s, cost %s, ms %d",
)  # fmt: skip
MISSED = LogLine(
    "request", WARNING,
    "request %s of session %s: the cache had less than expected, tokens %d of %d, %s "
    "(%s, %s, %s)",
)  # fmt: skip
DROPPED = LogLine(
    "request", WARNING,
    "request %s of session %s: thinking blocks that no longer fit what stands before them %d, %s",
)  # fmt: skip
FAILED = LogLine("request", WARNING, "request %s of session %s failed: %s")
RETRIED = LogLine("request", WARNING, "%s is busy: attempt %d of %d follows in ms %d")
SHORTENED = LogLine("request", WARNING, "session %s: a request was too long; making it smaller")
TOOL_STARTED = LogLine("tools", DEBUG, "call %s of session %s: %s begins")
TOOL_ENDED = LogLine("tools", INFO, "call %s of session %s: %s ended, %s, ms %d")
APPROVAL_WANTED = LogLine("tools", INFO, "call %s of session %s: %s waits for a decision")
APPROVAL_DECIDED = LogLine("tools", INFO, "call %s of session %s: decided, %s")
HOOK_LEFT = LogLine("hooks", WARNING, "hook %s of session %s still runs after its limit: ms %d")
HOOK_ENDED = LogLine("hooks", WARNING, "hook %s of session %s ended late: ms %d")
FETCHED = LogLine("downloads", INFO, "model %s fetched: bytes %d")
FETCHING = LogLine("downloads", INFO, "model %s is being fetched: bytes %d")
NOT_FETCHED = LogLine("downloads", WARNING, "model %s could not be fetched: %s")


def _name(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else "?" for letter in text[: _MAX_LETTERS + 1])
    if len(plain) <= _MAX_LETTERS:
        return plain
    # Separators between parts that are not empty.
    beginning = plain[:_MAX_LETTERS]
    return f"{beginning.rpartition(' ')[0].rstrip(', ') or beginning}..."


def log_opened(session: str, target: str, entries: int, damage: Sequence[Damage]) -> None:
    """Log that a session was opened, and any damage to its journal."""
    OPENED.log(session, entries, target)
    if damage:
        counts = Counter(problem.kind for problem in damage)
        DAMAGED.log(session, ", ".join(f"{kind} {count}" for kind, count in counts.items()))


def log_closed(session: str) -> None:
    """Log that a session was closed."""
    CLOSED.log(session)


def log_entries(session: str, entries: Iterable[Entry]) -> None:
    """Log new journal entries that are worth logging."""
    for entry in entries:
        if isinstance(entry, RequestEntry):
            _tell_request(session, entry)
        elif isinstance(entry, TransformEntry) and COMPACTED.is_wanted:
            for op in entry.patch.ops:
                if isinstance(op, CompactionApply):
                    COMPACTED.log(session, op.first_kept - op.after, op.reason)


def _tell_request(session: str, request: RequestEntry) -> None:
    context, agreement = request.context, request.context.agreement
    if PREPARED.is_wanted:
        items, missing = len(context.items), len(context.left_out)
        PREPARED.log(
            request.id, session, request.target, request.tokens, agreement.tokens, items, missing
        )
    if (broke := agreement.broke) is not None and BROKEN.is_wanted:
        kinds = ", ".join(boundary.kind for boundary in context.boundaries) or "no boundary"
        BROKEN.log(request.id, session, broke.layer, agreement.reprocessed, kinds, broke.reason)
    if (price := context.history_price) is not None and PRICED.is_wanted:
        costs = (price.keep_cost, price.summary_cost, price.summary_saving)
        keep, summary, saving = ("unknown" if c is None else f"${c:.6f}" for c in costs)
        if not price.is_summarised:
            PRICED.log(request.id, session, price.tokens, keep)
        if older := price.older_tokens:
            stands = "stands" if price.is_summarised else "could stand"
            SUMMED_UP.log(request.id, session, stands, older, summary, saving)
    if agreement.unexplained:
        first = agreement.unexplained[0].layer
        UNEXPLAINED.log(request.id, session, first, len(agreement.unexplained))
    log_warnings(session, request.id, len(context.warnings))


def log_answer(
    session: str,
    request: RequestEntry,
    usage: Usage,
    *,
    target: Target,
    verdict: CacheVerdict,
    is_complete: bool,
    seconds: float,
    transformations: Sequence[InputTransformation] = (),
) -> None:
    """Log an answered request: its usage, and whether its cache worked as expected."""
    if ANSWERED.is_wanted:
        outcome = "answered" if is_complete else "answered in part"
        is_known = bool(usage.input or usage.output)
        counts = [
            str(count) if known else "unknown"
            for count, known in (
                (usage.input, is_known),
                (usage.cached, usage.cache_reported and is_known),
                (usage.output, is_known),
            )
        ]
        dollars = cost_of(usage, target) if is_known else None
        cost = "unknown" if dollars is None else f"${dollars:.6f}"
        ms = round(seconds * 1_000)
        ANSWERED.log(request.id, session, outcome, request.target, *counts, cost, ms)
    words = name_verdict(verdict, request.context.agreement)
    # A declared change needs no warning, and neither does a change with nothing cached behind it.
    is_missed = verdict.meaning in _MISSES and verdict.reported < verdict.expected
    if words is not None and words.kind != "expected" and is_missed:
        MISSED.log(
            request.id, session, verdict.reported, verdict.expected, verdict.meaning,
            words.kind, words.blame, words.certainty,
        )  # fmt: skip
    surprises = Counter(change.kind for change in transformations if change.is_surprise)
    for kind, count in surprises.items():
        DROPPED.log(request.id, session, count, kind)


def log_warnings(session: str, request: str, count: int) -> None:
    """Log that a request has warnings; the turn contains their text."""
    if count:
        WARNED.log(request, session, count)


def log_failure(session: str, request: str, error: LaminaError) -> None:
    """Log that a request got no answer, with the kind of error."""
    FAILED.log(request, session, error.code)


def log_retry(target: str, attempt: int, attempts: int, wait: float) -> None:
    """Log that a request is sent again because its target was busy."""
    RETRIED.log(target, attempt, attempts, round(wait * 1_000))


def log_event(session: str, event: Event) -> None:
    """Log important turn events that no entry records."""
    match event:
        case ToolStarted(call=call):
            TOOL_STARTED.log(call.id, session, call.name)
        case ToolFinished(result=result, seconds=seconds):
            outcome, ms = "error" if result.is_error else "ok", round(seconds * 1_000)
            TOOL_ENDED.log(result.call_id, session, result.name, outcome, ms)
        case ApprovalWanted(call=call):
            APPROVAL_WANTED.log(call.id, session, call.name)
        case ApprovalDecided(call_id=call_id, decision=decision):
            APPROVAL_DECIDED.log(call_id, session, decision)
        case RequestRetried():
            SHORTENED.log(session)
        case _:
            pass


def log_hook_left(session: str, hook: str, seconds: float) -> None:
    """Log that a hook is still running after the engine stopped waiting for it."""
    HOOK_LEFT.log(hook, session, round(seconds * 1_000))


def log_hook_ended(session: str, hook: str, seconds: float) -> None:
    """Log that a hook ended after the engine stopped waiting for it."""
    HOOK_ENDED.log(hook, session, round(seconds * 1_000))


@contextmanager
def log_download(model: str, size: int) -> Iterator[None]:
    """Log that a model is being downloaded, and how that ended."""
    FETCHING.log(model, size)
    try:
        yield
    except LaminaError as error:
        NOT_FETCHED.log(model, error.code)
        raise
    FETCHED.log(model, size)
