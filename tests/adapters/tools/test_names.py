"""Names towards a model: letters that every provider takes, and no two tools of one name."""

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lamina.adapters.tools.offered_tool import exposed_name
from lamina.core.values.item import tool_id

# Letters that make trouble at the seams, and long names.
NAMES = st.text(alphabet="ab_-/ é", min_size=1, max_size=8) | st.text(
    "a_", min_size=55, max_size=70
)
PAIRS = st.tuples(NAMES, NAMES)


def test_a_clean_name_is_the_server_and_the_tool() -> None:
    assert exposed_name("github", "search_issues") == "github__search_issues"
    assert exposed_name("a", "b__c") == "a__b__c"


def test_any_other_name_gets_a_digest_and_stays_readable() -> None:
    assert re.fullmatch(r"my_server_get_it_[0-9a-f]{16}", exposed_name("my server", "get.it"))
    assert re.fullmatch(r"tool_[0-9a-f]{16}", exposed_name("日本", "語"))
    assert len(exposed_name("s", "t" * 200)) == 64


@given(PAIRS)
def test_every_name_can_be_sent(pair: tuple[str, str]) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", exposed_name(*pair))


@settings(max_examples=300)
@given(st.lists(PAIRS, unique=True, max_size=60))
@example([("a_", "b"), ("a", "_b"), ("a__b", "c"), ("a", "b__c"), ("a_", "_b")])
@example([("a b", "c"), ("a", "b c"), ("a/b", "c"), ("a_b", "c"), ("a", "b_c")])
def test_no_two_tools_have_one_name_and_none_has_one_id(pairs: list[tuple[str, str]]) -> None:
    assert len({exposed_name(*pair) for pair in pairs}) == len(pairs)
    assert len({tool_id(*pair) for pair in pairs}) == len(pairs)


@given(PAIRS, PAIRS)
def test_a_clean_name_reads_back_and_no_other_name_passes_for_one(
    pair: tuple[str, str], other: tuple[str, str]
) -> None:
    name = exposed_name(*pair)
    server, seam, tool = name.partition("__")
    if seam:
        assert (server, tool) == pair
    # A name that was given out cannot be had by calling a server or a tool so.
    assert exposed_name(other[0], name) != name


def test_the_id_of_a_simple_tool_is_its_server_and_its_name() -> None:
    assert tool_id("github", "search") == "tool:github/search"
    assert tool_id("a/b", "c") != tool_id("a", "b/c")
    assert tool_id("a%2Fb", "c") != tool_id("a/b", "c")
