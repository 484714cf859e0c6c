"""What came of attaching is one value: parts add up, and nothing goes without a report."""

from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import thorough

from lamina.core.values.item import Attachment, Item, ItemId, note_id
from lamina.core.values.request import NOTHING, Attachments, LeftOut

names = st.sampled_from("abcdef")
attachments = names.map(lambda name: Attachment(item=Item(id=note_id(name), content=name)))
omissions = names.map(lambda name: LeftOut(what=name, reason="missing", detail=f"no {name}"))
values = st.builds(
    Attachments,
    attachments=st.lists(attachments, max_size=4).map(tuple),
    left_out=st.lists(omissions, max_size=3).map(tuple),
    warnings=st.lists(names, max_size=3).map(tuple),
)


def out_of_room(attachment: Attachment) -> LeftOut:
    return LeftOut(what=attachment.item.id, reason="window", detail="no room")


@thorough
@given(values, values, values)
def test_parts_add_up_in_order_however_they_are_grouped(
    one: Attachments, two: Attachments, three: Attachments
) -> None:
    assert (one + two) + three == one + (two + three)
    assert one + NOTHING == NOTHING + one == one
    for field in ("attachments", "left_out", "warnings"):
        assert getattr(one + two, field) == getattr(one, field) + getattr(two, field)


@thorough
@given(values, st.sets(names.map(note_id)))
def test_what_is_taken_out_is_reported_and_the_rest_stays(
    attached: Attachments, items: set[ItemId]
) -> None:
    rest = attached.without(items, out_of_room)
    taken = [a for a in attached.attachments if a.item.id in items]
    assert [a for a in attached.attachments if a not in taken] == list(rest.attachments)
    assert rest.left_out == attached.left_out + tuple(map(out_of_room, taken))
    assert rest.warnings == attached.warnings
