"""Drawn sessions send and keep the bytes that they sent and kept when they were first played.

Some of them are played here; `python -m tests.golden.digests --check` plays all.
"""

import pytest
from tests.golden.digests import COUNT, differing, main, read_digests
from tests.golden.wires import TARGETS

CHUNKS = 10
# Every twelfth: 200 of them.
PLAYED = range(0, COUNT, COUNT // 200)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_drawn_sessions_send_and_keep_the_same_bytes_as_ever(chunk: int) -> None:
    differ = differing(PLAYED[chunk::CHUNKS])
    assert not differ, (
        f"the sessions of the seeds {differ} send or keep other bytes; look at the first one with "
        f"`python -m tests.golden.digests --show {differ[0]}`, here and before the change"
    )


def test_every_wire_has_hundreds_of_drawn_sessions() -> None:
    digests = read_digests()
    assert sorted(digests) == list(range(COUNT))
    for target in TARGETS:
        assert sum(digest.target == target.name for digest in digests.values()) > 200


def test_nothing_is_written_unless_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "--write" in capsys.readouterr().err
