"""What should not be in attached content: secrets and invisible characters.

Laws: a secret in an attachment is replaced before anything else sees it, unless settings say
otherwise; what a person typed is never changed. A finding is reported once per version.
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
        # The text of a version without its secrets; empty if it had none.
        self._texts: dict[tuple[str, str, Secrets], str] = {}

    def item(self, item: Item, secrets: Secrets) -> tuple[Item, tuple[str, ...]]:
        """The item without its secrets, and what a person should know about it."""
        key = (item.id, item.version, secrets)
        if item.title != (title := without_secrets(item.title, secrets)):
            item = replace(item, title=title)
        warnings = []
        if key not in self._texts:
            text, label = item.content, label_of(item.id)
            if characters := find_hidden(text):
                warnings.append(f"{label}: {describe_hidden(characters)}")
            findings = find_secrets(text) if secrets != "off" else ()
            if findings and secrets == "redact":
                text = redact(text, findings)
                warnings.append(
                    f"{label}: {describe_secrets(findings)}, replaced before it is sent"
                )
            elif findings:
                warnings.append(f"{label}: {describe_secrets(findings)}, sent as it stands")
            self._texts[key] = text if text != item.content else ""
        if self._texts[key]:
            item = replace(item, content=self._texts[key], version="")
        return item, tuple(warnings)


def without_secrets(text: str, secrets: Secrets) -> str:
    """A title, or a line about an item, either of which may quote it."""
    return redact(text, find_secrets(text)) if secrets == "redact" and text else text


def typed_secret_warnings(text: str, secrets: Secrets) -> tuple[str, ...]:
    """What a person should know about what they typed, which is sent as it is."""
    warnings = []
    if secrets != "off" and (findings := find_secrets(text)):
        warnings.append(f"the message: {describe_secrets(findings)}, sent as it was typed")
    if characters := find_hidden(text):
        warnings.append(f"the message: {describe_hidden(characters)}")
    return tuple(warnings)
