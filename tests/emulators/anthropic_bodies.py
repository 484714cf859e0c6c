"""Bodies of Anthropic's wire, and a cache they are sent to. A word of these texts is a token."""

from typing import Any

from msgspec.structs import replace

from lamina.adapters.providers.model_book import load_book
from lamina.core.values.settings import Target
from lamina.emulators.anthropic.blocks import MESSAGE_TOKENS
from lamina.emulators.anthropic.cache import AnthropicCache, AnthropicCacheUse
from lamina.emulators.anthropic.checks import check_body

JSON = dict[str, Any]
BOOK = load_book()
# Counted without the factor of the estimate, so that sums can be written by hand.
SONNET = replace(BOOK.find("anthropic:claude-sonnet-5"), token_factor=1.0)
HAIKU = replace(BOOK.find("anthropic:claude-haiku-4-5"), token_factor=1.0)
MARK: JSON = {"type": "ephemeral"}
HOUR: JSON = {"type": "ephemeral", "ttl": "1h"}
PER_MESSAGE = MESSAGE_TOKENS


def words(count: int, word: str = " one") -> str:
    return word * count


def text(said: str | int, mark: JSON | None = None) -> JSON:
    block: JSON = {"type": "text", "text": words(said) if isinstance(said, int) else said}
    return block if mark is None else block | {"cache_control": mark}


def user(*blocks: JSON) -> JSON:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: JSON) -> JSON:
    return {"role": "assistant", "content": list(blocks)}


def body(*messages: JSON, **given: Any) -> JSON:
    return {"model": "claude-sonnet-5", "max_tokens": 64, "messages": list(messages)} | given


def tool(name: str = "clock", about: int = 1_100, mark: JSON | None = None) -> JSON:
    made: JSON = {
        "name": name, "description": words(about),
        "input_schema": {"type": "object", "properties": {}},
    }  # fmt: skip
    return made if mark is None else made | {"cache_control": mark}


class Server:
    """A cache and a clock. Every request is answered at once."""

    def __init__(self, target: Target = SONNET) -> None:
        self.cache = AnthropicCache()
        self.target = target
        self.now = 1_000.0

    def send(
        self, request: JSON, *, after: float = 1.0, answered: bool = True
    ) -> AnthropicCacheUse:
        check_body(request, self.target)
        self.now += after
        account = self.cache.look_up(request, self.target, self.now)
        if answered:
            self.cache.begin(account)
        return account


def figures(account: AnthropicCacheUse) -> tuple[int, int, int]:
    """What was read, what was written, and what was neither."""
    return account.read, account.written, account.fresh


def layered(
    about: int = 1_100, system: str = " one", said: str = " one", model: str = "claude-sonnet-5",
    **given: Any,
) -> JSON:  # fmt: skip
    return body(
        user(text(words(2_000, said), MARK)),
        model=model,
        tools=[tool(about=about, mark=MARK)],
        system=[text(words(3_000, system), MARK)],
        **given,
    )


def sizes() -> tuple[int, int, int]:
    """Tokens up to the end of tools, of system, and of all."""
    server = Server()
    tools = server.send(body(user(text(1)), tools=[tool(mark=MARK)])).written
    return tools, tools + 3_000, tools + 3_000 + 2_000 + PER_MESSAGE
