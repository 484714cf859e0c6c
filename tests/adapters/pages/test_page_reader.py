"""What is read from a page, and what is not."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from lamina.adapters.pages.fetch_answers import FetchFailure
from lamina.adapters.pages.markup import PageText, declarations, hides, read_markup
from lamina.adapters.pages.page_reader import decode, is_page, is_picture, read_page
from lamina.errors import UsageError

WORDS = (
    "The tide turned before the harbour lights were lit, and the pilot waited for the second bell. "
)


def read(
    data: bytes, media_type: str = "text/html", charset: str = "", limit: int = 200_000
) -> PageText:
    return read_page(data, media_type, charset, read_pdf=None, limit=limit)


def article(inside: str, head: str = "") -> str:
    return (
        f"<html><head><title>Tides</title>{head}</head><body><nav><a href=/>Home</a></nav>"
        f"<article><h1>On tides</h1><p>{WORDS * 4}</p>{inside}<p>{WORDS * 4}</p></article>"
        f"<footer>Imprint</footer></body></html>"
    )


def test_the_main_text_of_a_page_is_markdown() -> None:
    page = read_markup(
        article(
            "<h2>Heights</h2><ul><li>spring</li><li>neap</li></ul>"
            "<table><tr><th>Port</th><th>m</th></tr><tr><td>Brest</td><td>6.9</td></tr></table>"
            "<pre><code>high = 6.9</code></pre><p>See <a href='https://x.example'>the tables</a>, "
            "they are <b>good</b>.</p>"
        )
    )
    assert page.title == "Tides"
    assert page.warnings == ()
    assert page.text.replace(WORDS.strip(), "W") == snapshot("""\
# On tides

W W W W

## Heights

- spring
- neap

| Port | m | \n\
|---|---|
| Brest | 6.9 | \n\

`high = 6.9`
See the tables, they are **good**.

W W W W\
""")


def test_the_same_page_is_read_the_same() -> None:
    text = article("<p>once</p>")
    assert len({read_markup(text) for _ in range(3)}) == 1


HIDDEN = (
    "<p hidden>ORDER</p>",
    "<div hidden=until-found><p>ORDER</p></div>",
    "<p style='display:none'>ORDER</p>",
    "<p style='DISPLAY : None !important'>ORDER</p>",
    "<p style='display:none!important; display:block'>ORDER</p>",
    "<p style='visibility:hidden'>ORDER</p>",
    "<p style='opacity:0'>ORDER</p>",
    "<p style='opacity:0.01'>ORDER</p>",
    "<p style='opacity: .0'>ORDER</p>",
    "<p style='font-size:0'>ORDER</p>",
    "<p style='font-size: 1px'>ORDER</p>",
    "<p style='font-size:0.01em'>ORDER</p>",
    "<p style='color:transparent'>ORDER</p>",
    "<p style='color:#fff;background:#ffffff'>ORDER</p>",
    "<p style='color:white;background-color:#FFF'>ORDER</p>",
    "<p style='position:absolute;left:-9999px'>ORDER</p>",
    "<p style='position:fixed;top:-200em'>ORDER</p>",
    "<p style='text-indent:-99999px'>ORDER</p>",
    "<p style='clip:rect(0,0,0,0);position:absolute'>ORDER</p>",
    "<p style='clip-path: inset(100%)'>ORDER</p>",
    "<p style='height:0;overflow:hidden'>ORDER</p>",
    "<p style='transform:scale(0)'>ORDER</p>",
    "<div style='display:none'><div style='display:block'><p>ORDER</p></div></div>",
    "<p>fine <span style='display:none'>ORDER</span> too</p>",
    "<dialog><p>ORDER</p></dialog>",
    "<!-- ORDER -->",
    "<!--[if IE]><p>ORDER</p><![endif]-->",
    "<script>ORDER</script>",
    '<script type=\'application/ld+json\'>{"articleBody": "ORDER"}</script>',
    "<style>p::after{content:'ORDER'}</style>",
    "<template><p>ORDER</p></template>",
    "<noscript><p>ORDER</p></noscript>",
    "<iframe srcdoc='ORDER'>ORDER</iframe>",
    "<object>ORDER</object>",
    "<svg><text>ORDER</text></svg>",
    "<input type=hidden value=ORDER>",
    "<img alt='ORDER' src=x>",
    "<p title='ORDER' data-x='ORDER' aria-label='ORDER'>fine</p>",
    "<?php ORDER ?>",
    "<datalist><option>ORDER</option></datalist>",
)


@pytest.mark.parametrize("inside", HIDDEN)
def test_what_a_person_does_not_see_is_not_read(inside: str) -> None:
    assert "ORDER" not in read_markup(article(inside)).text
    # Also where there is no main text, so that all of it is taken.
    assert "ORDER" not in read_markup(f"<p>a</p>{inside}<p>b</p>").text


@pytest.mark.parametrize(
    "rule",
    [
        ".x{display:none}",
        "#y { visibility: hidden }",
        "p.x{opacity:0}",
        ".x.z{display:none}",
        ".other, .x { font-size: 0 }",
        "/* .x{display:block} */ .x{display:none}",
        "@import url(a.css); .x{display:none}",
        "@media print{.x{display:block} .w{color:red}} .x{display:none}",
        ".x{display:block} .x{display:none}",
    ],
)
def test_what_the_page_hides_by_a_rule_is_not_read(rule: str) -> None:
    head = f"<style>{rule}</style>"
    page = read_markup(article("<p class='x z' id=y>ORDER</p>", head))
    assert "ORDER" not in page.text
    assert page.warnings == ("hidden text was left out: 5 characters in 1 places",)


@pytest.mark.parametrize(
    "rule",
    [
        "@media print{.x{display:none}}",
        "@supports (x:y){@media print{.x{display:none}}}",
        ".x{display:none} .x{display:block}",
        ".x .z{display:none}",
        ".x:hover{display:none}",
        ".xx{display:none}",
        "p.q{display:none}",
        "body{opacity:0}",
        "html{display:none}",
        ".x{display:none",
        "}}}}",
        "",
    ],
)
def test_what_a_rule_does_not_always_hide_is_read(rule: str) -> None:
    head = f"<style>{rule}</style>"
    page = read_markup(article("<p class='x z' id=y>SHOWN</p>", head))
    assert "SHOWN" in page.text
    assert page.warnings == ()


@pytest.mark.parametrize(
    "style",
    [
        "", "display:block", "opacity:1", "opacity:0.5", "font-size:12px", "font-size:small",
        "color:#fff", "color:white;background:black", "left:-10px", "height:0", "overflow:hidden",
        "width:100px;overflow:hidden", "visibility:visible", "font-size:1em", "margin-left:-20px",
        ";;;:::", "x", "top:50%", "left:-webkit-calc(1px)",
    ],
)  # fmt: skip
def test_what_is_seen_is_not_taken_for_hidden(style: str) -> None:
    assert not hides(declarations(style))
    assert "SHOWN" in read_markup(article(f"<p style='{style}'>SHOWN</p>")).text


def test_the_text_behind_something_hidden_stays() -> None:
    page = read_markup("<p>one <b hidden>ORDER</b>two <script>x</script>three</p>")
    assert page.text.split() == ["one", "two", "three"]


def test_a_page_without_main_text_is_read_whole() -> None:
    page = read_markup("<title> A \n list </title><ul><li>one<li>two</ul><div>three<br>four</div>")
    assert page.title == "A list"
    assert page.text == snapshot("""\
one
two
three
four\
""")


def test_a_page_of_a_video_is_its_title_and_description() -> None:
    page = read_markup(
        "<html><head><title>Tides - YouTube</title>"
        "<meta property='og:description' content='How the moon\n pulls the sea.'>"
        "<meta name=description content='Other'></head><body><div id=player></div>"
        "<script>var ytInitialData = {};</script></body></html>"
    )
    assert page.title == "Tides - YouTube"
    assert page.text == "How the moon pulls the sea."


@pytest.mark.parametrize(
    "data", [b"", b" \n", b"<html></html>", b"<script>x</script>", b"<!-- x -->", b"<p hidden>x"]
)
def test_a_page_without_text_is_unreadable(data: bytes) -> None:
    with pytest.raises(FetchFailure, match="no text was found") as stop:
        read(data)
    assert stop.value.why.reason == "unreadable"


def test_a_page_made_to_be_slow_is_read_plainly() -> None:
    page = read(b"<table><tr><td>" * 400 + b"x" + b"<p>word" * 40_000)
    assert "word" in page.text
    assert page.warnings[0].startswith("it is too large to tell its main text")


def test_what_is_nested_too_deep_to_be_read_is_said_to_be_missing() -> None:
    page = read(b"<p>first" + b"<div>" * 3_000 + b"last")
    assert page.text == "first"
    assert page.warnings[-1] == "it is nested too deep to be read whole; its rest is missing"


def test_a_long_text_is_cut_at_a_line_and_says_so() -> None:
    page = read(b"line of text\n" * 100, "text/plain", limit=100)
    assert page.text == "line of text\n" * 6 + (
        "line of text\n\n[The page goes on; it was cut after 90 of 1,300 characters.]"
    )
    assert page.warnings == ("it was cut after 90 of 1,300 characters",)
    assert read(b"x" * 100, "text/plain", limit=100).text == "x" * 100


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("text/plain", b"a <b>\n\n  c"),
        ("text/markdown", b"# A\n\n<!-- kept -->"),
        ("application/json", b'{"a": [1, 2]}'),
        ("application/problem+json", b"{}"),
        ("application/atom+xml", b"<feed/>"),
        ("text/csv", b"a,b\r\n1,2\r\n"),
        ("", b"no type"),
    ],
)
def test_plain_text_is_as_it_is(kind: str, data: bytes) -> None:
    assert is_page(kind)
    assert read(data, kind).text == data.decode()


def test_types_are_told_apart() -> None:
    for kind in ("image/png", "image/svg+xml"):
        assert is_picture(kind)
        assert not is_page(kind)
    for kind in ("application/zip", "audio/mpeg", "application/octet-stream", "x"):
        assert not is_page(kind)
        assert not is_picture(kind)


def test_a_page_without_a_type_is_looked_at() -> None:
    assert read(b"\n<!DOCTYPE html><p>Hi", "").text == "Hi"
    with pytest.raises(FetchFailure, match="PDF"):
        read(b"%PDF-1.7 ...", "")


def test_what_is_not_text_is_not_read_as_text() -> None:
    with pytest.raises(FetchFailure, match="is not text"):
        read(b"\x7fELF\0\0\0", "text/plain")


def test_a_pdf_is_read_by_who_can() -> None:
    def failing(data: bytes) -> str:
        raise UsageError("it wants a password")

    def using(read_pdf: object) -> PageText:
        return read_page(b"%PDF", "application/pdf", "", read_pdf=read_pdf, limit=9)  # type: ignore[arg-type]

    assert using(lambda data: data.decode()).text == "%PDF"
    with pytest.raises(FetchFailure, match="cannot be read: it wants a password"):
        using(failing)
    with pytest.raises(FetchFailure, match="no text"):
        using(lambda data: " ")
    with pytest.raises(FetchFailure, match="not read here"):
        using(None)


# Charsets.


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("Grüße".encode(), "", "Grüße"),
        ("Grüße".encode("latin-1"), "", "Grüße"),
        ("Grüße €".encode("cp1252"), "iso-8859-1", "Grüße €"),
        ("Привет".encode("cp1251"), "windows-1251", "Привет"),
        ("Привет".encode("koi8-r"), "KOI8-R", "Привет"),
        ("日本語".encode("shift_jis"), "Shift_JIS", "日本語"),
        ("日本語".encode("cp932"), "x-sjis", "日本語"),
        ("中文".encode("gb2312"), "gb2312", "中文"),
        ("中文".encode("big5"), "big5", "中文"),
        ("한국어".encode("euc-kr"), "euc-kr", "한국어"),
        # Names that browsers know and Python does not.
        ("日本語".encode("euc_jp"), "x-euc-jp", "日本語"),
        ("שלום".encode("iso8859-8"), "logical", "שלום"),
        ("Grüße €".encode("cp1252"), "ISO88591", "Grüße €"),
        # Here, names mean a larger set than they say.
        ("①".encode("cp932"), "shift_jis", "①"),
        ("𠀀".encode("gb18030"), "gbk", "𠀀"),
        ("똠".encode("cp949"), "euc-kr", "똠"),
        ("é".encode(), "replacement", "é"),
        ("é".encode(), "x-user-defined", "é"),
        (codecs.BOM_UTF8 + "é".encode(), "latin-1", "é"),
        (codecs.BOM_UTF16_LE + "é".encode("utf-16-le"), "", "é"),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), "", "é"),
        ("é".encode("utf-16-le"), "utf-16", "é"),
        ("é".encode(), "no-such-charset", "é"),
        (b"+ADw-b+AD4-", "utf-7", "+ADw-b+AD4-"),
        (b"6869", "hex", "6869"),
        (b"a", "ü", "a"),
        (b"a", "x\0y", "a"),
        ("<meta charset='windows-1251'>Привет".encode("cp1251"), "", "Привет"),
        (
            "<meta http-equiv=x content='text/html; charset=koi8-r'>Привет".encode("koi8-r"),
            "",
            "Привет",
        ),
        ("<meta charset=utf-16>é".encode(), "", "é"),
        ("<meta charset=latin1>é".encode(), "utf-8", "é"),
    ],
)
def test_text_is_decoded_as_browsers_do(data: bytes, charset: str, text: str) -> None:
    decoded = decode(data, charset, is_markup=True)
    assert decoded.text.endswith(text)
    assert decoded.warnings == ()


def test_what_cannot_be_decoded_is_replaced_and_said() -> None:
    decoded = decode(b"a\xffb\xfe", "utf-8", is_markup=False)
    assert decoded.text == "a\ufffdb\ufffd"
    assert decoded.warnings == ("2 places could not be decoded as utf-8",)


@given(st.binary(max_size=400), st.sampled_from(["", "utf-8", "utf-16", "gb18030", "iso-2022-jp"]))
def test_any_bytes_are_read_or_stopped(data: bytes, charset: str) -> None:
    for kind in ("text/html", "text/plain", ""):
        try:
            page = read(data, kind, charset)
        except FetchFailure:
            continue
        assert page.text.strip()
        assert "\n" not in page.title
        (page.text + page.title).encode()


@given(st.lists(st.sampled_from(HIDDEN + ("<p>", "</div>", "<div>", "seen", "<table>", "<li>"))))
def test_hidden_text_stays_hidden_in_any_surroundings(parts: list[str]) -> None:
    try:
        page = read_markup("".join(parts))
    except FetchFailure:
        return
    assert "ORDER" not in page.text
