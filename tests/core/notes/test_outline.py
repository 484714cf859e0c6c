"""Headings and code blocks by line."""

from hypothesis import given
from tests.core.notes.test_passages import NOTES
from tests.strategies import modest

from lamina.core.notes.note_outline import read_outline
from lamina.core.text.pictures import mask_code


def test_a_block_ends_where_its_list_does() -> None:
    outline = read_outline(["- a", "", "    ```sh", "    x", "", "Text", "", "# Heading"])
    assert [(block.line, block.end, block.info) for block in outline.blocks] == [(2, 5, "sh")]
    assert [heading.text for heading in outline.headings] == ["Heading"]


def test_a_block_that_is_hardly_indented_holds_what_is_not() -> None:
    outline = read_outline(["  ```", "# code", "  ```", "# Heading"])
    assert [(block.line, block.end) for block in outline.blocks] == [(0, 3)]
    assert [heading.line for heading in outline.headings] == [3]


@modest
@given(NOTES)
def test_a_code_block_is_where_code_is_masked(text: str) -> None:
    lines, masked = text.split("\n"), mask_code(text)[0].split("\n")
    assert [len(line) for line in lines] == [len(line) for line in masked]
    for block in read_outline(lines).blocks:
        assert not "".join(masked[block.line : block.end]).strip("\0")
