"""A value that is put anywhere into a file is in the entries, or a problem tells of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.formats.reader import check_laws, take
from tests.formats.samples import OPENCODE, SAMPLES, lines

from lamina.codec import canonical_bytes
from lamina.errors import UsageError

MARK = "mark~7f3a"
Path = tuple[str | int, ...]


def objects_of(name: str) -> list[Any]:
    if name == "opencode":
        return [json.loads(OPENCODE)]
    return [json.loads(piece) for piece in SAMPLES[name].split(b"\n")[:-1]]


def places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    yield path, value
    inner: Any = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    for key, held in inner:
        yield from places(held, (*path, key))


def replaced(value: Any, path: Path, by: Any) -> Any:
    if not path:
        return by
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], by)
    return copy


def marked(value: Any) -> Iterator[Any]:
    """The value with the mark in it, and marks of other kinds instead of it."""
    yield from (MARK, {MARK: 1}, [MARK])
    if isinstance(value, dict):
        yield {**value, MARK: 1}
    if isinstance(value, list):
        yield from ([*value, MARK], [*value, {"type": MARK}])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_value_put_anywhere_into_a_file_is_found_again(name: str) -> None:
    objects = objects_of(name)
    lost = []
    for index, value in enumerate(objects):
        for path, held in places(value):
            for other in marked(held):
                changed = replaced(value, path, other)
                data = lines(*objects[:index], changed, *objects[index + 1 :])
                try:
                    imported = take(data)
                except UsageError:
                    continue  # a single line that is no session any more
                check_laws(imported, data)
                kept = b"".join(map(canonical_bytes, imported.entries)).decode()
                told = any(MARK in problem.detail for problem in imported.problems)
                if MARK not in kept and not told:
                    lost.append((index, path, other))
    assert lost == []
