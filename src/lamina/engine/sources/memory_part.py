"""Adds a person's memory file as one part of L1.

Laws: it contains exactly the content of the file, and no clock; a change to it is a recorded
reason. A file that cannot be read changes nothing.
"""

from lamina.core.assembly.request_draft import Page
from lamina.core.ports import MemorySource
from lamina.core.text import escape_content
from lamina.core.values.patch import Display, Patch, SystemPartRemove, SystemPartSet
from lamina.engine.sources.secret_screen import SecretScreen
from lamina.errors import LaminaError

MEMORY_PART = "user_memory"


async def update_memory(page: Page, memory: MemorySource, screen: SecretScreen) -> tuple[str, ...]:
    """Write the memory file to the journal, if it differs from the current part; return
    warnings.
    """
    try:
        text = (await memory.read()).strip()
    except LaminaError as error:
        return (f"memory: {error}; what was remembered before still holds",)
    text, warnings = screen.text(text, memory.name, page.state.settings.secrets)
    part = render_memory(text)
    standing = {part.name: part.text for part in page.state.envelope.system}.get(MEMORY_PART, "")
    if part == standing:
        return warnings
    op: SystemPartSet | SystemPartRemove
    if part:
        reason = f"{memory.name} {'changed' if standing else 'was taken up'}"
        op = SystemPartSet(name=MEMORY_PART, text=part, reason=reason)
    else:
        reason = f"{memory.name} is empty now"
        op = SystemPartRemove(name=MEMORY_PART, reason=reason)
    page.transform("lamina.memory", Patch(ops=(op,), display=Display(title=reason)))
    return warnings


def render_memory(text: str) -> str:
    """Return the part as the model reads it; empty if there are no memories."""
    return f"<saved_memories>\n{escape_content(text)}\n</saved_memories>" if text else ""
