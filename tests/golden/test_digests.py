"""Drawn sessions send and keep the bytes that they sent and kept when they were first played.

Some of them are played here, with the renderer of then and with today's; `python -m
tests.golden.digests --check` plays all.
"""

import pytest
from tests.golden.digests import COUNT, FILES, differing, main, read_digests
from tests.golden.wires import TARGETS

from lamina.core.values.entry import RENDERER

CHUNKS = 10
# Every twelfth and every twenty-fourth: 200 and 100 of them.
PLAYED = {2: range(0, COUNT, COUNT // 200), 3: range(5, COUNT, COUNT // 100)}


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("renderer", PLAYED)
def test_drawn_sessions_send_and_keep_the_same_bytes_as_ever(renderer: int, chunk: int) -> None:
    differ = differing(PLAYED[renderer][chunk::CHUNKS], renderer)
    assert not differ, (
        f"the sessions of the seeds {differ} send or keep other bytes; look at the first one with "
        f"`python -m tests.golden.digests --renderer {renderer} --show {differ[0]}`, here and "
        "before the change"
    )


def test_the_present_renderer_has_a_file() -> None:
    assert max(FILES) == RENDERER
    assert [*PLAYED] == [*FILES]


@pytest.mark.parametrize("renderer", FILES)
def test_every_wire_has_hundreds_of_drawn_sessions(renderer: int) -> None:
    digests = read_digests(renderer)
    assert sorted(digests) == list(range(COUNT))
    for target in TARGETS:
        assert sum(digest.target == target.name for digest in digests.values()) > 200


def test_nothing_is_written_unless_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "--write" in capsys.readouterr().err
