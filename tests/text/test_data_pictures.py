"""Pictures that a note holds itself, as words."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import modest

from lamina.text.data_pictures import replace_data_pictures
from lamina.text.pictures import PictureRef, count_pictures, find_pictures

DIGITS = base64.b64encode(bytes(2_345)).decode()
URI = f"data:image/png;base64,{DIGITS}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"a ![a chart]({URI}) b", "a [Picture: a chart (PNG, 2.3 kB)] b"),
        (f"![]({URI})", "[Picture (PNG, 2.3 kB)]"),
        (f'![x](<{URI}> "title")', "[Picture: x (PNG, 2.3 kB)]"),
        (f'<p><img alt="a [chart]" src="{URI}" width=3></p>',
         "<p>[Picture: a (chart) (PNG, 2.3 kB)]</p>"),
        (f"<IMG SRC='{URI}'/>", "[Picture (PNG, 2.3 kB)]"),
        (f"<img src={URI}>", "[Picture (PNG, 2.3 kB)]"),
        (f"![one][x] and ![two][X]\n\n[x]: {URI}\n",
         "![one][x] and ![two][X]\n\n[x]: [Picture (PNG, 2.3 kB)]\n"),
        (f"![Screen shot]\n\n[screen  SHOT]: <{URI}>\n",
         "![Screen shot]\n\n[screen  SHOT]: [Picture (PNG, 2.3 kB)]\n"),
        (f"![x][]\n\n[x]: {URI} 'title'\n", "![x][]\n\n[x]: [Picture (PNG, 2.3 kB)] 'title'\n"),
        (f"![](DATA:image/svg+xml,{'%3Csvg%2F%3E' * 20})", "[Picture (SVG, 240 bytes)]"),
        (f"![](data:image/jpeg;base64,{DIGITS * 100})", "[Picture (JPEG, 234 kB)]"),
        (f"[see][x]\n\n[x]: {URI}", "[see][x]\n\n[x]: [Picture (PNG, 2.3 kB)]"),
        (f"<img\nsrc='{URI}'\n>x", "[Picture (PNG, 2.3 kB)]\n\nx"),
    ],
)  # fmt: skip
def test_a_picture_that_a_note_holds_becomes_a_few_words(text: str, words: str) -> None:
    assert replace_data_pictures(text) == words


@pytest.mark.parametrize(
    "text",
    [
        "![[x.png]] ![](a.png) <img src='b.png'> data:",
        f"```\n![]({URI})\n```\n",
        f"`![]({URI})`",
        f"<!-- ![]({URI}) -->",
        "![](data:image/png;base64,iVBORw0KGgo=)",
    ],
)
def test_what_is_no_such_picture_stays_as_it_is(text: str) -> None:
    assert replace_data_pictures(text) == text


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("![a][x] ![X][]\n\n[x]: img/a%20b.png \"t\"\n", ["img/a b.png"]),
        ("![x]\n\n[x]: <a b.png>\n", ["a b.png"]),
        ("![a][none] ![none]", []),
        ("<img src='a.png' alt=x> ![](b.png) <IMG alt=y SRC=\"c%20d.png\"/>",
         ["a.png", "b.png", "c d.png"]),
        ("<img data-src='no.png'> <image src='no.png'>", []),
        ("%% ![[a.png]] %% <!-- <img src='b.png'> --> `<img src='c.png'>` ![[d.png]]", ["d.png"]),
        ("[![a](b.png)](c.md)", ["b.png"]),
        ("[x]: a.png\n\n[![inner][x]](https://e.test)", ["a.png"]),
    ],
)  # fmt: skip
def test_pictures_by_definition_and_in_html_are_found(text: str, targets: list[str]) -> None:
    assert find_pictures(text) == tuple(PictureRef(kind="path", target=name) for name in targets)
    assert count_pictures(text) == len(targets)


@modest
@given(st.lists(st.sampled_from([
    "![", "](", ")", "[x]: ", "<img src='", "'>", URI, "\n", "`", "alt", "[x]", "%%", "<!--", "-->",
]), max_size=12).map("".join))  # fmt: skip
def test_words_for_pictures_keep_the_lines_and_are_not_replaced_again(text: str) -> None:
    words = replace_data_pictures(text)
    assert words.count("\n") == text.count("\n")
    assert replace_data_pictures(words) == words


def test_many_tags_and_brackets_that_never_end_are_looked_at_once() -> None:
    for hostile in ("<img src='", "<img ", "![x][", "![", "[x]: <", "![a][x]\n[x]:"):
        assert replace_data_pictures("data:" + hostile * 20_000)
