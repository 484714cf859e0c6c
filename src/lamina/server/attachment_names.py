"""What goes along with a question: what was attached, and what it mentions."""

from pathlib import Path

from lamina.faces.mentions import find_mentions
from lamina.faces.options import PromptOptions
from lamina.session.session import Session
from lamina.sources.attachments import Attachable


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
