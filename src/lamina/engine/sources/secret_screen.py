"""Finds content that a model should not be sent: secrets and invisible characters.

Laws: a secret in anything that was read, or in a tool's result, is replaced before anything else
sees it, unless settings say otherwise; so the model and the journal get the same bytes. It is
detected in the whole text around it, whatever part is sent. A person's typed text is never changed.
A finding is reported once per version.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from lamina.core.text import label_of
from lamina.core.text.characters import describe_hidden, find_hidden
from lamina.core.text.secrets import describe_secrets, find_secrets, redact
from lamina.core.values.agent import Guide, Guides
from lamina.core.values.envelope import SystemPart
from lamina.core.values.item import Excerpt, Item
from lamina.core.values.message import ToolResult, ToolText

Secrets = Literal["redact", "warn", "off"]
# The maximum number of texts that are remembered as clean, or with their secrets replaced.
MAX_TEXTS = 256


class SecretScreen:
    """Screens the texts of one session."""

    def __init__(self) -> None:
        # The text of a version without its secrets; empty if it had none.
        self._texts: dict[tuple[str, str, str, Secrets], str] = {}
        self._titles: dict[tuple[str, Secrets], str] = {}
        self._plain: dict[tuple[str, str, Secrets], str] = {}
        # The guides of the last turn, which are mostly those of the next one.
        self._guides: tuple[tuple[Guide, ...], Secrets, tuple[Guide, ...]] = ((), "redact", ())
        self._guide_texts: dict[tuple[str, str, Secrets], str] = {}

    def item(
        self, item: Item, secrets: Secrets, excerpt: Excerpt | None = None
    ) -> tuple[Item, tuple[str, ...]]:
        """Return the item without its secrets, and warnings about it. `excerpt` is its content, if
        it is a part of something larger.
        """
        key = (item.id, item.version, excerpt.safe if excerpt else "", secrets)
        if item.title != (title := self._title(item.title, secrets)):
            item = replace(item, title=title)
        warnings: list[str] = []
        if key not in self._texts:
            text = item.content
            if characters := find_hidden(text):
                warnings.append(f"{label_of(item.id)}: {describe_hidden(characters)}")
            text, found = _screen(text, label_of(item.id), secrets, excerpt)
            warnings += found
            self._texts[key] = text if text != item.content else ""
        if self._texts[key]:
            item = replace(item, content=self._texts[key], version="")
        return item, tuple(warnings)

    def guides(self, guides: Guides, secrets: Secrets) -> tuple[Guides, tuple[str, ...]]:
        """Return rules and references without their secrets."""
        before, setting, safe_guides = self._guides
        warnings: list[str] = []
        if guides.guides is not before or secrets != setting:
            pairs = [self._guide(guide, secrets) for guide in guides.guides]
            safe_guides = tuple(guide for guide, _ in pairs)
            warnings = [warning for _, found in pairs for warning in found]
            self._guides = (guides.guides, secrets, safe_guides)
        return replace(guides, guides=safe_guides), tuple(warnings)

    def _guide(self, guide: Guide, secrets: Secrets) -> tuple[Guide, list[str]]:
        key, found = (guide.id, guide.text, secrets), list[str]()
        if key not in self._guide_texts:
            self._guide_texts[key], found = _screen(guide.text, label_of(guide.id), secrets)
        text, description = self._guide_texts[key], self._title(guide.description, secrets)
        if (text, description) != (guide.text, guide.description):
            guide = replace(guide, text=text, description=description)
        return guide, found

    def text(self, text: str, label: str, secrets: Secrets) -> tuple[str, tuple[str, ...]]:
        """Return a text of L1, or of a tool, without its secrets."""
        key = (label, text, secrets)
        if (safe := self._plain.get(key)) is not None:
            return safe, ()
        safe, warnings = _screen(text, label, secrets)
        if len(self._plain) >= MAX_TEXTS:
            self._plain.clear()
        # Screened text is clean, and will be screened again.
        self._plain[key] = self._plain[label, safe, secrets] = safe
        return safe, tuple(warnings)

    def parts(
        self, parts: Sequence[SystemPart], secrets: Secrets
    ) -> tuple[tuple[SystemPart, ...], tuple[str, ...]]:
        """Return parts of L1 without their secrets."""
        screened = [self.text(part.text, part.name, secrets) for part in parts]
        return (
            tuple(
                replace(part, text=text) for part, (text, _) in zip(parts, screened, strict=True)
            ),
            tuple(warning for _, warnings in screened for warning in warnings),
        )

    def result(self, result: ToolResult, secrets: Secrets) -> tuple[ToolResult, tuple[str, ...]]:
        """Return a tool's result without its secrets."""
        text, warnings = self.text(result.text, f"the result of {result.name}", secrets)
        return (result if text == result.text else replace(result, text=text)), warnings

    def tool_text(self, tool: ToolText, secrets: Secrets) -> tuple[ToolText, tuple[str, ...]]:
        """Return a planned tool's result without its secrets."""
        text, warnings = self.text(tool.text, f"the result of {tool.name}", secrets)
        return (tool if text == tool.text else replace(tool, text=text)), warnings

    def _title(self, title: str, secrets: Secrets) -> str:
        if (title, secrets) not in self._titles:
            self._titles[title, secrets] = without_secrets(title, secrets)
        return self._titles[title, secrets]


def _screen(
    text: str, label: str, secrets: Secrets, excerpt: Excerpt | None = None
) -> tuple[str, list[str]]:
    """Return a text as it is sent, and warnings about it."""
    if secrets == "off":
        return text, []
    kinds: tuple[str, ...] = ()
    safe = text
    if excerpt is not None and excerpt.secrets:
        kinds, safe = excerpt.secrets, excerpt.safe
    # Text that a mark separates from its neighbours may be a separate secret.
    if findings := find_secrets(safe):
        kinds += tuple(finding.kind for finding in findings)
        safe = redact(safe, findings)
    if not kinds:
        return text, []
    if secrets == "redact":
        return safe, [f"{label}: {describe_secrets(kinds)}, replaced before it is sent"]
    return text, [f"{label}: {describe_secrets(kinds)}, sent as it stands"]


def without_secrets(text: str, secrets: Secrets) -> str:
    """Return a title, or a line about an item, without the secrets that either may quote."""
    return redact(text, find_secrets(text)) if secrets == "redact" and text else text


def typed_secret_warnings(text: str, secrets: Secrets) -> tuple[str, ...]:
    """Return warnings about the text that a person typed, which is sent unchanged."""
    warnings = []
    if secrets != "off" and (findings := find_secrets(text)):
        kinds = [finding.kind for finding in findings]
        warnings.append(f"the message: {describe_secrets(kinds)}, sent as it was typed")
    if characters := find_hidden(text):
        warnings.append(f"the message: {describe_hidden(characters)}")
    return tuple(warnings)
