"""One row says what a kind of item is, and every room asks that row."""

import re
from collections import Counter

import pytest
from msgspec.structs import fields
from tests.fakes.renderers import render_item

from lamina.adapters.workspace.item_reader import READERS
from lamina.core.text import attachment_rank, label_of
from lamina.core.values.item import (
    FILE_KINDS,
    ITEM_KINDS,
    SHAPE_RANKS,
    TRAITS,
    Item,
    ItemKind,
    KindTraits,
    file_of,
    item_id,
    kind_of_file,
    query_id,
    reference_to,
    selection_id,
    tool_id,
)

KEYS: dict[ItemKind, str] = {
    "selection": "a/b.md#L3-L10",
    "query": "a/b.md#0123456789abcdef",
    "url": "https://example.org/",
    "tool": "server/name",
}


def example(kind: ItemKind) -> Item:
    return Item(id=item_id(kind, KEYS.get(kind, "a/b")), content="some text", title="T")


def test_every_kind_has_a_row_and_every_row_a_kind() -> None:
    assert set(TRAITS) == set(ITEM_KINDS)


def test_a_row_that_forgets_what_a_kind_is_raises() -> None:
    required = [field.name for field in fields(KindTraits) if field.required]
    assert required == ["nature", "rank", "tag", "head"]
    row = {"nature": "file", "rank": 99, "tag": "sound_context", "head": ("name",)}
    KindTraits(**row)  # type: ignore[arg-type]
    for name in required:
        with pytest.raises(TypeError, match=name):
            KindTraits(**{key: value for key, value in row.items() if key != name})  # type: ignore[arg-type]


def test_every_kind_that_is_a_file_has_a_reader_and_no_other_kind_has_one() -> None:
    assert set(READERS) == set(FILE_KINDS)


def test_what_holds_for_files_holds_for_every_kind_of_file() -> None:
    for kind in FILE_KINDS:
        row = TRAITS[kind]
        assert row.meets_globs
        assert row.chat_section == "Notes"
        assert row.suffixes or kind == "file"
        assert row.other_kind in (None, *FILE_KINDS)


def test_a_suffix_belongs_to_one_kind_of_file() -> None:
    suffixes = Counter(suffix for row in TRAITS.values() for suffix in row.suffixes)
    assert set(suffixes.values()) == {1}
    for kind, row in TRAITS.items():
        assert not row.suffixes or row.nature == "file"
        for suffix in row.suffixes:
            assert kind_of_file(f"a.b/C{suffix.upper()}") == kind
    assert kind_of_file("Makefile") == kind_of_file("a.md/x.unknown") == "file"


def test_no_two_kinds_or_shapes_share_a_tag_or_a_place() -> None:
    tags = [tag for row in TRAITS.values() for tag in (row.tag, row.shape_tag) if tag]
    assert len(tags) == len(set(tags))
    ranks = [row.rank for row in TRAITS.values()] + list(SHAPE_RANKS.values())
    assert len(ranks) == len(set(ranks))
    for kind, row in TRAITS.items():
        assert attachment_rank(example(kind).id, "attached") == row.rank
        assert bool(row.shape) == bool(row.shape_tag)


@pytest.mark.parametrize("kind", ITEM_KINDS)
def test_every_kind_reads_in_its_own_tag_with_its_content(kind: ItemKind) -> None:
    row = TRAITS[kind]
    for shape in ("attached", *SHAPE_RANKS):
        tag = row.shape_tag if shape == row.shape else row.tag
        block = render_item(example(kind), shape)
        assert block.startswith(f"<{tag}>\n")
        assert block.endswith(f"\n</{tag}>")
        assert "some text" in block
        assert re.findall(r"^<(\w+)>.*</\1>$", block, re.M) == list(row.head)


@pytest.mark.parametrize(
    ("item", "label", "file", "again"),
    [
        (item_id("note", "a/b.md"), "a/b.md", "a/b.md", "a/b.md"),
        (item_id("pdf", "x.pdf"), "x.pdf", "x.pdf", "x.pdf"),
        (selection_id("a#b.md", 3, 10), "a#b.md (lines 3-10)", "a#b.md", None),
        (query_id("a.md", "from x"), f"a.md (query {query_id('a.md', 'from x')[11:17]})",
         "a.md", None),
        (item_id("folder", "a/b"), "a/b/", "", None),
        (item_id("tag", "draft"), "#draft", "", None),
        (item_id("url", "https://x/"), "https://x/", "", ""),
        (item_id("rule", "be {brief}"), "be {brief}", "", ""),
        (tool_id("server", "name"), "server/name", "", ""),
        (item_id("selection", "odd"), "odd", "odd", None),
        (item_id("sound", "a.ogg"), "a.ogg", "", ""),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_an_id_is_read_as_its_row_says(item: str, label: str, file: str, again: str | None) -> None:
    made = item_id(*item.split(":", 1))  # type: ignore[arg-type]
    assert label_of(made) == label
    assert file_of(made) == file
    assert reference_to(made) == (item if again is None else again)
