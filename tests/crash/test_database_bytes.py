"""Every byte of a database changed, or all from there on gone: whoever reads is told, or gets what
was written; nothing else happens."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import anyio
import pytest
from tests.crash.database import (
    DATABASE,
    LOG,
    Image,
    check_going_on,
    check_reading,
    closed_image,
    crashed_image,
)
from tests.crash.sample import store_in
from tests.crash.scale import luck, much, tally

FLIPS = (0x01, 0x20, 0x80, 0xFF)
PAGE = 4096


def flips(data: bytes, chance: Random, count: int) -> Iterator[bytes]:
    """The file with one byte changed; most of them where there is something, many where pages
    begin and say what is in them."""
    places = [at for at, byte in enumerate(data) if byte]
    heads = [at for at in range(len(data)) if at % PAGE < 40 or at < 110]
    for _ in range(count):
        changed = bytearray(data)
        at = chance.choice(chance.choice((places, places, heads, range(len(data)))))
        changed[at] ^= chance.choice((*FLIPS, chance.randrange(1, 256)))
        yield bytes(changed)


async def check(folder: Path, image: Image, name: str, data: bytes) -> tuple[int, int]:
    """How many sessions could be read, and gone on with."""
    image.put(folder, {name: data})
    store = store_in(folder, "sqlite", wait=0.0)
    read = await check_reading(store, image)
    if list(image.files) == [DATABASE]:
        assert (folder / DATABASE).read_bytes() == data, "reading has changed the file"
    return read, await check_going_on(store, image)


@pytest.mark.parametrize("number", range(much(1, 8)))
@pytest.mark.parametrize("name", [DATABASE, LOG])
def test_a_changed_byte_never_makes_an_entry_and_never_goes_unsaid(
    name: str, number: int, tmp_path: Path
) -> None:
    image = closed_image() if name == DATABASE else crashed_image()
    chance = luck(f"database flips {name} {number}")

    async def body() -> None:
        whole = 0
        count = much(120, 500)
        for data in flips(image.files[name], chance, count):
            try:
                read, _ = await check(tmp_path, image, name, data)
            except BaseException:
                tally["crashes"] += 1
                raise
            whole += read == 2
            tally[f"bytes flipped in {name}"] += 1
        # Most bytes are those of lines, and cost themselves.
        assert whole > count / 2 or name == LOG

    anyio.run(body)


def test_a_database_that_ends_at_any_page_is_an_error_that_says_so(tmp_path: Path) -> None:
    image = closed_image()
    data = image.files[DATABASE]
    ends = [*range(PAGE, len(data), PAGE), *range(1, len(data), much(4_999, 211))]

    async def body() -> None:
        for end in ends:
            read, _ = await check(tmp_path, image, DATABASE, data[:end])
            # SQLite takes a last page that is not whole for what there is of it.
            assert read < 2 or end % PAGE, end
            tally["databases cut off"] += 1

    anyio.run(body)
