"""Finds the places at which history may be cut.

Law: a cut never separates a tool call from its result.
"""

from collections.abc import Sequence

from lamina.core.journal import SUMMARY_ID
from lamina.core.values.message import Message, ToolResult

# A head left by an earlier cut is kept if it fills this share of its room.
HEAD_LEAST = 0.5


def find_cuts(messages: Sequence[Message]) -> tuple[int, ...]:
    """Return every index at which history may start: no later result answers an earlier call."""
    last_answers = _last_answers(messages)
    cuts = []
    blocked_until = -1
    for index, message in enumerate(messages):
        if index > blocked_until and message.role != "tool":
            cuts.append(index)
        blocked_until = max(blocked_until, last_answers[index])
    if len(messages) > blocked_until:
        cuts.append(len(messages))
    return tuple(cuts)


def _last_answers(messages: Sequence[Message]) -> list[int]:
    """Return for each message the index of the last result of its calls; -1 if there is none, so
    that a call that is never answered blocks nothing. Later calls may reuse ids."""
    last_answers = [-1] * len(messages)
    results: dict[str, int] = {}
    for index in range(len(messages) - 1, -1, -1):
        for block in messages[index].blocks:
            if isinstance(block, ToolResult):
                results.setdefault(block.call_id, index)
        answers = [results.pop(call.id, -1) for call in messages[index].calls]
        last_answers[index] = max(answers, default=-1)
    return last_answers


def choose_cut(
    messages: Sequence[Message], sizes: Sequence[int], keep: int, *, at_most: int | None = None
) -> int:
    """Return the start of history if at most `keep` tokens stay: at the start of a turn if one
    fits, else between any two messages that a cut may separate. If nothing fits, the latest
    exchange stays if it has at most `at_most` tokens."""
    suffix = [0] * (len(messages) + 1)
    for index in range(len(messages) - 1, -1, -1):
        suffix[index] = suffix[index + 1] + sizes[index]
    cuts = [index for index in find_cuts(messages) if index < len(messages)]
    fitting_cuts = [index for index in cuts if suffix[index] <= keep]
    turns = [index for index in fitting_cuts if messages[index].role == "user"]
    if turns or fitting_cuts:
        return (turns or fitting_cuts)[0]
    last = cuts[-1] if cuts else len(messages)
    return last if at_most is not None and suffix[last] <= at_most else len(messages)


def choose_turn(
    messages: Sequence[Message], sizes: Sequence[int], keep: int, *, at_most: int
) -> int:
    """Return the start of history if whole turns of at most `keep` tokens stay, so that no answer
    loses its question. The last turn may use up to `at_most`; if that is not enough, nothing
    stays."""
    starts = [index for index in find_cuts(messages) if _begins_turn(messages, index)]
    fitting_starts = [index for index in starts if sum(sizes[index:]) <= keep]
    if fitting_starts or not starts:
        return fitting_starts[0] if fitting_starts else len(messages)
    return starts[-1] if sum(sizes[starts[-1] :]) <= at_most else len(messages)


def choose_head(
    messages: Sequence[Message], sizes: Sequence[int], keep: int, *, known: Sequence[int] = ()
) -> int:
    """Return how many leading messages stay if at most `keep` tokens of them do. `known` are the
    places where earlier cuts ended the head: it ends there again as long as that fits and wastes no
    room. A longer head keeps its bytes too, with the summaries in it."""
    prefix = [0]
    for size in sizes:
        prefix.append(prefix[-1] + size)
    ends = [end for end in known if keep * HEAD_LEAST <= prefix[end] <= keep * 5 // 4]
    if ends:
        return ends[-1]
    fitting_cuts = [index for index in find_cuts(messages) if prefix[index] <= keep]
    return fitting_cuts[-1] if fitting_cuts else 0


def has_more_turns(messages: Sequence[Message], turns: int) -> bool:
    """Return whether there are more turns than this, not counting messages before the first turn,
    such as a summary of earlier ones."""
    starts = (index for index in find_cuts(messages) if _begins_turn(messages, index))
    first = next(starts, None)
    return first is not None and last_turns_start(messages, turns) > first


def last_turns_start(messages: Sequence[Message], turns: int) -> int:
    """Return the start of the last `turns` turns, if a cut is allowed there."""
    cuts = find_cuts(messages)
    if turns <= 0:
        return cuts[-1] if cuts else 0
    for index in reversed(cuts):
        if _begins_turn(messages, index):
            turns -= 1
            if turns <= 0:
                return index
    return 0


def _begins_turn(messages: Sequence[Message], index: int) -> bool:
    if index == len(messages):
        return False
    message = messages[index]
    return message.role == "user" and message.id != SUMMARY_ID
