"""Picture references: what a note shows, in order, each once, and nothing out of its code."""

from collections.abc import Callable
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.text import PictureRef, find_pictures
from lamina.core.text.pictures import mask_code


def targets(markdown: str) -> list[str]:
    return [reference.target for reference in find_pictures(markdown)]


@pytest.mark.parametrize(
    ("markdown", "target"),
    [
        ("![[x.png]]", "x.png"),
        ("![[x.png|300]]", "x.png"),
        ("| ![[x.png\\|300]] |", "x.png"),
        ("![[ img/My Pic.JPEG ]]", "img/My Pic.JPEG"),
        ("![[x.webp#outline]]", "x.webp"),
        ("![[100%25.gif]]", "100%25.gif"),
        ("![](x.png)", "x.png"),
        ("![an alt](x.png)", "x.png"),
        ('![](a(b).png "t")', "a(b).png"),
        ("![](a(b(c)).png 't')", "a(b(c)).png"),
        ("![](x.png (t))", "x.png"),
        ('![](x.png "a \\" ) b")', "x.png"),
        ('![](x.png\n  "t")', "x.png"),
        ("![](< x.png >)", "x.png"),
        ('![]( <my pic (1).png> "t" )', "my pic (1).png"),
        ("![](my%20pic%281%29.png)", "my pic(1).png"),
        ("![](a\\(b.png)", "a(b.png"),
        ("![](my pic.png)", "my pic.png"),
        ('![](my pic (2).png "t")', "my pic (2).png"),
        ("![](bilder/%C3%BC.png)", "bilder/ü.png"),
        ("![](x.png#right)", "x.png"),
        ("![](C#.png)", "C#.png"),
        ("![](%23.png)", "#.png"),
        ("![](a&amp;b.png)", "a&b.png"),
        ("![](../x.svg)", "../x.svg"),
        ("![a [b] c](x.png)", "x.png"),
        ("![a `]` c](x.png)", "x.png"),
        ("[![alt](x.png)](https://example.com)", "x.png"),
        ("![a ![b](y.png)](x.png)", "x.png"),
        ("\\\\![](x.png)", "x.png"),
        ("![[no link](u)](x.png)", "x.png"),
    ],
)
def test_a_reference_is_found_and_decoded(markdown: str, target: str) -> None:
    assert find_pictures(f"before {markdown} after") == (PictureRef(kind="path", target=target),)


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("https://example.com/a%20b.png?c=(d)#e", "url"),
        ("HTTP://example.com/x", "url"),
        ("//example.com/x.png", "url"),
        ("file:///etc/x.png", "url"),
        ("data:image/png;base64,iVBORw0KGgo=", "data"),
        ("DATA:image/svg+xml,%3Csvg/%3E", "data"),
    ],
)
def test_addresses_and_data_stay_as_they_are_written(target: str, kind: str) -> None:
    (reference,) = find_pictures(f'![a]({target} "t")')
    assert (reference.kind, reference.target) == (kind, target)


@pytest.mark.parametrize(
    "markdown",
    [
        "![[note]]", "![[note.md]]", "![[x.pdf]]", "[[x.png]]", "[a](x.png)",
        "![]()", "![](<>)", "![](<x.png>y)", "![](<x\n.png>)", "![](x.png", "![](a(b.png)",
        "![a] (x.png)", "![a\n\nb](x.png)", "\\![](x.png)", "!\\[](x.png)",
        "![](x\n\n.png)", "![[x.png", "![[x\n.png]]", "![a](x.png y\n.png)",
    ],
)  # fmt: skip
def test_what_is_no_picture_is_not_found(markdown: str) -> None:
    assert targets(f"before {markdown} after") == []


@pytest.mark.parametrize(
    "code",
    [
        "`![](x.png)`", "``![[x.png]] ` ``", "```\n![](x.png)\n```", "```\n![](x.png)",
        "~~~\n```\n![[x.png]]\n~~~", "1. ```md\n   ![](x.png)\n   ```",
    ],
)  # fmt: skip
def test_code_holds_no_pictures(code: str) -> None:
    assert targets(code) == []


def test_pictures_stand_in_order_and_each_once() -> None:
    assert targets("![](b.png) ![[a.png]] ![x](b.png 't')\n\n![[b.png|9]] ![](c.png)") == [
        "b.png",
        "a.png",
        "c.png",
    ]


@given(st.text(alphabet="`~> \n\\ab[]()!-#", max_size=60))
def test_masking_code_keeps_every_length_and_newline(markdown: str) -> None:
    masked, _ = mask_code(markdown)
    assert len(masked) == len(markdown)
    assert all(new in (old, "\0") for old, new in zip(markdown, masked, strict=True))
    assert masked.count("\n") == markdown.count("\n")
    find_pictures(markdown)


@pytest.mark.parametrize(
    "hostile",
    [
        "![](", "![[", "![", "[", "]", "![](<", '![](x "', "![](x '", "![](x (", "![](a ", "![]( ",
        "![](\\(", "![a](x.png)", "![a](x.png) ", "![[x.png]]", "`", "` ``", "\\", "\\`", "\n```",
        "> ", "- ", "![](x\n", "![](data:,", "&", "![](.png#",
    ],
)  # fmt: skip
def test_time_grows_with_the_length_of_the_note(hostile: str) -> None:
    assert growth(lambda n: find_pictures(hostile * n), 400) < 24  # quadratic: 64


@pytest.mark.parametrize("filler", [" ", "\t", "\n", "a", "(", "\\", '"', "`", "\0", "\u00a0"])
@pytest.mark.parametrize("opening", ["![](x", "![](", "![](<", '![](x "', "![[", "![", "```", "> "])
def test_a_long_tail_costs_no_more_than_its_length(opening: str, filler: str) -> None:
    assert growth(lambda n: find_pictures(opening + filler * n), 4_000) < 24  # quadratic: 64


def growth(work: Callable[[int], object], size: int) -> float:
    """How much longer 8 times the size takes; a thousandth of a second more or less is nothing."""

    def fastest(n: int) -> float:
        times = []
        for _ in range(3):
            start = process_time()
            work(n)
            times.append(process_time() - start)
        return min(times)

    return fastest(8 * size) / (fastest(size) + 0.001)
