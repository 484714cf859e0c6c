"""One artefact has one id wherever it comes from, and one version per content."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.strategies import texts, thorough

from lamina.core.values.item import (
    Item,
    Picture,
    canonical_url,
    content_version,
    item_id,
    key_of,
    kind_of,
    note_id,
    query_id,
    selection_id,
    tool_id,
    url_id,
)

VIDEO = "dQw4w9WgXcQ"
PICTURE = Picture(digest="0" * 64, media_type="image/png")


@pytest.mark.parametrize(
    "address",
    [
        f"https://youtu.be/{VIDEO}",
        f"http://youtu.be/{VIDEO}?si=abc",
        f"youtu.be/{VIDEO}",
        f"https://youtube.com/watch?v={VIDEO}&t=3",
        f"https://www.youtube.com/watch?t=3&v={VIDEO}",
        f"HTTPS://WWW.YouTube.com/watch?v={VIDEO}#top",
        f"https://m.youtube.com/watch?v={VIDEO}",
        f"https://youtube.com/shorts/{VIDEO}",
        f"https://youtube.com/shorts/{VIDEO}/",
        f"https://www.youtube.com/embed/{VIDEO}?start=1",
        f"https://www.youtube.com/live/{VIDEO}",
        f"https://www.youtube.com/v/{VIDEO}",
        f"https://www.youtube-nocookie.com/embed/{VIDEO}",
        f"https://www.youtube.com:443/watch?v={VIDEO}",
        f"  https://youtu.be/{VIDEO}\n",
    ],
)
def test_a_video_has_one_id_whichever_of_its_addresses_was_pasted(address: str) -> None:
    assert url_id(address) == f"url:https://www.youtube.com/watch?v={VIDEO}"


def test_two_videos_have_two_ids_and_case_in_a_video_id_matters() -> None:
    assert url_id(f"youtu.be/{VIDEO}") != url_id(f"youtu.be/{VIDEO.lower()}")


@pytest.mark.parametrize(
    ("address", "canonical"),
    [
        ("https://Example.COM", "https://example.com/"),
        ("https://Example.com:443/a", "https://example.com/a"),
        ("http://example.com:80", "http://example.com/"),
        ("https://example.com:8443/a", "https://example.com:8443/a"),
        ("example.com/A?b=C&a=1", "https://example.com/A?b=C&a=1"),
        ("HTTP://example.com/x#part", "http://example.com/x"),
        ("https://example.com/a%20b?q=%C3%A9", "https://example.com/a%20b?q=%C3%A9"),
        ("https://youtube.com/@channel", "https://youtube.com/@channel"),
        ("https://youtube.com/watch?v=short", "https://youtube.com/watch?v=short"),
        ("https://Me:Pass@example.com/", "https://Me:Pass@example.com/"),
        ("https://notyoutu.be/dQw4w9WgXcQ", "https://notyoutu.be/dQw4w9WgXcQ"),
    ],
)
def test_an_address_is_kept_whole_apart_from_the_case_of_its_host_and_its_fragment(
    address: str, canonical: str
) -> None:
    assert canonical_url(address) == canonical


hosts = st.sampled_from(["Example.com", "youtu.be", "www.YouTube.com", "a.b:8080", "U:p@h.de"])
pieces = st.sampled_from(["", "/", "/watch", f"/{VIDEO}", "/shorts/" + VIDEO, "/a b", "/é", "//x"])
queries = st.sampled_from(["", "?", f"?v={VIDEO}", "?v=1&v=2", "?a=%26", "#x", "?q=é#y"])


@thorough
@given(st.sampled_from(["", "http://", "HTTPS://"]), hosts, pieces, queries)
def test_the_canonical_form_of_an_address_is_its_own_canonical_form(
    scheme: str, host: str, path: str, query: str
) -> None:
    once = canonical_url(scheme + host + path + query)
    assert canonical_url(once) == once


@pytest.mark.parametrize(
    "path",
    [
        "R&D [draft] plan.md",
        "a]b.md",
        "with  spaces .md",
        "🧪 tests/ñandú.md",
        "a&amp;b.md",
        "100%25.md",
        "C:\\notes\\x.md",
        "a:b#L1.md",
        "<tag>.md",
    ],
)
def test_a_path_is_kept_as_it_is_in_the_id(path: str) -> None:
    assert note_id(path) == f"note:{path}"
    assert (kind_of(note_id(path)), key_of(note_id(path))) == ("note", path)


@thorough
@given(texts)
def test_kind_and_key_come_back_from_any_id(key: str) -> None:
    made = item_id("reference", key)
    assert (kind_of(made), key_of(made)) == ("reference", key)


def test_two_line_ranges_of_one_file_are_two_selections_whatever_the_order() -> None:
    first, second = selection_id("a.md", 1, 5), selection_id("a.md", 6, 9)
    assert len({first, second}) == len({second, first}) == 2
    assert first == selection_id("a.md", 1, 5)
    ranges = [(1, 5), (1, 9), (2, 5), (15, 1)]
    assert len({selection_id("a.md", start, end) for start, end in ranges}) == len(ranges)
    assert first != note_id("a.md")


def test_a_query_is_known_by_its_path_and_the_hash_of_its_text() -> None:
    assert query_id("a.md", "LIST x") == query_id("a.md", "LIST x")
    assert query_id("a.md", "LIST x") != query_id("a.md", "LIST y")
    assert query_id("a.md", "LIST x") != query_id("b.md", "LIST x")


def test_tools_of_one_name_on_two_servers_are_two_items() -> None:
    assert tool_id("github", "search") != tool_id("jira", "search")


@pytest.mark.parametrize("address", ["http://[half", "https://[::1"])
def test_an_address_that_cannot_be_read_still_has_an_id(address: str) -> None:
    assert key_of(url_id(address))


# -- versions ------------------------------------------------------------------------------------


@thorough
@given(texts)
def test_the_version_is_the_sha256_of_the_content(content: str) -> None:
    item = Item(id=note_id("a.md"), content=content)
    assert item.version == hashlib.sha256(content.encode()).hexdigest()


def test_a_touched_file_is_not_a_new_version() -> None:
    before = Item(id=note_id("a.md"), content="x", ctime="2020", mtime="2020")
    after = Item(id=note_id("a.md"), content="x", ctime="2020", mtime="2024", title="A")
    assert before.version == after.version


@thorough
@given(texts, texts)
def test_versions_agree_exactly_when_contents_do(left: str, right: str) -> None:
    assert (content_version(left) == content_version(right)) == (left == right)


def test_an_image_more_an_image_less_or_another_image_is_a_new_version() -> None:
    other = replace(PICTURE, digest="1" * 64)
    versions = [
        content_version("x", pictures)
        for pictures in ((), (PICTURE,), (other,), (PICTURE, other), (other, PICTURE))
    ]
    assert len(set(versions)) == len(versions)


def test_text_cannot_pass_for_an_image() -> None:
    spelled = "x\0" + PICTURE.digest
    assert content_version(spelled) != content_version("x", (PICTURE,))


def test_a_version_that_was_recorded_is_kept() -> None:
    assert Item(id=note_id("a.md"), content="x", version="v7").version == "v7"
