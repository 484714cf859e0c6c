"""The three vendors, and sessions that talk to them."""

from pathlib import Path
from typing import Any

import pytest
from tests.adapters.providers.strict import Vendor, png
from tests.adapters.providers.strict_anthropic import Anthropic
from tests.adapters.providers.strict_gemini import Gemini
from tests.adapters.providers.strict_openai import OpenAI

import lamina
from lamina.engine.session.session import Session

openai, anthropic, gemini = OpenAI(), Anthropic(), Gemini()
VENDORS: tuple[Vendor, ...] = (openai, anthropic, gemini)

each_vendor = pytest.mark.parametrize(
    "vendor", VENDORS, ids=[vendor.target.partition(":")[0] for vendor in VENDORS]
)

WEATHER = lamina.ToolDefinition(
    name="weather",
    description="The weather in a city.",
    parameters={
        "type": "object",
        "properties": {"cityName": {"type": "string"}},
        "required": ["cityName"],
    },
)
# No description, no parameters: what vendors want is filled in.
CLOCK = lamina.ToolDefinition(name="clock")


class ClockFake:
    def now(self) -> float:
        return 1_794_000_000.0


async def open_with(vendor: Vendor, folder: Path, **settings: Any) -> Session:
    """A session with a note and a picture in its workspace."""
    (folder / "api.md").write_text("GET /v2/cities lists cities.\n", "utf-8")
    (folder / "plan.png").write_bytes(png())
    given: dict[str, Any] = {
        "system": "You are terse.",
        "tools": (WEATHER, CLOCK),
        "clock": ClockFake(),
    }
    return await lamina.open_session(target=vendor.target, workspace=folder, **(given | settings))
