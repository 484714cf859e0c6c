"""What a search chose for a question, and what of it there is room for."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.budget import CHOSEN_SHARE
from lamina.core.text import label_of
from lamina.core.values.request import LeftOut
from lamina.core.values.selection import Evidence, SelectedItem


class SearchChoice(Struct, frozen=True, kw_only=True):
    """What a search found: the best first, and the best of what was not taken. `lacking` is what
    speaks for that, if it is too little for anything to be taken."""

    items: tuple[SelectedItem, ...] = ()
    next_best: tuple[SelectedItem, ...] = ()
    lacking: Evidence | None = None
    warnings: tuple[str, ...] = ()


NO_CHOICE = SearchChoice()


def take_while_room(
    choice: SearchChoice, room_left: int, cost_of: Callable[[SelectedItem], int]
) -> tuple[SearchChoice, tuple[LeftOut, ...]]:
    """The choice without what would take too much of the room that is left; smaller items behind
    it may still come."""
    items: list[SelectedItem] = []
    too_large: list[LeftOut] = []
    for item in choice.items:
        cost = cost_of(item)
        if cost and cost > room_left * CHOSEN_SHARE:
            detail = f"{_scored_label(item)} was chosen, and {cost:,} tokens are too many"
            detail += " for the room left"
            what = item.item
            too_large.append(LeftOut(what=what, reason="room_left", detail=detail, tokens=cost))
        else:
            room_left -= cost
            items.append(item)
    return replace(choice, items=tuple(items)), tuple(too_large)


def runners_up(choice: SearchChoice) -> tuple[LeftOut, ...]:
    """The items that were only just not chosen."""
    lacking = choice.lacking
    why = lacking.verdict if lacking else "others fit the question better"
    return tuple(
        LeftOut(
            what=item.item,
            reason="ranked_lower",
            detail=f"{_scored_label(item)}: {why}",
            score=item.score,
            lacking=lacking,
        )
        for item in choice.next_best
    )


def _scored_label(item: SelectedItem) -> str:
    score = f" ({item.score:.2f})" if item.score is not None else ""
    return f"{label_of(item.item)}{score}"
