"""Pictures that a note holds itself, as words."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import modest

from lamina.core.text import pictures as data_pictures
from lamina.core.text.pictures import (
    PictureRef,
    count_pictures,
    find_pictures,
    replace_data_pictures,
)

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


WORDS = "[Picture (PNG, 2.3 kB)]"
LINES = "\n".join(DIGITS[at : at + 76] for at in range(0, len(DIGITS), 76))
ENDS = "\n" * (LINES.count("\n") + 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"---\ncover: {URI}\n---\nText", f"---\ncover: {WORDS}\n---\nText"),
        (f"before\n{URI}\nand after", f"before\n{WORDS}\nand after"),
        (f"[p]({URI})", f"[p]({WORDS})"),
        (f"%% ![x]({URI}) %%", f"%% ![x]({WORDS}) %%"),
        (f'<img srcset="{URI} 2x">', f'<img srcset="{WORDS} 2x">'),
        (f'<img data-src="{URI}">', f'<img data-src="{WORDS}">'),
        (f'<object data="{URI}"></object>', f'<object data="{WORDS}"></object>'),
        (f'<svg><image href="{URI}"/></svg>', f'<svg><image href="{WORDS}"/></svg>'),
        (f'<p style="background:url({URI})">', f'<p style="background:url({WORDS})">'),
        (f"```\n![]({URI})\n```\n", f"```\n![]({WORDS})\n```\n"),
        (f"`![]({URI})`", f"`![]({WORDS})`"),
        (f"<!-- ![]({URI}) -->", f"<!-- ![]({WORDS}) -->"),
        (f'{{"dataURL": "{URI}", "id": 1}}', f'{{"dataURL": "{WORDS}", "id": 1}}'),
        (f"x data:image/png;base64,\n{LINES}\nthe end", f"x {WORDS}{ENDS}\nthe end"),
        (f"url(data:image/svg+xml,{'%3Csvg%2F%3E' * 20})", "url([Picture (SVG, 240 bytes)])"),
    ],
)  # fmt: skip
def test_a_picture_anywhere_in_a_note_is_never_text(text: str, words: str) -> None:
    shown = replace_data_pictures(text)
    assert shown == words
    assert shown.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text", ["data:image/png;base64,AAAA", "data: image/png", "metadata:image/png,x"]
)
def test_what_is_short_or_no_picture_stays(text: str) -> None:
    assert replace_data_pictures(text) == text


def test_text_that_only_speaks_of_data_is_not_looked_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    yaml = "```yaml\napiVersion: v1\ndata:\n  key: value\n  metadata: x\n```\n"
    monkeypatch.setattr(data_pictures, "locate_pictures", None)
    assert replace_data_pictures(yaml) == yaml


def test_what_is_no_uri_but_as_long_as_one_is_replaced_too() -> None:
    assert "AAAA" not in replace_data_pictures(f"![x](data:image/png;base64{'A' * 5_000})")
