"""What goes to an encoder, and what comes back from a decoder."""

from collections.abc import Mapping

from msgspec import Struct

from lamina.values.envelope import Options
from lamina.values.message import Block
from lamina.values.prompt import Prompt
from lamina.values.settings import Target
from lamina.values.usage import Usage


class Reply(Struct, frozen=True, kw_only=True):
    """A provider's answer in our values. `stop` is the vendor's own word."""

    blocks: tuple[Block, ...]
    usage: Usage
    stop: str
    model: str = ""
    complete: bool = True


class WireRequest(Struct, frozen=True, kw_only=True):
    """All that an encoder needs; `blobs` holds the bytes of the images in the prompt."""

    prompt: Prompt
    target: Target
    options: Options = Options()
    blobs: Mapping[str, bytes] = {}
    cache_key: str = ""
