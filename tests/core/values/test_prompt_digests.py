"""Digests that were recorded, compared with a prompt without rendering all of it."""

from hypothesis import given
from hypothesis import strategies as st

from lamina.core.values.collections import Chain
from lamina.core.values.message import Text
from lamina.core.values.prompt import Prompt, Segment, SegmentLink, link_segments

texts = st.lists(st.sampled_from("abc"), max_size=4)


def segments(names: list[str]) -> list[Segment]:
    return [
        Segment(
            layer="L4",
            role="user",
            message=str(place),
            content=Text(name),
            source="",
            digest=name * 64,
            tokens=1,
        )
        for place, name in enumerate(names)
    ]


def linked(names: list[str]) -> Chain[SegmentLink]:
    return link_segments(Chain(), segments(names))


@st.composite
def prompts(draw: st.DrawFn) -> Prompt:
    front, history, asked, steps, tail = (draw(texts) for _ in range(5))
    return Prompt(
        front=linked(front),
        history=linked(history),
        asked=tuple(segments(asked)),
        steps=linked(steps),
        tail=tuple(segments(tail)),
    )


@given(prompts(), st.integers(0, 22), st.data())
def test_a_prompt_ends_with_its_own_digests_and_no_others(
    prompt: Prompt, start: int, data: st.DataObject
) -> None:
    own = tuple(segment.digest for segment in prompt.since(start))
    assert prompt.ends_with(own, start)
    others = data.draw(st.lists(st.sampled_from("abc"), max_size=22))
    digests = tuple(name * 64 for name in others)
    assert prompt.ends_with(digests, start) == (digests == own)
    if own:
        place = data.draw(st.integers(0, len(own) - 1))
        assert not prompt.ends_with((*own[:place], "d" * 64, *own[place + 1 :]), start)
        assert not prompt.ends_with(own[:-1], start)
        assert not prompt.ends_with(own[1:], start)
