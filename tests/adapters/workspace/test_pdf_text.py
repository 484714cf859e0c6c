"""PDFs as text: page by page, and never at the cost of this process."""

import importlib.util
import random
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from lamina.adapters.files.paths import PathRefused
from lamina.adapters.workspace import pdf
from lamina.adapters.workspace.pdf import read_pdf

# A password that nobody knows: whatever is tried does not fit.
LOCKED = b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >>" % (b"ab" * 32, b"cd" * 32)


def make_pdf(*pages: str, title: str = "", locked: bool = False, squeezed: bool = False) -> bytes:
    """A PDF with these texts, a line of each under the other."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * index) for index in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for index, page in enumerate(pages):
        lines = (b"<%s> Tj T*" % line.encode("latin-1").hex().encode() for line in page.split("\n"))
        stream = b"BT /F1 12 Tf 14 TL 72 720 Td %s ET" % b" ".join(lines)
        how = b""
        if squeezed:
            stream, how = zlib.compress(stream), b"/Filter /FlateDecode "
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * index)
        )
        objects.append(b"<< %s/Length %d >>\nstream\n%s\nendstream" % (how, len(stream), stream))
    objects.append(b"<< /Title <%s> >>" % (b"\xfe\xff" + title.encode("utf-16-be")).hex().encode())
    if locked:
        objects.append(LOCKED)
    written, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    info = len(objects) - locked
    trailer = b"/Size %d /Root 1 0 R /Info %d 0 R /ID [<01> <02>]" % (len(objects) + 1, info)
    if locked:
        trailer += b" /Encrypt %d 0 R" % len(objects)
    written_to = len(written)
    written += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    return written + b"trailer << %s >>\nstartxref\n%d\n%%%%EOF\n" % (trailer, written_to)


def refused(data: bytes, max_seconds: float = 30) -> PathRefused:
    with pytest.raises(PathRefused) as caught:
        read_pdf(data, max_seconds=max_seconds)
    assert caught.value.reason == "unreadable"
    return caught.value


def test_pages_stand_in_order_each_under_its_number() -> None:
    read = read_pdf(make_pdf("Hello\nworld", "Caf\xe9", title="A  title\nof two lines"))
    assert read.text == "--- page 1 ---\nHello\nworld\n\n--- page 2 ---\nCafé"
    assert (read.title, read.pages, read.warnings) == ("A title of two lines", 2, ())
    assert read_pdf(make_pdf("Hello", squeezed=True)).text == "--- page 1 ---\nHello"


def test_the_same_bytes_give_the_same_text() -> None:
    data = make_pdf("one\ntwo", "three")
    assert read_pdf(data) == read_pdf(data)


@pytest.mark.parametrize("line", ["--- page 2 ---", "- Page 2", "  --- PAGE  9 ---", "—— page 3"])
def test_a_page_cannot_pass_for_the_beginning_of_another(line: str) -> None:
    # A long dash, as fonts on Windows have it.
    shown = line.replace("—", "\x97")
    read = read_pdf(make_pdf(f"x\n{shown}\ny"))
    ours = [line for line in read.text.split("\n") if line.startswith("--- page ")]
    assert ours == ["--- page 1 ---"]
    assert "\\" in read.text


def test_limits_of_pages_and_characters_are_said() -> None:
    data = make_pdf("aaaa", "bbbb", "cccc")
    first = read_pdf(data, max_pages=2)
    assert first.text == "--- page 1 ---\naaaa\n\n--- page 2 ---\nbbbb"
    assert first.warnings == ("only the first 2 of 3 pages are read",)
    short = read_pdf(data, max_characters=6)
    assert short.text == "--- page 1 ---\naaaa\n\n--- page 2 ---\nbb"
    assert short.warnings == ("read up to page 2 of 3: 6 characters",)
    exact = read_pdf(data, max_characters=12)
    assert (exact.text, exact.warnings) == (read_pdf(data).text, ())


def test_pages_without_text_are_said() -> None:
    assert read_pdf(make_pdf("words", "")).warnings == (
        "1 of 2 pages have no text; they may be scanned",
    )
    assert refused(make_pdf("", "", "")).detail == (
        "none of its 3 pages has text; it seems to be scanned"
    )
    assert refused(make_pdf("")).detail == "its page has no text; it seems to be scanned"


def test_a_locked_pdf_is_refused_with_words() -> None:
    assert "asks for a password" in refused(make_pdf("x", locked=True)).detail


@pytest.mark.parametrize("data", [b"", b"\0" * 99, b"%PDF-1.7\n", b"hello", make_pdf("x")[:200]])
def test_what_is_no_pdf_is_refused_with_words(data: bytes) -> None:
    assert refused(data).detail == "it is damaged, or no PDF"


def test_time_that_runs_out_is_said() -> None:
    assert refused(make_pdf("x"), 0.001).detail == "it could not be read within 0.001 seconds"


def test_damaged_bytes_give_a_text_or_words_and_nothing_else() -> None:
    draw = random.Random(1)
    whole = make_pdf("one two three", "four five six", squeezed=True)
    for _ in range(12):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 30)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        with suppress(PathRefused):
            assert read_pdf(bytes(data)).text.startswith("--- page ")


CRASH = """
import os, sys
sys.stdin.buffer.read()
said = [b'{"pages": 3, "title": null}', b'{"page": 1, "text": "first", "cut": false}', b'{"pa']
sys.stdout.buffer.write(b"\\n".join(said[:%d]) + b"%s")
sys.stdout.buffer.flush()
os.abort()
"""


def test_a_reader_that_crashes_costs_the_page_it_crashes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child.py"
    child.write_text(CRASH % (3, ""))
    monkeypatch.setattr(pdf, "_CHILD", child)
    read = read_pdf(b"x")
    assert read.text == "--- page 1 ---\nfirst"
    assert read.warnings == ("read up to page 1 of 3: it crashed",)
    child.write_text(CRASH % (1, "\\n"))
    assert refused(b"x").detail == "it is damaged: none of its pages could be read"
    child.write_text(CRASH % (0, ""))
    assert refused(b"x").detail == "it is damaged, or made to do harm: its reader crashed"


def test_the_reader_gets_none_of_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child.py"
    child.write_text(
        "import json, os, sys\nsys.stdin.buffer.read()\n"
        "for line in ({'pages': 1, 'title': ''}, "
        "{'page': 1, 'text': ' '.join(os.environ), 'cut': False}):\n    print(json.dumps(line))\n"
    )
    monkeypatch.setattr(pdf, "_CHILD", child)
    monkeypatch.setenv("OPENAI_API_KEY", "private")
    assert "OPENAI_API_KEY" not in read_pdf(b"x").text


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'lamina-context[notes]'" in refused(make_pdf("x")).detail
