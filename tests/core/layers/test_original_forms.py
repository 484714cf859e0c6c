"""The text forms of the layers, byte for byte: eager as in the original documents, and lazy."""

import pytest
from inline_snapshot import snapshot
from tests.fakes.renderers import render_item
from tests.strategies import assembler, envelope_of, items_of

from lamina.core.values.envelope import Envelope, LaidItem, SystemPart
from lamina.core.values.item import Item, ItemId, Picture, Shape, note_id
from lamina.core.values.message import Context, Form, Image, Message, Text, ToolText, Use
from lamina.core.values.prompt import Prompt
from lamina.core.values.settings import Promotion

A = Item(id=note_id("a.md"), content="AAA")
B = Item(id=note_id("b.md"), content="BBB")
RULE = Item(id=ItemId("rule:tone"), content="Be brief.")
PICTURE = Picture(digest="d" * 64, media_type="image/png", width=100, height=100)
SEEN = Item(id=note_id("seen.md"), content="look", pictures=(PICTURE,))
ITEMS = items_of(A, B, RULE, SEEN)
SEARCH = ToolText(name="localSearch", text="doc 1")


def use(item: Item, form: Form = "full", shape: Shape = "attached") -> Use:
    return Use(item=item.id, version=item.version, form=form, shape=shape)


def asks(text: str, *uses: Use, name: str = "m1") -> Message:
    context = (Context(uses=uses),) if uses else ()
    return Message(role="user", blocks=(*context, Text(text)), id=name)


def laid(*items: Item) -> tuple[LaidItem, ...]:
    return tuple(LaidItem(item=item.id, version=item.version) for item in items)


def assemble(envelope: Envelope, promotion: Promotion, turn_start: int = 0) -> Prompt:
    return assembler(promotion).assemble(envelope, ITEMS, turn_start)


def user_text(prompt: Prompt, message: str = "m1") -> str:
    return "".join(segment.text for segment in prompt if segment.message == message)


def system_text(prompt: Prompt) -> str:
    return "".join(segment.text for segment in prompt if segment.role == "system")


def test_the_library_stands_behind_l1_under_its_header() -> None:
    envelope = envelope_of(system=(SystemPart(name="s", text=" S\n"),), library=laid(A, B))
    block, other = render_item(A), render_item(B)
    assert system_text(assemble(envelope, "eager")) == (
        "S\n\n## Context Library\n\nThe following notes are available for reference:\n\n"
        f"{block}\n\n{other}"
    )
    alone = system_text(assemble(envelope_of(library=laid(A)), "eager"))
    assert alone.startswith("## Context Library\n\nThe following")


def test_without_parts_or_items_there_is_no_system_message() -> None:
    assert len(assemble(envelope_of(system=(SystemPart(name="s", text=" \n"),)), "lazy")) == 0


def test_only_the_ends_of_system_parts_are_trimmed() -> None:
    parts = (SystemPart(name="a", text="\n a \n\n b "), SystemPart(name="c", text="c\n"))
    assert system_text(assemble(envelope_of(system=parts), "lazy")) == "a \n\n b\n\nc"


def test_references_stand_before_new_blocks_whatever_the_order_of_attachment() -> None:
    block = render_item(B)
    expected = (
        "Context attached to this message:\n- a.md\n\n"
        "Find them in the Context Library in the system prompt above.\n\n"
        f"{block}\n\n---\n\n[User query]:\n\nQ"
    )
    for uses in ((use(A, "named"), use(B)), (use(B), use(A, "named"))):
        prompt = assemble(envelope_of(asks("Q", *uses), library=laid(A)), "eager")
        assert user_text(prompt) == expected


def test_without_attachments_the_user_message_is_what_was_typed() -> None:
    (segment,) = assemble(envelope_of(asks("Q?\n")), "lazy")
    assert (segment.layer, segment.text) == ("L5", "Q?\n")
    assert user_text(assemble(envelope_of(asks("Q?")), "eager")) == "Q?"


def test_eager_puts_tool_texts_before_the_attachments_and_the_question() -> None:
    tools = "# Additional context:\n\n<localSearch>\ndoc 1\n</localSearch>"
    bare = envelope_of(asks("Q"), tool_texts=(SEARCH,))
    assert user_text(assemble(bare, "eager")) == f"{tools}\n\nQ"
    full = envelope_of(asks("Q", use(A)), tool_texts=(SEARCH,))
    assert user_text(assemble(full, "eager")) == (
        f"{tools}\n\n{render_item(A)}\n\n---\n\n[User query]:\n\nQ"
    )


def test_lazy_puts_tool_texts_behind_the_attachments_and_before_the_question() -> None:
    envelope = envelope_of(asks("Q", use(A, "named"), use(B)), tool_texts=(SEARCH,))
    assert user_text(assemble(envelope, "lazy")) == snapshot(
        """\
Context attached to this message:
- a.md

Find them in the context above.

<note_context>
<title>b</title>
<path>b.md</path>
<ctime>Unknown</ctime>
<mtime>Unknown</mtime>
<content>
BBB
</content>
</note_context>

# Additional context:

<localSearch>
doc 1
</localSearch>

---

[User query]:

Q"""
    )


def test_a_rule_is_bare_in_an_eager_request_and_wrapped_elsewhere() -> None:
    eager = user_text(assemble(envelope_of(asks("Q", use(RULE))), "eager"))
    assert eager == "Rule: Be brief.\n\n---\n\n[User query]:\n\nQ"
    lazy = user_text(assemble(envelope_of(asks("Q", use(RULE))), "lazy"))
    assert lazy.startswith("<rule_context>\n<name>tone</name>\nRule: Be brief.\n</rule_context>")
    library = system_text(assemble(envelope_of(library=laid(RULE)), "eager"))
    assert library.endswith(render_item(RULE))


def test_the_pictures_of_an_item_follow_its_block() -> None:
    prompt = assemble(envelope_of(asks("Q", use(SEEN, shape="active"))), "lazy")
    contents = [segment.content for segment in prompt]
    assert contents[0] == Text(render_item(SEEN, "active"))
    assert contents[1] == Image(PICTURE)
    assert contents[-1] == Text("Q")


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_no_item_of_the_four_turn_example_vanishes_from_both_layers(promotion: Promotion) -> None:
    """spec; spec + api-docs; spec alone; spec + error-log."""
    spec, api, log = (
        Item(id=note_id(f"{name}.md"), content=f"text of {name}")
        for name in ("spec", "api-docs", "error-log")
    )
    turns = [
        ((), (use(spec),)),
        ((spec,), (use(spec, "named"), use(api))),
        ((spec, api), (use(spec, "named"),)),
        ((spec, api), (use(spec, "named"), use(log))),
    ]
    messages: list[Message] = []
    seen = []
    for number, (library, uses) in enumerate(turns):
        messages.append(asks(f"q{number}", *uses, name=f"m{number}"))
        eager = promotion == "eager"
        envelope = envelope_of(*messages, library=laid(*library) if eager else ())
        prompt = assembler(promotion).assemble(envelope, items_of(spec, api, log), number)
        whole = system_text(prompt) + "".join(s.text for s in prompt if s.role == "user")
        asked = user_text(prompt, f"m{number}")
        seen.append((system_text(prompt).count("<note_context>"), asked.count("<note_context>")))
        for item in (spec, api, log)[: 1 + (number > 0) + (number > 2)]:
            assert whole.count(item.content) == 1
        assert asked.count("- spec.md") == (number > 0)
    assert seen == (
        [(0, 1), (1, 1), (2, 0), (2, 1)]
        if promotion == "eager"
        else [(0, 1), (0, 1), (0, 0), (0, 1)]
    )


def test_segments_say_their_layer_and_where_they_come_from() -> None:
    envelope = envelope_of(
        asks("old", use(A), name="m0"),
        Message(role="assistant", blocks=(Text("R"),), id="r0"),
        asks("Q", use(A, "named"), use(B)),
        system=(SystemPart(name="persona", text="S"),),
        tool_texts=(SEARCH,),
    )
    rows = [
        f"{s.layer} {s.role} {s.source.replace(A.version[:8], 'v').replace(B.version[:8], 'v')}"
        + ("" if s.cached else " uncached")
        for s in assemble(envelope, "lazy", turn_start=2)
    ]
    assert rows == snapshot(
        [
            "L1 system system:persona",
            "L2 user note:a.md@v",
            "L4 user frame:m0",
            "L4 user message:m0",
            "L4 assistant message:r0",
            "L3 user names:m1",
            "L3 user note:b.md@v",
            "L3 user tool_texts uncached",
            "L3 user frame:m1",
            "L5 user message:m1",
        ]
    )


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_the_uncached_tail_comes_last_and_is_no_part_of_the_prefix(promotion: Promotion) -> None:
    tail = (Message(role="user", blocks=(Text("now"),), id="u1"),)
    prompt = assemble(envelope_of(asks("Q"), uncached=tail), promotion)
    assert [segment.text for segment in prompt] == ["Q", "now"]
    assert prompt.cached_run() == 1
    assert not prompt.segments[-1].cached
