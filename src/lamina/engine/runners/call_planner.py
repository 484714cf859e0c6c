"""Makes the planning call, which chooses the tools to run for a question before it is answered.

Laws: it is a request of its own and does not change the session. It contains the question as it was
typed, the tools, and only the names and first words of attachments. It is counted like every
request.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import islice

import anyio
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.codec import digest_texts
from lamina.core.layers import Assembler, Layout, measure_layers
from lamina.core.layers.layout import wording_in
from lamina.core.ledger import cost_of
from lamina.core.ledger.cost import RequestPrice, output_limit, upper_tokens, writes_long
from lamina.core.ports import Provider, Providers
from lamina.core.text import QUERY_FRAME, escape_content, label_of, one_line
from lamina.core.text.wording import Wording
from lamina.core.values.collections import Chain
from lamina.core.values.envelope import Envelope, SystemPart, SystemParts
from lamina.core.values.item import Item, is_member
from lamina.core.values.message import Message, Text, ToolCall, ToolDefinition
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply, ResentPiece, WireRequest
from lamina.engine.runners.composer import COMPOSER, wants_composer
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.session_spending import ProviderCall
from lamina.engine.sources.attachments import Attachments
from lamina.errors import ProviderError, WindowExceeded

MAX_CALLS = 8
ATTACHED = "attached"
# How many attachments are listed, and how much of their text is shown.
MAX_ITEMS = 40
SNIPPETS = 2
SNIPPET_CHARACTERS = 200
_FRONTMATTER = re.compile(r"\A---[ \t]*\n.*?^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)


class PlannedCalls(Struct, frozen=True, kw_only=True):
    """The planned calls, and their cost. `prompt` is the digest of the request for the plan."""

    calls: tuple[ToolCall, ...]
    usage: Usage
    cost: float | None
    prompt: str


def plan_key(session: Session) -> str:
    """Return the cache key for a session's planning calls: their prefix differs from the
    session's.
    """
    return f"{session.id}-plan"


class CallPlanner:
    """Asks the target of a session which tools to run."""

    def __init__(self, session: Session, providers: Providers) -> None:
        self._session = session
        self._providers = providers

    async def plan(
        self,
        text: str,
        attachments: Attachments,
        tools: Sequence[ToolDefinition],
        target: Target,
        problems: str = "",
    ) -> PlannedCalls:
        """Return the calls for a question, with ids of their own; `problems` describes what was
        wrong with the calls of an earlier plan.

        Raises:
            ProviderError, ReplyError: there is no plan.
            WindowExceeded: the tools and the question do not fit the window.
            SpendLimit: the call could pass a limit.
        """
        request = self.request(text, attachments, tools, target, problems)
        provider = await self._providers.provider(target)
        reply = await self._send(provider, request)
        calls = (block for block in reply.blocks if isinstance(block, ToolCall))
        name = "replan" if problems else "plan"
        return PlannedCalls(
            calls=tuple(replace(call, id=f"{name}-{at}") for at, call in enumerate(calls, start=1)),
            usage=reply.usage,
            cost=cost_of(reply.usage, target),
            prompt=digest_texts(segment.digest for segment in request.prompt),
        )

    async def _send(self, provider: Provider, request: WireRequest) -> Reply:
        """Ask for the plan, with its maximum cost reserved."""
        core = core_of(self._session)
        core.turns.spending.begin_turn(early=True)
        call = ProviderCall(
            price=self.price(request), purpose="plan", layers=measure_layers(request.prompt)
        )
        bill = await core.turns.spending.reserve(call)
        body = core.layouts.book.wire(request.target).encode(request)
        reply: Reply | None = None
        try:
            async with aclosing(provider.stream(body)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    if isinstance(piece, ResentPiece):
                        bill = await core.turns.spending.reserve(call)
                    if isinstance(piece, Reply):
                        reply = piece
        except BaseException as error:
            await core.turns.spending.end_failed(bill, error)
            raise
        if reply is None:
            raise ProviderError("the plan broke off")
        with anyio.CancelScope(shield=True):
            await core.turns.spending.settle(bill, reply.usage if reply.usage.input else None)
        return reply

    def price(self, request: WireRequest) -> RequestPrice:
        """Return the values that determine the price of the planning call."""
        target, state = request.target, self._session.state
        scale = core_of(self._session).layouts.room(target, state).calibration
        tokens = round(request.prompt.tokens * scale)
        return RequestPrice(
            target=target,
            tokens=upper_tokens(tokens, target),
            counted=tokens,
            cached=0,
            output_limit=output_limit(request.options, target),
            writes_long=writes_long(state.settings, target),
        )

    def request(
        self,
        text: str,
        attachments: Attachments,
        tools: Sequence[ToolDefinition],
        target: Target,
        problems: str = "",
    ) -> WireRequest:
        """Return the request, laid out from an envelope of its own."""
        state, layouts = self._session.state, core_of(self._session).layouts
        words = wording_in(state)
        system = [SystemPart(name="planner", text=words.planner.format(most=MAX_CALLS))]
        if wants_composer(text):
            system.append(SystemPart(name="composer", text=COMPOSER.content))
        summary = summarize_attached([attachment.item for attachment in attachments.attachments])
        blocks: tuple[Text, ...] = (Text(f"{summary}\n\n{QUERY_FRAME}"),) if summary else ()
        blocks += (Text(text), Text(problems)) if problems else (Text(text),)
        message = Message(role="user", blocks=blocks, id="plan")
        envelope = Envelope(system=SystemParts(system), tools=tuple(tools), cached=Chain([message]))
        # Separate from the one in use, whose totals belong to the session.
        layout = Layout(wire=target.wire, hides_pictures=not target.sees_pictures)
        assembler = Assembler(layouts.book.counter(target).count, layout)
        prompt = assembler.assemble(envelope, {}, 0)
        room = layouts.room(target, state)
        if prompt.tokens > room.limit:
            problem = "the planning call does not fit the window; offer fewer tools"
            raise WindowExceeded(problem, {"plan": prompt.tokens}, room.limit)
        return WireRequest(
            prompt=prompt,
            target=target,
            # A plan consists of calls, whatever the format of the session's answers.
            options=replace(state.options, schema=None),
            cache_key=plan_key(self._session),
            cache_ttl=state.settings.cache_ttl,
        )


def describe_problems(
    problems: Iterable[tuple[ToolCall, str]], right: Iterable[ToolCall], words: Wording
) -> str:
    """Return the planner's feedback on its own plan: which calls cannot be run, and why."""
    wrong = [f"- {_describe_call(call)}: {one_line(why)}" for call, why in problems]
    planned = [f"- {_describe_call(call)}" for call in right]
    lines = ["[Your plan has calls that cannot be run:]", *wrong]
    lines += [words.planned_already, *planned] if planned else []
    return "\n".join([*lines, words.plan_again])


def _describe_call(call: ToolCall) -> str:
    return one_line(f"{call.name} {call.arguments}")


def summarize_attached(items: Sequence[Item]) -> str:
    """Return a summary of the attachments for the planner: titles, paths, and the first words of
    each.
    """
    # Items brought in by an agent are sent in other ways, or are irrelevant to the planner.
    members = [item for item in items if not is_member(item.id)]
    if not members:
        return ""
    lines = [line for item in members[:MAX_ITEMS] for line in _describe(item)]
    if len(members) > MAX_ITEMS:
        lines.append(f"- and {len(members) - MAX_ITEMS:,} more")
    text = "\n".join(lines)
    return f"<{ATTACHED}>\n{text}\n</{ATTACHED}>"


def _describe(item: Item) -> Iterator[str]:
    label = label_of(item.id)
    name = f"{item.title} ({label})" if item.title and item.title != label else label
    yield f"- {item.kind}: {escape_content(one_line(name), ATTACHED)}"
    for snippet in _snippets(item.content):
        yield f"  > {snippet}"


def _snippets(content: str) -> list[str]:
    """Return the first words of the first paragraphs, each on one line."""
    # Only the beginning of a long text is examined.
    head = _FRONTMATTER.sub("", content[: 64 * SNIPPET_CHARACTERS], count=1)
    paragraphs = (" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", head))
    snippets = [
        one_line(escape_content(words, ATTACHED))
        for words in islice(filter(None, paragraphs), SNIPPETS)
    ]
    return [
        f"{snippet[: SNIPPET_CHARACTERS - 1]}…" if len(snippet) > SNIPPET_CHARACTERS else snippet
        for snippet in snippets
    ]
