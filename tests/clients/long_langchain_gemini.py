"""LangChain with Gemini, in an environment of its own: its adapter wants an earlier version of
Google's SDK than Lamina does. Part of `make long`: installing takes minutes."""

import subprocess
import sys
from pathlib import Path
from venv import EnvBuilder

import anyio
from tests.clients.loopback import PICTURE_BASE64

from lamina.emulators.emulator import serve_emulator
from lamina.emulators.gemini.emulator import GeminiEmulator

NEEDS = ("langchain==1.4.7", "langchain-core==1.7.2", "langchain-google-genai==4.4.2")


def test_langchain_chats_streams_calls_and_parses_at_gemini(tmp_path: Path) -> None:
    EnvBuilder(with_pip=False, symlinks=True).create(tmp_path)
    python = tmp_path / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *NEEDS]
    subprocess.run(install, check=True)
    script = Path(__file__).with_name("langchain_gemini.py")
    emulator = GeminiEmulator()

    async def main() -> None:
        async with serve_emulator(emulator) as url:
            await anyio.run_process([str(python), str(script), url, PICTURE_BASE64], stderr=None)

    anyio.run(main)
    assert {row.status for row in emulator.report.rows} == {200}
