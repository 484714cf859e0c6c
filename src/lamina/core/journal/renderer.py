"""Which renderer laid out a request, and which one a session goes on with.

Law: a session keeps the one that its last request was laid out by, until its prefix is dead anyway.
"""

from lamina.core.journal.state import State
from lamina.core.values.entry import RENDERER, RENDERERS, RequestEntry, SessionEntry


def known_renderer(request: RequestEntry, header: SessionEntry) -> int:
    """The renderer of a request; today's, if its own is one that this version does not have."""
    renderer = request.renderer or header.renderer
    return renderer if renderer in RENDERERS else RENDERER


def renderer_in(state: State) -> int:
    """The renderer that the next request goes on with: that of the last one sent."""
    last = state.requests.sent
    return RENDERER if last is None else known_renderer(last, state.session)
