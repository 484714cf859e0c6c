"""The same envelope gives the same segments, however they were come by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.strategies import (
    WORLD,
    answers,
    assemble_state,
    assembler,
    count_words,
    entries_after,
    envelope_of,
    items_of,
    modest,
    promotions,
    sessions,
    states_along,
    thorough,
    tool_texts,
    user_messages,
)

from lamina.core.codec import digest_texts, segment_digest
from lamina.core.journal import State, apply_patch
from lamina.core.layers.assembler import Assembler
from lamina.core.layers.layout import Layout, layout_for
from lamina.core.layers.token_sizes import (
    IMAGE_TOKENS,
    MESSAGE_TOKENS,
    measure_layers,
    picture_tokens,
)
from lamina.core.values.collections import Chain
from lamina.core.values.entry import Entry
from lamina.core.values.envelope import Envelope, LaidItem
from lamina.core.values.item import Picture
from lamina.core.values.message import (
    Context,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolText,
    Use,
)
from lamina.core.values.patch import MessagesCachedReplace, MessagesUncachedAppend, Patch
from lamina.core.values.prompt import LAYERS, Prompt, Segment, SegmentLink
from lamina.core.values.settings import Promotion

ITEMS = items_of(*WORLD)


def links_of(prompt: Prompt) -> list[SegmentLink]:
    return [*prompt.front, *prompt.history, *prompt.steps]


def assert_same(left: Prompt, right: Prompt) -> None:
    assert left.segments == right.segments
    assert links_of(left) == links_of(right)
    assert left.tokens == right.tokens == sum(segment.tokens for segment in left)
    assert len(left) == len(left.segments)
    assert left.cached_run() == right.cached_run()


@modest
@given(sessions(), promotions)
def test_assembling_step_by_step_is_assembling_from_nothing(
    entries: list[Entry], promotion: Promotion
) -> None:
    growing = assembler(promotion, count_words)
    for state in states_along(entries):
        assert_same(
            assemble_state(growing, state),
            assemble_state(assembler(promotion, count_words), state),
        )


@modest
@given(sessions(), promotions, st.data())
def test_assembling_branches_in_turn_is_assembling_each_from_nothing(
    entries: list[Entry], promotion: Promotion, data: st.DataObject
) -> None:
    trunk = states_along(entries)[-1]
    branches = [
        states_along(entries + data.draw(entries_after(trunk, name, most=5)))[len(entries) - 1 :]
        for name in ("l", "r")
    ]
    growing = assembler(promotion, count_words)
    for number in range(max(map(len, branches))):
        for state in (branch[min(number, len(branch) - 1)] for branch in branches):
            assert_same(
                assemble_state(growing, state),
                assemble_state(assembler(promotion, count_words), state),
            )


@modest
@given(sessions(), promotions, st.lists(st.integers(0, 99), max_size=12))
def test_going_back_and_forth_in_a_session_is_assembling_each_state_from_nothing(
    entries: list[Entry], promotion: Promotion, visits: list[int]
) -> None:
    states = states_along(entries)[-8:]
    growing = assembler(promotion, count_words)
    for visit in visits:
        state = states[visit % len(states)]
        assert_same(
            assemble_state(growing, state),
            assemble_state(assembler(promotion, count_words), state),
        )


def test_an_earlier_turn_is_assembled_right_after_a_later_one() -> None:
    roles: tuple[Role, ...] = ("user", "assistant", "user", "assistant", "assistant")
    later = Chain(Message(role=r, blocks=(Text(f"t{n}"),), id=f"m{n}") for n, r in enumerate(roles))
    using = assembler()
    for cached, start in ((later, 2), (later.until(2), 0), (later, 2), (later.until(4), 0)):
        envelope = Envelope(cached=cached)
        prompt = using.assemble(envelope, {}, start)
        assert [segment.text for segment in prompt] == [f"t{n}" for n in range(len(cached))]
        assert_same(prompt, assembler().assemble(envelope, {}, start))


@modest
@given(sessions(), promotions)
def test_a_prompt_that_was_handed_out_does_not_change(
    entries: list[Entry], promotion: Promotion
) -> None:
    growing = assembler(promotion, count_words)
    handed: list[tuple[Prompt, tuple[Segment, ...]]] = []
    for state in states_along(entries):
        prompt = assemble_state(growing, state)
        handed.append((prompt, prompt.segments))
    for prompt, segments in handed:
        assert prompt.segments == segments


def sent_and_later(
    messages: list[Message], asked: int, texts: tuple[ToolText, ...], promotion: Promotion
) -> tuple[Prompt, Prompt]:
    """The request that asks message `asked`, and a later one that has it in its history."""
    using = assembler(promotion, count_words)
    sent = using.assemble(envelope_of(*messages, tool_texts=texts), ITEMS, asked)
    later = assembler(promotion, count_words).assemble(envelope_of(*messages), ITEMS, len(messages))
    return sent, later


def on_the_wire(segments: tuple[Segment, ...]) -> list[tuple[str, int]]:
    return [(segment.digest, segment.tokens) for segment in segments]


conversations = st.lists(st.tuples(user_messages(), answers()), min_size=1, max_size=4).map(
    lambda pairs: [message for pair in pairs for message in pair]
)


@thorough
@given(conversations)
def test_lazy_history_has_the_bytes_it_was_sent_with(messages: list[Message]) -> None:
    for asked in range(0, len(messages), 2):
        sent, later = sent_and_later(messages[: asked + 1], asked, (), "lazy")
        assert on_the_wire(sent.segments) == on_the_wire(later.segments)
        assert sent.cached_run() == len(sent)


@thorough
@given(conversations, tool_texts)
def test_lazy_history_is_what_was_sent_less_what_was_uncached(
    messages: list[Message], texts: tuple[ToolText, ...]
) -> None:
    """`cached` says that a segment stands there again in the next request."""
    sent, later = sent_and_later(messages, len(messages) - 2, texts, "lazy")
    kept = [(segment.role, segment.content) for segment in sent if segment.cached]
    assert kept == [(segment.role, segment.content) for segment in later]


@thorough
@given(conversations, tool_texts)
def test_eager_history_holds_bare_questions_and_answers(
    messages: list[Message], texts: tuple[ToolText, ...]
) -> None:
    bare = [
        replace(m, blocks=tuple(b for b in m.blocks if not isinstance(b, Context)))
        for m in messages
    ]
    _, later = sent_and_later(messages, len(messages) - 2, texts, "eager")
    without, _ = sent_and_later(bare, len(bare), (), "eager")
    assert on_the_wire(later.segments) == on_the_wire(without.segments)
    typed = [m.text.strip() for m in messages if m.text.strip() or m.calls]
    assert [s.text for s in later if s.role == "user"] == [
        m.text.strip() for m in messages if m.role == "user" and m.text.strip()
    ]
    assert {s.text for s in later if isinstance(s.content, Text)} <= set(typed)


@thorough
@given(conversations, tool_texts, promotions)
def test_the_run_that_will_stand_again_ends_at_the_first_uncached_segment(
    messages: list[Message], texts: tuple[ToolText, ...], promotion: Promotion
) -> None:
    sent, _ = sent_and_later(messages, len(messages) - 2, texts, promotion)
    run = sent.cached_run()
    assert all(segment.cached for segment in sent.segments[:run])
    assert run == len(sent) or not sent.segments[run].cached


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_an_item_laid_in_the_middle_of_a_turn_is_on_the_wire(promotion: Promotion) -> None:
    item = WORLD[0]
    use = Use(item=item.id, version=item.version, form="full")
    messages = (
        Message(role="user", blocks=(Text("Q"),), id="m1"),
        Message(role="assistant", blocks=(ToolCall(id="c", name="find"),), id="m2"),
        Message(role="tool", blocks=(ToolResult(call_id="c", name="find", text="r"),), id="m3"),
        Message(role="user", blocks=(Context(uses=(use,)),), id="lay:3"),
    )
    prompt = assembler(promotion).assemble(envelope_of(*messages), ITEMS, 0)
    assert any(item.content in segment.text for segment in prompt)


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_a_block_shows_the_item_of_its_own_branch(promotion: Promotion) -> None:
    """A file touched between two branches is one version, but each journal path kept its own."""
    using = assembler(promotion)
    for mtime in ("2020", "2024"):
        item = replace(WORLD[0], mtime=mtime)
        use = Use(item=item.id, version=item.version, form="full")
        message = Message(role="user", blocks=(Context(uses=(use,)), Text("Q")), id="m1")
        envelope = envelope_of(message, library=(LaidItem(item=item.id, version=item.version),))
        prompt = using.assemble(envelope, items_of(item), 0)
        assert_same(prompt, assembler(promotion).assemble(envelope, items_of(item), 0))


def test_two_messages_in_a_row_stay_two_although_a_hook_gave_them_no_ids() -> None:
    """Encoders put segments of one role and one `message` into one wire message."""
    one, two = (Message(role="user", blocks=(Text(text),)) for text in ("one", "two"))
    replaced = MessagesCachedReplace(messages=(one, two), reason="rewritten")
    appended = MessagesUncachedAppend(messages=(one, two))
    envelope, _ = apply_patch(Envelope(), Patch(ops=(replaced, appended)))
    prompt = assembler().assemble(envelope, {}, 2)
    assert len({segment.message for segment in prompt}) == 4


# -- digests and sizes ---------------------------------------------------------------------------


@modest
@given(sessions(), promotions)
def test_layers_add_up_to_the_prompt(entries: list[Entry], promotion: Promotion) -> None:
    state: State = states_along(entries)[-1]
    prompt = assemble_state(assembler(promotion, count_words), state)
    sizes = measure_layers(prompt)
    assert tuple(size.layer for size in sizes) == LAYERS
    assert sum(size.tokens for size in sizes) == prompt.tokens
    assert sum(size.segments for size in sizes) == len(prompt)
    for size in sizes:
        digests = [s.digest for s in prompt if s.layer == size.layer]
        assert size.digest == digest_texts(digests)


@modest
@given(sessions(), promotions, st.integers(0, 60))
def test_totals_are_those_of_the_segments(
    entries: list[Entry], promotion: Promotion, index: int
) -> None:
    prompt = assemble_state(assembler(promotion, count_words), states_along(entries)[-1])
    segments = prompt.segments
    assert tuple(prompt.since(index)) == segments[index:]
    assert prompt.tokens_until(index) == sum(s.tokens for s in segments[:index])


def test_a_digest_tells_apart_role_opening_and_kind_of_content() -> None:
    contents = (
        Text("x"), Text("x "), Text(""), ToolCall(id="x", name="x"), Thinking(text="x"),
        ToolResult(call_id="x", name="x", text="x"), ToolDefinition(name="x"),
    )  # fmt: skip
    digests = [
        segment_digest(role, content, opens=opens)
        for role in ("user", "assistant")
        for opens in (True, False)
        for content in contents
    ]
    assert len(set(digests)) == len(digests)


def test_text_cannot_have_the_digest_of_a_tool_call() -> None:
    call = ToolCall(id="c", name="find")
    spelled = Text(
        '\x1f{"arguments":"{}","id":"c","name":"find","signature":"","type":"tool_call"}'
    )
    assert segment_digest("assistant", call, opens=True) != segment_digest(
        "assistant", spelled, opens=True
    )


def test_key_order_of_a_tool_schema_changes_nothing_on_the_wire() -> None:
    def front(*keys: str) -> Segment:
        schema = {"properties": {key: {"type": "string"} for key in keys}}
        envelope = envelope_of(tools=(ToolDefinition(name="t", parameters=schema),))
        (segment,) = assembler().assemble(envelope, {}, 0)
        return segment

    one, two = front("a", "b"), front("b", "a")
    assert (one.digest, one.tokens) == (two.digest, two.tokens)
    assert repr(one.content) == repr(two.content)


def test_thinking_goes_back_only_to_the_vendor_that_signed_it() -> None:
    signed = Thinking(text="hm", signature="s", provider="anthropic")
    message = Message(
        role="assistant", blocks=(signed, Thinking(text="?", provider="anthropic"), Text("R"))
    )
    for wire, expected in (("anthropic", [signed, Text("R")]), ("openai", [Text("R")])):
        using = Assembler(len, Layout(wire=wire))
        prompt = using.assemble(envelope_of(message), {}, 1)
        assert [segment.content for segment in prompt] == expected


def test_thinking_goes_back_only_to_the_model_that_it_is_of() -> None:
    signed = Thinking(text="hm", signature="s", provider="anthropic")
    unknown = Message(role="assistant", blocks=(signed, Text("R")))
    known = unknown.thought_by("claude-sonnet-5")
    sonnet, opus = (
        layout_for("lazy", "anthropic", model) for model in ("claude-sonnet-5", "claude-opus-5")
    )
    for message, layout, expected in (
        (known, sonnet, [signed, Text("R")]),
        (known, opus, [Text("R")]),
        # Before it was recorded whose it is, it was sent to all: those bytes stay.
        (unknown, opus, [signed, Text("R")]),
    ):
        prompt = Assembler(len, layout).assemble(envelope_of(message), {}, 1)
        assert [segment.content for segment in prompt] == expected


def test_layouts_of_models_that_get_no_thinking_back_are_one() -> None:
    assert layout_for("lazy", "openai", "gpt-5") == layout_for("lazy", "openai", "gpt-4o")


def test_what_a_message_costs_includes_what_the_template_adds() -> None:
    message = Message(role="user", blocks=(Text("four"), Text("more")))
    prompt = assembler().assemble(envelope_of(message), {}, 0)
    assert [segment.tokens for segment in prompt] == [4 + MESSAGE_TOKENS, 4]


def test_a_picture_costs_by_its_size_within_bounds() -> None:
    def cost(width: int, height: int) -> int:
        return picture_tokens(
            Picture(digest="d", media_type="image/png", width=width, height=height)
        )

    assert (cost(0, 0), cost(10, 10), cost(750, 750), cost(9_000, 9_000)) == (
        IMAGE_TOKENS,
        85,
        750,
        1_600,
    )
