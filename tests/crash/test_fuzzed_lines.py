"""Lines that nobody wrote: reading them raises nothing and still finds what is whole."""

import json
from collections.abc import Callable, Iterator
from random import Random

import pytest
from tests.crash.checks import check_covered, lines_of
from tests.crash.sample import sample_journal
from tests.crash.scale import SEED, luck, much, tally

from lamina.core.journal import path_to, read_journal, replay_repaired
from lamina.core.journal.lines import read_lines, write_line
from lamina.errors import LaminaError

BATCH = 100
# Values that fit no field, or only just.
ODD: tuple[bytes, ...] = (
    b"null", b"true", b"0", b"-1", b"1.5", b'""', b"[]", b"{}", b"1e999", b"-1e400", b"NaN",
    b"Infinity", b"18446744073709551616", b"-9223372036854775809", b"9" * 400, b"9" * 5_000,
    b'"\\ud800"', b'"\\udfff\\ud800"', b'"\\u0000"', '"\u2028\u2029"'.encode(), b'"\xff"', b"\0",
    b'"000000"', b'"000001"', b'"0000ff"', b'"-1"', b'"0x1"', b'" 1 "', b'"1_0"', b'"ffffffffff"',
    b'"tool"', b'"user"', b'"assistant"', b'[[]]', b'[{}]', b'[null]', b'{"a":1,"a":2}',
)  # fmt: skip
DEEP = (b"[", b"]"), (b'{"a":', b"}")
Value = None | bool | int | float | str | list[object] | dict[str, object]


def fuzz(chance: Random, good: list[bytes]) -> Iterator[bytes]:
    """One batch: mostly good lines, and what the makers make of them."""
    start = chance.randrange(len(good))
    for step in range(BATCH):
        line = good[(start + step) % len(good)]
        if step == 0 and chance.random() < 0.7:
            yield good[0]
        elif chance.random() < 0.5:
            yield line
        else:
            yield chance.choice(MAKERS)(chance, line, good)


# -- makers of lines -----------------------------------------------------------------------------


def mutated(chance: Random, line: bytes, good: list[bytes]) -> bytes:
    """Bytes changed, put in, taken out; the checksum no longer fits."""
    made = bytearray(line)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(made)) if made else 0
        match chance.randrange(4):
            case 0:
                made[at : at + 1] = chance.randbytes(1)
            case 1:
                made[at:at] = chance.randbytes(chance.randint(1, 9))
            case 2:
                del made[at : at + chance.randint(1, 40)]
            case _:
                made[at:at] = chance.choice(ODD)
    return bytes(made)


def random_bytes(chance: Random, line: bytes, good: list[bytes]) -> bytes:
    return chance.randbytes(chance.choice((0, 1, 20, 300))) + b"\n"


def doubled(chance: Random, line: bytes, good: list[bytes]) -> bytes:
    return line + line


def out_of_order(chance: Random, line: bytes, good: list[bytes]) -> bytes:
    return chance.choice(good)


def joined(chance: Random, line: bytes, good: list[bytes]) -> bytes:
    return line.rstrip(b"\n") + chance.choice(good)


def mutated_and_signed(chance: Random, line: bytes, good: list[bytes]) -> bytes:
    """The bytes are changed, and the checksum is made to fit."""
    return sign(mutated(chance, _body(line), good).replace(b"\n", b" ") or b"{}")


def odd_value(chance: Random, line: bytes, good: list[bytes]) -> bytes:
    """One value somewhere in the entry is another, with a checksum that fits."""
    entry = json.loads(_body(line))
    spot = f"@{chance.getrandbits(60)}@"
    places = list(_places(entry))
    holder, key = chance.choice(places)
    holder[key] = spot
    odd = chance.choice(ODD)
    if chance.random() < 0.02:
        before, after = chance.choice(DEEP)
        deep = chance.choice((50, 400, 950, 1_000, 3_000, much(3_000, 100_000)))
        odd = before * deep + b"0" + after * deep
    dumped = json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode()
    return sign(dumped.replace(b'"%b"' % spot.encode(), odd))


def moved_value(chance: Random, line: bytes, good: list[bytes]) -> bytes:
    """A value of one entry stands in another."""
    entry, other = json.loads(_body(line)), json.loads(_body(chance.choice(good)))
    holder, key = chance.choice(list(_places(entry)))
    source, name = chance.choice(list(_places(other)))
    holder[key] = source[name]
    return sign(json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode())


def other_tree(chance: Random, line: bytes, good: list[bytes]) -> bytes:
    """Ids and parents from a small world: twins, conflicts, cycles, parents that are missing."""
    entry = json.loads(_body(line))
    names = ("000000", "000001", "000002", "000005", "zz", "", "0000ff", entry["id"], None)
    entry["id"] = chance.choice(names[:-1])
    entry["parent"] = chance.choice(names)
    more, skip = chance.choice((0, 0, 1, 3)), chance.choice((0, 0, 1, 10**9))
    dumped = json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode()
    return write_line(dumped, more=more, skip=skip)


def fields_doubled(chance: Random, line: bytes, good: list[bytes]) -> bytes:
    body = _body(line)
    again = chance.choice((b'"id":"000001",', b'"type":"leave",', b'"parent":null,', b'"at":null,'))
    return sign(b"{" + again + body[1:])


def very_long(chance: Random, line: bytes, good: list[bytes]) -> bytes:
    text = chance.choice((b"x", b"{", b'\\"', "\u2028".encode())) * chance.choice((999, 20_000))
    field = b'{"at":1,"data":"%b","id":"%06x","kind":"long","parent":null,"type":"custom"}'
    return sign(field % (text, chance.randrange(999)))


def header_again(chance: Random, line: bytes, good: list[bytes]) -> bytes:
    made = json.loads(_body(good[0]))
    made["id"] = chance.choice(("000000", "000009", "zz"))
    made["parent"] = chance.choice((None, "000000", "000009", "gone"))
    made["session"] = chance.choice(("sample", "another", ""))
    made["format"] = chance.choice((0, 1, 2, 99))
    return sign(json.dumps(made, separators=(",", ":")).encode())


def unknown_type(chance: Random, line: bytes, good: list[bytes]) -> bytes:
    made = json.loads(_body(line))
    made["type"] = chance.choice(("later", "", "x" * 500, "unknown"))
    return sign(json.dumps(made, separators=(",", ":")).encode())


MAKERS: tuple[Callable[[Random, bytes, list[bytes]], bytes], ...] = (
    mutated, random_bytes, doubled, out_of_order, joined, mutated_and_signed, odd_value, odd_value,
    odd_value, moved_value, moved_value, other_tree, other_tree, fields_doubled, very_long,
    header_again, unknown_type,
)  # fmt: skip


def sign(body: bytes) -> bytes:
    return write_line(body)


def _body(line: bytes) -> bytes:
    """The entry of a line, without its checksum."""
    return line[: line.rindex(b',"sum":')] + b"}"


def _places(value: object) -> Iterator[tuple[dict[object, object], object]]:
    """Every spot that holds a value."""
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        for key in keys:
            yield value, key  # type: ignore[misc]
            yield from _places(value[key])


# -- what must hold ------------------------------------------------------------------------------


def check_batch(data: bytes) -> None:
    check_covered(data, list(read_lines(data)))
    journal = read_journal(data, "sample")
    replay_repaired(path_to(journal.leaf, journal.entries))


@pytest.mark.parametrize("part", range(4))
def test_no_line_whatever_makes_reading_raise(part: int) -> None:
    good = [line.raw + b"\n" for line in lines_of(sample_journal())]
    problems: dict[str, str] = {}
    for number in range(much(20_000, 1_000_000) // 4 // BATCH):
        chance = luck(f"fuzz {part} {number}")
        lines = list(fuzz(chance, good))
        tally["fuzzed lines"] += len(lines)
        try:
            check_batch(b"".join(lines))
        except Exception as problem:  # noqa: BLE001 - every kind of problem is told once
            tally["crashes"] += 1
            kind = f"{type(problem).__name__}: {str(problem)[:70]}"
            if kind not in problems:
                problems[kind] = f"seed {SEED}, batch {part}/{number}: {smallest(lines)!r}"
    assert not problems, "\n".join(f"{kind}\n  {where}" for kind, where in problems.items())


def smallest(lines: list[bytes]) -> bytes:
    """The lines without those that the problem does not need."""

    def fails(some: list[bytes]) -> bool:
        try:
            check_batch(b"".join(some))
        except (Exception, LaminaError):  # noqa: BLE001 - any problem will do
            return True
        return False

    at = 0
    while at < len(lines):
        fewer = lines[:at] + lines[at + 1 :]
        if fewer and fails(fewer):
            lines = fewer
        else:
            at += 1
    return b"".join(lines)
