"""What a person writes to attach something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.notes.references import Reference, is_url, read_reference


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("notes/api.md", Reference(kind="path", name="notes/api.md")),
        (" api ", Reference(kind="path", name="api")),
        ("[[api]]", Reference(kind="path", name="api")),
        ("![[api|The API]]", Reference(kind="path", name="api")),
        ("[[api#Errors|see]]", Reference(kind="path", name="api", anchor="Errors")),
        ("[[a] b]]", Reference(kind="path", name="a] b")),
        ("C# notes.md", Reference(kind="path", name="C# notes.md")),
        ("note:a.md", Reference(kind="path", name="a.md", wanted="note")),
        ("pdf:x & y, z.pdf", Reference(kind="path", name="x & y, z.pdf", wanted="pdf")),
        ("a.md#L3-L9", Reference(kind="lines", name="a.md", start=3, end=9)),
        ("a.md#L3-9", Reference(kind="lines", name="a.md", start=3, end=9)),
        ("a.md#L7", Reference(kind="lines", name="a.md", start=7, end=7)),
        ("a.md#L9-L3", Reference(kind="lines", name="a.md", start=3, end=9)),
        ("selection:a.md#L3-L9", Reference(kind="lines", name="a.md", start=3, end=9)),
        ("a.md#L0", Reference(kind="path", name="a.md#L0")),
        ("projects/", Reference(kind="folder", name="projects")),
        ("folder:projects", Reference(kind="folder", name="projects")),
        ("#draft", Reference(kind="tag", name="draft")),
        ("tag:#draft/old", Reference(kind="tag", name="draft/old")),
        ("# Heading", Reference(kind="path", name="# Heading")),
        ("https://Example.org", Reference(kind="url", name="https://example.org/")),
        ("url:example.org/a", Reference(kind="url", name="https://example.org/a")),
        ("https://youtu.be/dQw4w9WgXcQ",
         Reference(kind="url", name="https://www.youtube.com/watch?v=dQw4w9WgXcQ")),
        ("query:a.md#0123456789abcdef",
         Reference(kind="query", name="a.md", digest="0123456789abcdef")),
        ("time: 9:30", Reference(kind="path", name="time: 9:30")),
    ],
)  # fmt: skip
def test_a_reference_means_what_its_form_says(text: str, reference: Reference) -> None:
    assert read_reference(text) == reference


def test_only_pages_are_urls() -> None:
    assert is_url("HTTPS://example.org")
    assert not is_url("httpstuff.md")
    assert not is_url("notes/https/example")


@given(st.text())
def test_any_text_means_something(text: str) -> None:
    assert read_reference(text).kind
