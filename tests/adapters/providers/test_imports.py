"""Who uses Lamina with a client of their own pays for no other vendor's SDK."""

import subprocess
import sys

import pytest
from tests.adapters.providers.vendors import VENDORS

SCRIPT = """
import sys

import anyio

import lamina


async def main():
    session = await lamina.open_session(system="Be brief.", target=sys.argv[1])
    turn = await session.prepare("Hello?")
    turn.request()


anyio.run(main)
heavy = {"openai", "anthropic", "google", "numpy", "httpx2", "fastapi", "pydantic"}
print(*sorted(heavy & set(sys.modules)))
"""


@pytest.mark.parametrize("target", [vendor.target for vendor in VENDORS])
def test_a_request_is_made_without_any_sdk(target: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, target],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")
