"""Other people's clients at emulated vendors, unmodified: what they share."""

import gc
import warnings
from base64 import b64encode
from collections.abc import Awaitable, Callable

import anyio
from tests.adapters.providers.strict import png

from lamina.emulators.emulator import Emulator, serve_emulator

KEY = "sk-tests-0123456789abcdefghij"
SYSTEM = "You answer in few words."
# Above every vendor's minimum for a cache.
LONG = "The tide table of the harbour, with the hours of high and of low water. " * 400
PICTURE = png()
PICTURE_BASE64 = b64encode(PICTURE).decode()
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}


def meet(emulator: Emulator, use: Callable[[str], Awaitable[None]]) -> None:
    """Runs `use` with the address of an emulator. Frameworks keep their connections for good, and
    warn of it: what they leave goes here, and not in the middle of another test."""

    async def main() -> None:
        async with serve_emulator(emulator) as url:
            await use(url)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        anyio.run(main)
        gc.collect()
