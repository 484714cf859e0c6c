"""Sentences of ours by renderer: what was sent once stays as it was."""

from string import Formatter

import pytest
from msgspec.structs import asdict

from lamina.core.codec import digest_value
from lamina.core.text.wording import wording
from lamina.core.values.entry import RENDERERS


def names(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


def test_every_renderer_has_its_words() -> None:
    assert [wording(number) for number in RENDERERS]
    assert wording(1) == wording(2) != wording(3)


def test_a_sentence_is_filled_in_with_the_same_in_all_wordings() -> None:
    filled = [{key: names(text) for key, text in asdict(wording(n)).items()} for n in RENDERERS]
    assert all(each == filled[0] for each in filled)


@pytest.mark.parametrize(
    ("renderer", "digest"),
    [
        (2, "09f38ef7cd601e25d570505f837b6b4df9f6b8f88889d98bb98df50435a4fee5"),
        (3, "3ca6b42fa31db1d70fd7cf0b0880077bf3116dba273d93a3789cd27edd12c3c6"),
    ],
)
def test_the_words_of_a_renderer_never_change(renderer: int, digest: str) -> None:
    assert digest_value(asdict(wording(renderer))) == digest
