"""Emulates provider faults on demand."""

from collections.abc import Iterable
from typing import Literal, get_args

from msgspec import Struct

from lamina.errors import UsageError

FaultKind = Literal[
    "429", "500", "503", "529", "401", "overflow", "throttle", "html", "empty", "cut", "silent",
    "slow", "hang", "reset",
]  # fmt: skip
FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
FAULT_EXPLANATIONS: dict[FaultKind, str] = {
    "429": "too many requests, with retry-after",
    "500": "an error of the server",
    "503": "not available",
    "529": "overloaded",
    "401": "the key is refused",
    "overflow": "the request is too long for the model, as the vendor says it",
    "throttle": "tokens per minute are used up: no overflow, though it sounds like one",
    "html": "a web page with status 200, as a proxy sends it",
    "empty": "status 200 and nothing",
    "cut": "the stream breaks in the middle of the answer",
    "silent": "the stream ends cleanly, but without its terminator",
    "slow": "a second between pieces",
    "hang": "no answer at all",
    "reset": "the connection is closed before the answer",
}


class EmulatedFault(Struct, frozen=True, kw_only=True):
    """`kind` affects `times` requests, after `skip` requests without a fault."""

    kind: FaultKind
    times: int = 1
    skip: int = 0
    retry_after: float = 0.05


def parse_fault(text: str) -> EmulatedFault:
    """Parse `KIND`, `KIND*TIMES` or `KIND*TIMES@SKIP`, as on the command line.

    Raises:
        UsageError: the format is invalid.
    """
    head, _, skip = text.partition("@")
    kind, _, times = head.partition("*")
    if kind not in FAULT_KINDS or not (times or "1").isdigit() or not (skip or "0").isdigit():
        raise UsageError(f"a fault is KIND, KIND*TIMES or KIND*TIMES@SKIP, not {text!r}; kinds: "
                         f"{', '.join(FAULT_KINDS)}")  # fmt: skip
    return EmulatedFault(kind=kind, times=int(times or 1), skip=int(skip or 0))


class FaultQueue:
    """The remaining faults, in order."""

    def __init__(self, faults: Iterable[EmulatedFault] = ()) -> None:
        self._waiting: list[FaultKind | None] = []
        self._after: dict[FaultKind, float] = {}
        for fault in faults:
            self.add(fault)

    def add(self, fault: EmulatedFault) -> None:
        self._waiting += [None] * fault.skip + [fault.kind] * fault.times
        self._after[fault.kind] = fault.retry_after

    def next(self) -> FaultKind | None:
        """Return the current request's fault, if any."""
        return self._waiting.pop(0) if self._waiting else None

    def retry_after(self, kind: FaultKind) -> float:
        return self._after.get(kind, 0.05)
