"""Every exception Lamina raises, split by who has to act.

    LaminaError
    ├── UsageError              the caller asked for something impossible
    │   ├── InvalidText         text that no provider can carry (lone surrogates)
    │   ├── InvalidPatch        an op, its scope or its reason is wrong; nothing was changed
    │   ├── InvalidSetting      a setting of another type, or out of range
    │   ├── InvalidEntry        a value that a journal could not return unchanged
    │   ├── QueryError          a query over notes that does not parse, with the position
    │   ├── UnknownTarget       a provider that Lamina does not know
    │   │   └── UnknownModel    a local model that is neither in the catalogue nor a file
    │   ├── TurnStateError      commit, resume or request called at the wrong moment
    │   └── ExtraMissing        the packages of an extra of Lamina are needed
    ├── BudgetError             what must be sent does not fit
    │   ├── EssentialsTooLarge  essentials alone are over the attachment limit
    │   └── WindowExceeded      L1, tools, essentials and the message are over the window
    ├── PrefixMoved             bytes already sent would move without a recorded reason
    ├── SpendError              a problem with money; nothing was sent
    │   ├── SpendLimit          a request could cost more than a limit leaves
    │   │   └── UnknownPrice    there is a limit, and the model's price is unknown
    │   ├── SpendDeclined       a person did not agree to a price, or could not be asked
    │   └── SpendLedgerError    the record of spending cannot be read or written
    ├── ReplyError              a provider's reply could not be read
    ├── ProviderError           a provider did not answer
    │   ├── RequestTooLong      the request does not fit the provider's window
    │   ├── ProviderBusy        overloaded or throttling; worth trying later
    │   ├── KeyMissing          the key is missing or was refused
    │   └── ModelMissing        the embedded model or its runtime is not on this machine
    ├── HookError               a hook failed, was too slow or returned an invalid value
    │   └── MessageDropped      a message hook dropped the user's message; nothing is sent
    └── JournalError            entries do not form a session
        ├── UnknownSession      the session does not exist
        │   └── NoSuchEntry     the session has no such entry, question or request
        ├── SessionMoved        the session was changed elsewhere after this one read it
        ├── SessionBusy         the session is open elsewhere
        ├── JournalGone         the file was deleted or replaced under an open session
        └── WriteFailed         the entries could not be written; nothing was acknowledged

Every error has a stable `code` for programs and a message that says what to do next.
"""

from collections.abc import Mapping


class LaminaError(Exception):
    """The base of every error that this package raises; `code` is a stable name for programs."""

    code = "lamina"


class UsageError(LaminaError):
    """The caller asked for something impossible."""

    code = "usage"


class InvalidText(UsageError):
    """A text that no provider can carry: it contains a lone surrogate, at `position`."""

    code = "invalid_text"

    def __init__(self, what: str, position: int) -> None:
        super().__init__(
            f"{what} contains a lone surrogate at character {position}, which cannot be encoded "
            f"as UTF-8; remove it, or decode the source with errors='replace'"
        )
        self.position = position


class InvalidPatch(UsageError):
    """A patch operation, its scope or its reason is wrong; nothing was changed."""

    code = "invalid_patch"

    def __init__(self, op: str, problem: str) -> None:
        super().__init__(f"patch op {op!r}: {problem}")
        self.op = op
        self.problem = problem


class InvalidSetting(UsageError):
    """A setting has the wrong type or is out of range; nothing was changed."""

    code = "invalid_setting"

    def __init__(self, name: str, value: object, problem: str) -> None:
        super().__init__(f"setting {name}={value!r}: {problem}")
        self.name = name
        self.problem = problem


class InvalidEntry(UsageError):
    """A value that a journal could not return unchanged; nothing was written."""

    code = "invalid_entry"

    def __init__(self, kind: str, problem: str) -> None:
        super().__init__(
            f"the journal cannot store this, and nothing was written: {kind}: {problem}"
        )
        self.kind = kind
        self.problem = problem


class QueryError(UsageError):
    """A query over notes does not parse; `line` and `column` say where."""

    code = "query"

    def __init__(self, line: int, column: int, problem: str) -> None:
        super().__init__(f"query, line {line}, column {column}: {problem}")
        # Both count from 1, in characters.
        self.line = line
        self.column = column
        self.problem = problem


class UnknownTarget(UsageError):
    """A target that is not `provider:model` with a known provider."""

    code = "unknown_target"

    def __init__(self, target: str, known: tuple[str, ...], suggestion: str = "") -> None:
        hint = f"did you mean {suggestion}? " if suggestion else ""
        super().__init__(
            f"target {target!r} is not 'provider:model' with a known provider; {hint}"
            f"known providers: {', '.join(known)}"
        )
        self.target = target


class UnknownModel(UnknownTarget):
    """A local model that is neither in the catalogue nor a file."""

    code = "unknown_model"

    def __init__(self, target: str, known: tuple[str, ...]) -> None:
        UsageError.__init__(
            self,
            f"target {target!r} names neither a model that Lamina can fetch ({', '.join(known)}) "
            f"nor the path of a GGUF file, such as local:~/models/mine.gguf",
        )
        self.target = target


class TurnStateError(UsageError):
    """Something was called at the wrong moment of a turn, such as `commit` on a turn that is not
    open."""

    code = "turn_state"


class ExtraMissing(UsageError):
    """Required packages are not installed; the message names the extra that installs them. Nothing
    was downloaded or written."""

    code = "extra_missing"


class BudgetError(LaminaError):
    """What must be sent does not fit; `sizes` lists its parts and `limit` is the room, in
    tokens."""

    code = "budget"

    def __init__(self, message: str, sizes: Mapping[str, int], limit: int) -> None:
        size_list = ", ".join(f"{name} {tokens:,}" for name, tokens in sizes.items())
        super().__init__(f"{message} (limit {limit:,} tokens; {size_list})")
        self.sizes = dict(sizes)
        self.limit = limit


class EssentialsTooLarge(BudgetError):
    """Essential attachments alone are over the attachment limit."""

    code = "essentials_too_large"


class WindowExceeded(BudgetError):
    """System prompt, tools, essentials and the message are over the window."""

    code = "window_exceeded"


class PrefixMoved(LaminaError):
    """Bytes that were already sent would move without a recorded reason; `layer`, `segment` and
    `source` say where, and nothing was sent."""

    code = "prefix_moved"

    def __init__(self, layer: str, segment: int, source: str, problem: str) -> None:
        super().__init__(
            f"bytes already sent would move at segment {segment} ({layer}, {source}): {problem}; "
            f"record a reason with the change (invalidate_cache_reason) or set prefix_check='warn'"
        )
        self.layer = layer
        self.segment = segment
        self.source = source


class SpendError(LaminaError):
    """A problem with money; nothing was sent."""

    code = "spend"


class SpendLimit(SpendError):
    """A request could cost more than a limit leaves; nothing was sent or written.

    `scope` says what the limit applies to (turn, session or day). All amounts are in US dollars:
    the `limit`, the amount `spent`, the amount `reserved` for answers that have not arrived, and
    the price range of this request from `low` to `high`. `advice` says how to make it cheaper or
    let it through.
    """

    code = "spend_limit"

    def __init__(
        self,
        message: str,
        *,
        scope: str = "",
        limit: float | None = None,
        spent: float = 0.0,
        reserved: float = 0.0,
        low: float | None = None,
        high: float | None = None,
        advice: tuple[str, ...] = (),
    ) -> None:
        super().__init__("; ".join((message, *advice)))
        self.scope = scope
        self.limit = limit
        self.spent = spent
        self.reserved = reserved
        self.low = low
        self.high = high
        self.advice = advice


class UnknownPrice(SpendLimit):
    """There is a limit, and the model's price is unknown, so the limit cannot be enforced."""

    code = "unknown_price"


class SpendDeclined(SpendError):
    """A person did not agree to the price of a request, or could not be asked. The request is
    prepared and can be sent later; `price` is the price in question, in US dollars."""

    code = "spend_declined"

    def __init__(self, message: str, price: float) -> None:
        super().__init__(message)
        self.price = price


class SpendLedgerError(SpendError):
    """The record of spending cannot be read or written."""

    code = "spend_ledger"


class ReplyError(LaminaError):
    """A provider's reply cannot be read."""

    code = "reply"


class ProviderError(LaminaError):
    """A provider did not answer. The turn stays open and can be sent again. `is_refusal` says that
    the provider rejected the request or never received it, so that nothing is charged."""

    code = "provider"
    is_refusal = False


class RequestTooLong(ProviderError):
    """The provider says that the request does not fit its window."""

    code = "request_too_long"

    def __init__(self, problem: str, tokens: int | None = None, window: int | None = None) -> None:
        super().__init__(problem)
        self.tokens = tokens
        self.window = window


class ProviderBusy(ProviderError):
    """A provider is overloaded or throttling: worth trying again, after `retry_after` seconds if it
    named a delay."""

    code = "provider_busy"

    def __init__(self, problem: str, retry_after: float | None = None) -> None:
        super().__init__(problem)
        self.retry_after = retry_after


class KeyMissing(ProviderError):
    """The key for a provider is missing or was refused."""

    code = "key_missing"
    is_refusal = True


class ModelMissing(ProviderError):
    """The embedded model is not on this machine."""

    code = "model_missing"
    is_refusal = True


class JournalError(LaminaError):
    """Entries do not form a session, or a session cannot be stored."""

    code = "journal"


class SessionMoved(JournalError):
    """Another instance of the session wrote to it first; nothing was written here."""

    code = "session_moved"

    def __init__(self, session: str) -> None:
        super().__init__(
            f"session {session!r} was changed elsewhere after this one read it; "
            f"nothing was written here. Open it again and continue from there"
        )
        self.session = session


class UnknownSession(JournalError):
    """The session does not exist."""

    code = "unknown_session"


class NoSuchEntry(UnknownSession):
    """The session has no such entry, question or request."""

    code = "unknown_entry"


class SessionBusy(JournalError):
    """The session is open elsewhere."""

    code = "session_busy"

    def __init__(self, session: str, waited: float) -> None:
        super().__init__(
            f"session {session!r} is open elsewhere (waited {waited:g} s); close it there "
            f"first, or continue in another session"
        )
        self.session = session


class JournalGone(JournalError):
    """The file of the session was deleted or replaced while it was open."""

    code = "journal_gone"

    def __init__(self, session: str, path: str) -> None:
        super().__init__(
            f"the file of session {session!r} ({path}) was deleted or replaced while it was open; "
            f"nothing was written. Save what is still in memory with session.save_as()"
        )
        self.session = session


class WriteFailed(JournalError):
    """The entries could not be written; nothing was acknowledged."""

    code = "write_failed"

    def __init__(self, session: str, problem: str) -> None:
        super().__init__(
            f"session {session!r} could not be written: {problem}; earlier entries are safe, "
            f"this one was not stored. Free some space or check the disk, then try again"
        )
        self.session = session


class HookError(LaminaError):
    """A hook failed, was too slow, or returned an invalid value."""

    code = "hook"

    def __init__(self, hook: str, problem: str) -> None:
        super().__init__(f"hook {hook!r}: {problem}")
        self.hook = hook


class MessageDropped(HookError):
    """A message hook dropped the user's message (see `text`); nothing is sent."""

    code = "message_dropped"

    def __init__(self, hook: str, text: str) -> None:
        super().__init__(hook, "dropped the message; nothing is sent")
        # As earlier hooks left the message.
        self.text = text
