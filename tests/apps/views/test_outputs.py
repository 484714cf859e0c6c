"""Commands print and `lamina rpc` answers what they did, to the byte.

Every sixth golden journal is looked at here; `python -m tests.apps.views.outputs --check` takes
all of them.
"""

from pathlib import Path

from tests.apps.views.outputs import digest, outputs, read_expected
from tests.golden.journals import names


def test_no_key_and_no_byte_of_an_output_moves(tmp_path: Path) -> None:
    expected = read_expected()
    differ = [
        name for name, output in outputs(tmp_path, names()[::6]) if digest(output) != expected[name]
    ]
    assert not differ, (
        f"{differ} are not as they were; `python -m tests.apps.views.outputs --show NAME` shows "
        f"one, here and before the change"
    )
