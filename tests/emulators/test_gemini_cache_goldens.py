"""What Gemini's cache finds and costs, worked out by hand from the vendor's rules.

One word is one token here, so that every figure can be checked by counting.
"""

from typing import Any

import pytest

from lamina.adapters.providers.model_book import load_book
from lamina.core.ledger import cost_of
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.emulators.gemini.bodies import GeminiRefusal, GenerateBody, read_body
from lamina.emulators.gemini.cache import CachedContent, GeminiCache

OLD = load_book().find("gemini:gemini-2.5-flash")
NEW = load_book().find("gemini:gemini-3.1-pro-preview")
NEXT = load_book().find("gemini:gemini-4-flash")
FIRST = load_book().find("gemini:gemini-2.0-flash")
HOUR = 3600.0


def words(count: int, word: str = "so") -> str:
    return " ".join([word] * count)


def count(text: str) -> int:
    return len(text.split())


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


def body(*texts: str, system: str = "", tools: int = 0, tool: str = "tool") -> GenerateBody:
    """A conversation: the person and the model in turn. A tool is one word: a schema without
    spaces."""
    raw: dict[str, Any] = {
        "contents": [said("model" if at % 2 else "user", text) for at, text in enumerate(texts)]
    }
    if system:
        raw["systemInstruction"] = {"parts": [{"text": system}]}
    if tools:
        raw["tools"] = [
            {"functionDeclarations": [{"name": f"{tool}{number}"} for number in range(tools)]}
        ]
    return read_body(raw, GenerateBody)


class Vendor:
    """One cache, asked at a time of our choice."""

    def __init__(self, target: Target = OLD) -> None:
        self.cache = GeminiCache()
        self.target = target
        self.now = 0.0
        self.missed = ""

    def ask(self, sent: GenerateBody, *, owner: str = "k", target: Target | None = None) -> int:
        """How many tokens of a request come from the cache; it is kept for the next one."""
        read = self.cache.use(sent, target or self.target, owner, count, self.now)
        self.cache.remember(read, self.now)
        self.missed = read.missed
        return read.cached

    def hold(self, sent: GenerateBody, *, ttl: float = HOUR, owner: str = "k") -> CachedContent:
        return self.cache.create(sent, self.target, owner, count, self.now, self.now + ttl)


# -- implicit -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "minimum"), [(FIRST, 2048), (OLD, 2048), (NEW, 4096), (NEXT, 4096)],
    ids=["2.0", "2.5", "3.x", "4"],
)  # fmt: skip
def test_a_prefix_is_found_from_the_minimum_of_its_model_on(target: Target, minimum: int) -> None:
    vendor = Vendor(target)
    for length, found in ((minimum - 1, 0), (minimum, minimum)):
        first = words(length, word=f"w{length}")
        assert vendor.ask(body(first)) == 0
        assert vendor.ask(body(first, "Yes.", "And?")) == found
    assert vendor.missed == ""


def test_a_prefix_below_the_minimum_is_said_to_be() -> None:
    vendor = Vendor()
    vendor.ask(body(words(2000)))
    vendor.ask(body(words(2000), "Yes.", "And?"))
    assert vendor.missed == "2,000 tokens agree; nothing under 2,048 is kept"


def test_each_turn_finds_the_whole_request_before_it() -> None:
    vendor = Vendor()
    talk = [words(3000)]
    sizes = [vendor.ask(body(*talk))]
    for turn in range(4):
        talk += [words(100, f"answer{turn}"), words(50, f"question{turn}")]
        sizes.append(vendor.ask(body(*talk)))
    assert sizes == [0, 3000, 3150, 3300, 3450]


def test_the_same_request_again_reads_all_but_its_last_token() -> None:
    vendor = Vendor()
    assert [vendor.ask(body(words(3000))) for _ in range(2)] == [0, 2999]


def test_a_byte_changed_in_the_tools_loses_everything() -> None:
    vendor = Vendor()
    vendor.ask(body("Hi.", system=words(3000), tools=3))
    assert vendor.ask(body("Hi.", system=words(3000), tools=3, tool="toot")) == 0
    assert vendor.missed == "changed at tools"


def test_a_byte_changed_in_the_system_instruction_keeps_what_stands_before_it() -> None:
    vendor = Vendor()
    vendor.ask(body("Hi.", system=words(2500) + " old " + words(500), tools=1))
    changed = body("Hi.", system=words(2500) + " new " + words(500), tools=1)
    assert vendor.ask(changed) == 2501
    assert vendor.missed == "changed at systemInstruction"


def test_a_byte_changed_in_a_message_keeps_what_stands_before_it() -> None:
    vendor = Vendor()
    vendor.ask(body(words(2100), words(100, "yes"), "And?"))
    assert vendor.ask(body(words(2100), words(100, "no"), "And?")) == 2100
    assert vendor.missed == "changed at contents[1]"


def test_a_longer_system_instruction_keeps_the_shorter_one() -> None:
    vendor = Vendor()
    vendor.ask(body("Hi.", system=words(2500)))
    assert vendor.ask(body("Hi.", system=words(2500) + " and " + words(500))) == 2500


def test_the_same_words_of_another_role_are_others() -> None:
    vendor = Vendor()
    vendor.ask(body(words(3000)))
    assert vendor.ask(body("Hi.", system=words(3000))) == 0


def test_the_longest_of_several_prefixes_is_read() -> None:
    vendor = Vendor()
    vendor.ask(body(words(2500), "Yes.", words(500, "one")))
    vendor.ask(body(words(2500), "Yes.", words(500, "two")))
    assert vendor.ask(body(words(2500), "Yes.", words(500, "one"), "Right.", "And?")) == 3001


def test_another_model_and_another_key_have_caches_of_their_own() -> None:
    vendor = Vendor()
    vendor.ask(body(words(5000)))
    assert vendor.ask(body(words(5000), "Yes.", "And?"), target=NEW) == 0
    assert vendor.ask(body(words(5000), "Yes.", "And?"), owner="another") == 0
    assert vendor.missed == "nothing sent before"
    assert vendor.ask(body(words(5000), "Yes.", "And?")) == 5000


def test_a_prefix_lives_for_its_time_and_reading_it_begins_that_anew() -> None:
    vendor = Vendor()
    lifetime = OLD.cache.lifetime_s
    assert lifetime is not None
    vendor.ask(body(words(3000)))
    for _ in range(3):
        vendor.now += lifetime
        assert vendor.ask(body(words(3000), "Yes.", "And?")) >= 3000
    vendor.now += lifetime + 1
    assert vendor.ask(body(words(3000), "Yes.", "And?")) == 0
    assert vendor.missed == "lifetime passed"


def test_a_request_that_was_only_read_is_not_kept() -> None:
    """One that failed leaves nothing."""
    vendor = Vendor()
    vendor.cache.use(body(words(3000)), OLD, "k", count, 0.0)
    assert vendor.ask(body(words(3000), "Yes.", "And?")) == 0


# -- made by hand ---------------------------------------------------------------------------------


def naming(held: CachedContent, *texts: str) -> GenerateBody:
    raw = [said("model" if at % 2 else "user", text) for at, text in enumerate(texts)]
    return read_body({"contents": raw, "cachedContent": held.name}, GenerateBody)


def test_an_explicit_cache_is_read_from_the_first_request_on() -> None:
    vendor = Vendor()
    held = vendor.hold(body(system=words(3000), tools=2))
    assert held.tokens == 3002
    read = vendor.cache.use(naming(held, "Hi there."), OLD, "k", count, 1.0)
    assert (read.input, read.cached, read.explicit) == (3004, 3002, 3002)


def test_an_explicit_cache_below_the_minimum_is_refused() -> None:
    vendor = Vendor()
    problem = r"too small\. total_token_count=2047, min_total_token_count=2048$"
    with pytest.raises(GeminiRefusal, match=problem):
        vendor.hold(body(system=words(2047)))
    assert vendor.hold(body(system=words(2048))).tokens == 2048


def test_an_explicit_cache_is_gone_when_its_time_is_over_or_it_was_deleted() -> None:
    vendor = Vendor()
    held = vendor.hold(body(system=words(3000)), ttl=100)
    assert vendor.cache.find(held.name, "k", 100.0) == held
    assert vendor.cache.find(held.name, "k", 100.1) is None
    other = vendor.hold(body(system=words(3000)))
    vendor.cache.delete(other, 10.0)
    assert vendor.cache.find(other.name, "k", 10.0) is None


def test_an_explicit_cache_is_seen_with_its_own_key_only() -> None:
    vendor = Vendor()
    held = vendor.hold(body(system=words(3000)))
    assert vendor.cache.find(held.name, "another", 0.0) is None
    assert vendor.cache.list_contents("another", 0.0) == []
    assert vendor.cache.list_contents("k", 0.0) == [held]


def test_a_renewed_cache_lives_from_then_on() -> None:
    vendor = Vendor()
    held = vendor.hold(body(system=words(3000)), ttl=100)
    renewed = vendor.cache.renew(held, 90.0, 190.0)
    assert vendor.cache.find(held.name, "k", 150.0) == renewed
    assert vendor.cache.find(held.name, "k", 191.0) is None


def test_storage_is_paid_by_token_and_hour_while_the_cache_lives() -> None:
    vendor = Vendor()
    held = vendor.hold(body(system=words(1_000_000)), ttl=2 * HOUR)
    # A dollar per million tokens and hour.
    assert vendor.cache.storage_fee(held, HOUR / 2) == pytest.approx(0.5)
    assert vendor.cache.storage_fee(held, 9 * HOUR) == pytest.approx(2.0)
    dropped = vendor.cache.delete(held, HOUR)
    assert vendor.cache.storage_fee(dropped, 9 * HOUR) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("target", "paid"), [(FIRST, 0.25 * 0.1), (OLD, 0.1 * 0.3), (NEW, 0.1 * 2.0)],
    ids=["2.0: 75% off", "2.5: 90% off", "3.x: 90% off"],
)  # fmt: skip
def test_what_is_read_costs_less_by_the_share_of_its_model(target: Target, paid: float) -> None:
    usage = Usage(input=100_000, cached=100_000)
    assert cost_of(usage, target) == pytest.approx(paid / 10)


def test_behind_an_explicit_cache_nothing_else_is_found() -> None:
    """No rule of the vendor's promises more than what the cache holds."""
    vendor = Vendor()
    held = vendor.hold(body(system=words(3000)))
    assert vendor.ask(naming(held, words(2500))) == 3000
    assert vendor.ask(naming(held, words(2500), "Yes.", "And?")) == 3000
    assert vendor.ask(body(words(2500), system=words(3000))) == 0
