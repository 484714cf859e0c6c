"""Where history may be cut, and what is said of the part that goes.

Laws: a cut never parts a tool call from its result. Nothing here calls a model: the summary is
extractive, and the same for the same messages.
"""

from collections.abc import Callable, Sequence

from lamina.journal import SUMMARY
from lamina.values.message import Message, Text, ToolResult

Count = Callable[[str], int]


def find_cuts(messages: Sequence[Message]) -> tuple[int, ...]:
    """Every index at which history may begin: no result behind it answers a call before it."""
    last_answer = {
        block.call_id: index
        for index, message in enumerate(messages)
        for block in message.blocks
        if isinstance(block, ToolResult)
    }
    cuts = []
    blocked_until = -1
    for index, message in enumerate(messages):
        if index > blocked_until and message.role != "tool":
            cuts.append(index)
        # A call that is never answered blocks nothing.
        answers = [last_answer.get(call.id, -1) for call in message.calls]
        blocked_until = max(blocked_until, *answers, -1)
    if len(messages) > blocked_until:
        cuts.append(len(messages))
    return tuple(cuts)


def choose_cut(
    messages: Sequence[Message], sizes: Sequence[int], keep: int, *, at_most: int | None = None
) -> int:
    """Where history begins if at most `keep` tokens of it stay: at the start of a turn if one
    fits, else between any two messages that a cut may part. If nothing fits, the latest exchange
    stays as long as it is at most `at_most`."""
    suffix = [0] * (len(messages) + 1)
    for index in range(len(messages) - 1, -1, -1):
        suffix[index] = suffix[index + 1] + sizes[index]
    allowed = [index for index in find_cuts(messages) if index < len(messages)]
    fitting = [index for index in allowed if suffix[index] <= keep]
    turns = [index for index in fitting if messages[index].role == "user"]
    if turns or fitting:
        return (turns or fitting)[0]
    last = allowed[-1] if allowed else len(messages)
    return last if at_most is not None and suffix[last] <= at_most else len(messages)


def choose_head(
    messages: Sequence[Message], sizes: Sequence[int], keep: int, *, known: int | None = None
) -> int:
    """How many leading messages stay if at most `keep` tokens of them do. `known` is where an
    earlier cut ended the head: staying there keeps the head's bytes, as long as it still fits."""
    prefix = [0]
    for size in sizes:
        prefix.append(prefix[-1] + size)
    if known and prefix[known] <= keep * 5 // 4:
        return known
    fitting = [index for index in find_cuts(messages) if prefix[index] <= keep]
    return fitting[-1] if fitting else 0


def last_turns_start(messages: Sequence[Message], turns: int) -> int:
    """Where the last `turns` turns begin."""
    if turns <= 0:
        return len(messages)
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user" and messages[index].id != SUMMARY:
            turns -= 1
            if turns <= 0:
                return index
    return 0


NOTICE = "[Earlier messages were removed to fit the context window. What they were about:]"


def extract_summary(
    messages: Sequence[Message], limit: int, count: Count, *, carried: str = ""
) -> str:
    """A notice of the removal, then, up to `limit` tokens, the first line of what was asked and
    answered: the latest come first in line for the room and stand in their old order. `carried`
    is the summary that these messages began with; it stays while it takes at most half."""
    head = carried if carried and count(carried) * 2 <= limit else NOTICE
    used = count(head)
    chosen: list[str] = []
    for message in reversed(messages):
        line = _headline(message)
        if not line:
            continue
        cost = count(line) + 1
        if used + cost > limit:
            break
        used += cost
        chosen.append(line)
    return "\n".join([head, *reversed(chosen)])


def _headline(message: Message, width: int = 160) -> str:
    if message.role == "tool":
        return ""
    text = " ".join(block.text for block in message.blocks if isinstance(block, Text))
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if message.calls:
        called = ", ".join(call.name for call in message.calls)
        first = f"{first} (called {called})".strip()
    if not first:
        return ""
    who = "Asked" if message.role == "user" else "Answered"
    return f"{who}: {first if len(first) <= width else first[: width - 1].rstrip() + '…'}"
