"""The words for a cache that did not hit: a kind, a blame and a certainty. Which go together is a
table in `lamina.core.audit.break_causes`."""

from typing import Literal

# A recorded boundary; the lifetime passed; bytes changed; bytes agree and were not read.
BreakKind = Literal["expected", "expired", "moved", "missed"]
# Whoever writes the requests, the program that a person uses, whoever answers them, or no one.
Blame = Literal["you", "tool", "vendor", "nobody"]
# Seen in the bytes; the best explanation of the figures; the place is known and not the cause;
# neither is.
Certainty = Literal["proven", "likely", "located", "unknown"]

CauseName = Literal[
    "idle", "compaction", "model", "boundary", "rewound",
    "clock", "system_changed", "tools_reordered", "tools_changed", "first_message",
    "history_edited", "image", "thinking", "parameter", "trimmed", "key_order", "whitespace",
    "update",
    "marker", "look_back", "below_minimum", "fan_out", "gateway", "other_machine",
    "unexplained",
]  # fmt: skip
