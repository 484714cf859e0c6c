"""The context as it stands now, as Markdown: what the next request would be made of.

Law: it is laid out from the state, as a request is, so what was applied or added shows at once,
also before the first request. No text in it can close the fence it stands in.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from lamina.apps.views.request_context import write_options
from lamina.core.assembly.budget import assemble_standing, assemble_turn
from lamina.core.layers import measure_layers
from lamina.core.values.prompt import Prompt, Segment
from lamina.engine.session.session import Session, core_of

SHOWN = 600


def context_markdown(session: Session) -> str:
    """The context of a session, with the question under way, if there is one."""
    state, target = session.state, session.target()
    assembler = core_of(session).layouts.assembler_for(target, state.settings.promotion)
    assemble = assemble_standing if state.requests.open is None else assemble_turn
    prompt = assemble(state, assembler)
    lines = [f"# Context for {target.name}", "", f"{prompt.tokens:,} tokens", ""]
    lines += layer_table(prompt)
    if options := write_options(session.envelope.options, ()):
        lines += [f"Options: {options}.", ""]
    if state.inbox:
        waiting = [line for message in state.inbox.values() for line in fenced(message.text)]
        lines += ["## Waiting for the next question", "", *waiting]
    return "\n".join([*lines, "## Envelope", "", *segment_lines(prompt)]).rstrip() + "\n"


def layer_table(prompt: Prompt) -> list[str]:
    """How much of a prompt each layer takes."""
    rows = [
        f"| {size.layer} | {size.tokens:,} | {size.segments} | `{size.digest[:8]}` |"
        for size in measure_layers(prompt)
        if size.segments
    ]
    return ["| layer | tokens | segments | digest |", "|---|--:|--:|---|", *rows, ""]


def segment_lines(prompt: Iterable[Segment], *, full: bool = True) -> Iterator[str]:
    """Every segment of a prompt with its text; of long ones the beginning and the end, unless they
    are shown in `full`."""
    for segment in prompt:
        uncached = "" if segment.cached else ", uncached"
        text = segment.text or msgspec.json.encode(segment.content).decode()
        if not full and len(text) > SHOWN:
            gap = f"\n[... {len(text) - SHOWN:,} characters; --full shows them ...]\n"
            text = text[: SHOWN // 2] + gap + text[-SHOWN // 2 :]
        yield from (f"### {segment.layer} · {segment.role} · {segment.source}", "")
        yield from (f"{segment.tokens:,} tokens{uncached}", "", *fenced(text))


def fenced(text: str) -> list[str]:
    """A text in a fence that is longer than any in it."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return [fence, text.strip("\n"), fence, ""]
