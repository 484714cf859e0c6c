"""What stands in attached content and should not: secrets and characters that nobody sees.

Laws: a secret in an attachment is replaced before anything else sees it, unless settings say
otherwise; what a person typed is never changed. Each finding is told once per version.
"""

from typing import Literal

from msgspec.structs import replace

from lamina.text import label_of
from lamina.text.characters import describe_hidden, find_hidden
from lamina.text.secrets import describe_secrets, find_secrets, redact
from lamina.values.item import Item

Secrets = Literal["redact", "warn", "off"]


class SecretScreen:
    """Looks through the items of one session."""

    def __init__(self) -> None:
        # What a version came to: its text after it was looked through, and what was told of it.
        self._seen: dict[tuple[str, str, Secrets], str] = {}

    def item(self, item: Item, secrets: Secrets) -> tuple[Item, tuple[str, ...]]:
        """The item without its secrets, and what a person should know of it."""
        key = (item.id, item.version, secrets)
        if item.title != (title := without_secrets(item.title, secrets)):
            item = replace(item, title=title)
        if key in self._seen:
            return self._with(item, self._seen[key]), ()
        text, warnings = item.content, []
        label = label_of(item.id)
        if hidden := find_hidden(text):
            warnings.append(f"{label}: {describe_hidden(hidden)}")
        found = find_secrets(text) if secrets != "off" else ()
        if found and secrets == "redact":
            text = redact(text, found)
            warnings.append(f"{label}: {describe_secrets(found)}, replaced before it is sent")
        elif found:
            warnings.append(f"{label}: {describe_secrets(found)}, sent as it stands")
        self._seen[key] = text if text != item.content else ""
        return self._with(item, self._seen[key]), tuple(warnings)

    def _with(self, item: Item, text: str) -> Item:
        return replace(item, content=text, version="") if text else item


def without_secrets(told: str, secrets: Secrets) -> str:
    """A title, or a line on an item; a note's own words may stand in it."""
    return redact(told, find_secrets(told)) if secrets == "redact" and told else told


def typed_secret_warnings(text: str, secrets: Secrets) -> tuple[str, ...]:
    """What a person should know of what they typed, which is sent as it is."""
    warnings = []
    if secrets != "off" and (found := find_secrets(text)):
        warnings.append(f"the message: {describe_secrets(found)}, sent as it was typed")
    if hidden := find_hidden(text):
        warnings.append(f"the message: {describe_hidden(hidden)}")
    return tuple(warnings)
