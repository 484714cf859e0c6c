"""The system prompt as one text, for people and hooks that want to read it.

Law: it is what the assembler lays out of the same envelope, and is made only when it is looked at.
"""

from msgspec.structs import replace

import lamina.core.text as render
from lamina.core.journal import State, renderer_in
from lamina.core.layers.layout import Layout
from lamina.core.values.envelope import Envelope, SystemParts


def with_compiled_system(envelope: Envelope, state: State, renderer: int | None = None) -> Envelope:
    """The envelope of `state`, or one made of it, whose `system.compiled` has the library that
    stands in it. `renderer` is the one that the request is laid out by, if that is known."""
    items = state.library.items
    renderer = renderer_in(state) if renderer is None else renderer
    layout = Layout(promotion=state.settings.promotion, renderer=renderer)

    def compile_text() -> str:
        order = layout.order_parts(envelope.system)
        blocks = (items[laid.item, laid.version] for laid in envelope.library)
        library = "\n\n".join(render.render_item(item, "attached") for item in blocks)
        texts = [part.text.strip() for part in order.before]
        texts += [f"{render.LIBRARY_HEADER}{library}"] if library else []
        texts += [part.text.strip() for part in order.behind]
        return "\n\n".join(filter(None, texts))

    return replace(envelope, system=SystemParts(envelope.system, compile_text))
