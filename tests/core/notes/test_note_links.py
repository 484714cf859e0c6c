"""The links of a note: what counts as one, and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import modest

from lamina.core.notes.note_names import NoteNames
from lamina.core.notes.note_reader import read_note
from lamina.core.text.code_and_comments import mask_comments
from lamina.core.values.note import Note


def read(text: str) -> Note:
    return read_note("n.md", text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "%% [[a]] %%",
        "%%[[a]]%% and %% [x](a.md) %%",
        "before %% one\n\n[[a]]\n![[a]]\n\n%% after",
        "<!-- [[a]] -->",
        "<!--\n[[a]] [x](a.md)\n-->",
        "`[[a]]`",
        "```\n[[a]] %%\n```",
        "~~~md\n[x](a.md)\n~~~",
        "%% `%%` [[a]] %%",
    ],
)
def test_what_stands_in_a_comment_or_in_code_is_no_link(text: str) -> None:
    note = read(text)
    assert (note.links, note.embeds) == ((), ())
    assert read(f"{text}\n\n[[b]] ![[c]]\n").links == ("b",)


def test_what_is_no_comment_hides_nothing() -> None:
    assert read("100%% of [[a]]").links == ("a",)
    assert read("<!-- [[a]]").links == ("a",)
    assert read("`%%` [[a]] `%%`").links == ("a",)
    assert read("%% x %% [[a]] %% y %%").links == ("a",)
    assert read("<!-- %% --> [[a]] <!-- %% -->").links == ("a",)


def test_tags_in_a_comment_still_count() -> None:
    assert read("%% #hidden %%").tags == ("hidden",)


@modest
@given(st.text(st.sampled_from("%<!->a\n[]"), max_size=40))
def test_masking_comments_keeps_length_and_lines(text: str) -> None:
    masked = mask_comments(text)
    assert len(masked) == len(text)
    assert [at for at, c in enumerate(masked) if c == "\n"] == [
        at for at, c in enumerate(text) if c == "\n"
    ]


def test_comments_that_are_never_closed_are_looked_for_once() -> None:
    assert mask_comments("<!--" * 200_000 + "%%") == "<!--" * 200_000 + "%%"


def test_labels_are_kept_by_their_target_and_pictures_by_their_file() -> None:
    note = read(
        "[[a|b]] [[a|c]] [[d]] ![[e|f#g]] ![[x.png|300]] ![y](img/y%20z.png) ![](//h/z.png)"
    )
    assert note.links == ("a", "d")
    assert note.embeds == ("e",)
    assert note.labels == {"a": ("b", "c"), "e": ("f#g",), "x.png": ("300",)}
    assert note.pictures == ("x.png", "img/y z.png")


# -- Dendron ---------------------------------------------------------------------------------------

DENDRON = NoteNames(
    (
        "vault/dendron.topic.lookup.md",
        "vault/dendron.topic.md",
        "other/dendron.topic.md",
        "vault/a.md",
    )
)


@pytest.mark.parametrize(
    ("link", "path", "anchor"),
    [
        ("[[lookup|dendron.topic.lookup]]", "vault/dendron.topic.lookup.md", ""),
        ("[[the lookup|dendron.topic.lookup#bar]]", "vault/dendron.topic.lookup.md", "bar"),
        ("[[Up|dendron://vault/dendron.topic.lookup#b]]", "vault/dendron.topic.lookup.md", "b"),
        ("[[dendron://other/dendron.topic]]", "other/dendron.topic.md", ""),
        ("[[dendron://my.vault/dendron.topic.lookup]]", "vault/dendron.topic.lookup.md", ""),
        ("[[dendron.topic]]", "vault/dendron.topic.md", ""),
        # The left names a note: then it is Obsidian's order.
        ("[[a|dendron.topic.lookup]]", "vault/a.md", ""),
        ("[[none|nothing]]", None, ""),
    ],
)  # fmt: skip
def test_a_label_that_is_a_name_is_meant_where_the_target_means_nothing(
    link: str, path: str | None, anchor: str
) -> None:
    resolved = DENDRON.resolve(link, beside="vault/x.md")
    assert (resolved.path, resolved.anchor) == (path, anchor)
    assert resolved.warning == "" or path is None


def test_a_link_is_resolved_with_the_labels_of_its_note() -> None:
    note = read("[[lookup|dendron.topic.lookup]] [[gone|this]] [[a|dendron.topic]]")
    meanings = [DENDRON.resolve_link(link, note.labels[link], "vault/n.md") for link in note.links]
    assert [meaning.path for meaning in meanings] == [
        "vault/dendron.topic.lookup.md", None, "vault/a.md",
    ]  # fmt: skip
