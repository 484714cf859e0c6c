"""A value that is put anywhere into a file is in the entries, or a problem tells of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.adapters.formats.reader import check_laws, take
from tests.adapters.formats.samples import OPENCODE, SAMPLES, lines

from lamina.core.codec import canonical_bytes
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
    for key, field in inner:
        yield from places(field, (*path, key))


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
    losses = []
    for index, value in enumerate(objects):
        for path, old in places(value):
            for other in marked(old):
                new_value = replaced(value, path, other)
                data = lines(*objects[:index], new_value, *objects[index + 1 :])
                try:
                    session = take(data)
                except UsageError:
                    continue  # a single line that is no session any more
                check_laws(session, data)
                entries = b"".join(map(canonical_bytes, session.entries)).decode()
                is_reported = any(MARK in problem.detail for problem in session.problems)
                if MARK not in entries and not is_reported:
                    losses.append((index, path, other))
    assert losses == []
