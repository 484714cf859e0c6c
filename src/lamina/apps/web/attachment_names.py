"""What goes along with a question: what was attached, and what it mentions."""

from pathlib import Path

from lamina.apps.views.mentions import find_mentions
from lamina.apps.views.options import PromptOptions
from lamina.engine.session.session import Session
from lamina.engine.sources.attachments import Attachable


async def attachments_of(
    session: Session, folder: Path, text: str, attach: tuple[str, ...], essential: tuple[str, ...]
) -> list[Attachable]:
    """The attachments; a file that is both attached and mentioned goes along once."""
    mentioned: tuple[str, ...] = ()
    if session.workspace is not None and "@" in text:
        mentioned = (await find_mentions(text, session.workspace, folder)).paths
    known = {*attach, *essential}
    others = tuple(path for path in mentioned if path not in known)
    return list(PromptOptions(attach=(*attach, *others), essential=essential).attachments())
