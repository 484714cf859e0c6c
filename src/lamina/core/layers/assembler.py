"""Assembles L1-L5 into a `Prompt` of segments in wire order, and the system prompt into one string
for people and hooks to read.

Laws: the same envelope yields the same segments, whether assembled from scratch or by extending the
previous prompt. In `lazy` a message in history has the bytes it was sent with, without the uncached
part; in `eager` history has bare questions and answers. Separators stand at the start of the
segment they introduce, so that growth never touches an earlier one. The system prompt as a string
is laid out from the same envelope, only on access.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, Literal

from msgspec import UNSET, Struct
from msgspec.structs import replace

import lamina.core.text as render
from lamina.core.codec import canonical_bytes, segment_digest
from lamina.core.journal import State, renderer_in
from lamina.core.layers.layout import Layout
from lamina.core.layers.thinking import advance, is_signed, is_valid
from lamina.core.layers.token_sizes import CALL_TOKENS, MESSAGE_TOKENS, picture_tokens
from lamina.core.text.tool_descriptions import render_loaded
from lamina.core.values.collections import Chain
from lamina.core.values.envelope import Envelope, SystemPart, SystemParts, is_personal
from lamina.core.values.item import Item, ItemId, Picture
from lamina.core.values.message import (
    Context,
    Image,
    LoadedTools,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolText,
)
from lamina.core.values.prompt import (
    Content,
    Layer,
    Prompt,
    Segment,
    SegmentLink,
    Standing,
    Strand,
    StrandRecord,
    ToolReferences,
    WireRole,
    link_segments,
)

# A message's position: before this turn, its question, or a step taken since.
Region = Literal["history", "asked", "steps"]
ItemVersions = Mapping[tuple[ItemId, str], Item]
Count = Callable[[str], int]


class Assembler:
    """Assembles prompts, and remembers the parts of the last one so that a turn costs only its
    additions."""

    def __init__(self, count: Count, layout: Layout) -> None:
        self._count = count
        self.layout = layout
        self._blocks: dict[tuple[str, ...], tuple[str, int]] = {}
        self._front_key: tuple[object, object, object] = (None, None, None)
        self._front: Chain[SegmentLink] = Chain()
        self._history = Strand()
        self._steps = Strand()
        # The last question that is in history unchanged, except for its layer.
        self._asked: tuple[Message | None, list[Segment]] = (None, [])

    def assemble(self, envelope: Envelope, items: ItemVersions, turn_start: int) -> Prompt:
        """Return the prompt of `envelope`; messages from `turn_start` on belong to the current
        turn."""
        cached = envelope.cached

        def render_message(
            message: Message, standing: Standing | None
        ) -> tuple[list[Segment], Standing | None]:
            question, segments = self._asked
            if message is question:
                # Counting it again would cost as much as its length.
                segments = [replace(segment, layer="L4") for segment in segments]
                return segments, advance(standing, segments) if standing else None
            return self._render(message, items, "history", standing)

        def render_step(
            message: Message, standing: Standing | None
        ) -> tuple[list[Segment], Standing | None]:
            return self._render(message, items, "steps", standing)

        front = self._assemble_front(envelope, items)
        base = None
        if self.layout.binds_thinking:
            base = Standing(front=front[-1].running if front else "")
        history = self._history.follow(cached.until(turn_start), 0, render_message, base, advance)
        standing = self._history.standing
        segments: list[Segment] = []
        behind = turn_start
        if turn_start < len(cached) and (first := cached[turn_start]).role == "user":
            question, segments = self._asked
            if first is not question or envelope.tool_texts:
                segments = self._message_segments(first, items, "asked", envelope.tool_texts)
                bare = not (first.context or envelope.tool_texts)
                self._asked = (first, segments) if bare else (None, [])
            standing = advance(standing, segments) if standing else None
            behind += 1
        steps = self._steps.follow(cached, behind, render_step, standing, advance)
        standing = self._steps.standing
        tail: list[Segment] = []
        for message in envelope.uncached:
            own, standing = render_message(message, standing)
            tail += [replace(segment, layer="L3", cached=False) for segment in own]
        return Prompt(
            front=front,
            history=history,
            asked=tuple(segments),
            steps=steps,
            tail=tuple(tail),
            standing=standing,
        )

    def block(self, item: Item, shape: str) -> tuple[str, int]:
        """Return the rendered block of an item version and its tokens, made once per version."""
        key = (
            item.id, item.version, shape, item.title, item.ctime, item.mtime,
            str(item.unseen_pictures),
        )  # fmt: skip
        if key not in self._blocks:
            bare = render.render_bare(item) if shape == "bare" else None
            text = bare or render.render_item(
                item,
                self.layout.wording,
                "attached" if shape == "bare" else shape,  # type: ignore[arg-type]
            )
            self._blocks[key] = (text, self._count(text))
        return self._blocks[key]

    def item_tokens(self, item: Item) -> int:
        tokens = self.block(item, "attached")[1]
        if self.layout.hides_pictures:
            return tokens + len(item.pictures) * self._count(render.UNSEEN_PICTURE)
        return tokens + sum(map(picture_tokens, item.pictures))

    def count_text(self, text: str) -> int:
        return self._count(text)

    def definition_tokens(self, tool: ToolDefinition) -> int:
        return self._count(canonical_bytes(tool).decode()) + CALL_TOKENS

    def message_sizes(
        self, messages: Sequence[Message], items: ItemVersions | None = None
    ) -> list[int]:
        """Return the tokens of each message as in history or, without `items`, as after a boundary:
        bare, without attachments."""
        sizes = []
        for message in messages:
            if items is None and message.context:
                bare = tuple(block for block in message.blocks if not isinstance(block, Context))
                message = replace(message, blocks=bare)
            segments = self._message_segments(message, items or {}, "history")
            sizes.append(sum(segment.tokens for segment in segments))
        return sizes

    # -- caches that outlive the process -----------------------------------------------------------

    def freeze(self, messages: Chain[Message]) -> StrandRecord | None:
        """Return the totals of history so far, if they belong to the first of `messages`."""
        return self._history.freeze(messages)

    def thaw(self, record: StrandRecord, messages: Chain[Message], items: ItemVersions) -> None:
        """Restore totals stored for `messages`; segments are rendered on access."""
        # Their tokens are known: nothing is counted again.
        quiet = Assembler(lambda _: 0, self.layout)

        def render_message(message: Message) -> list[Segment]:
            return quiet._message_segments(message, items, "history")

        self._history = Strand.thaw(record, messages, render_message)

    # -- front: tools, L1, library ---------------------------------------------------------------

    def _assemble_front(self, envelope: Envelope, items: ItemVersions) -> Chain[SegmentLink]:
        key = (envelope.tool_list, envelope.system, envelope.library)
        if not all(map(is_, self._front_key, key)):
            self._front = link_segments(Chain(), self._front_segments(envelope, items))
            self._front_key = key
        return self._front

    def _front_segments(self, envelope: Envelope, items: ItemVersions) -> Iterator[Segment]:
        shared = self.layout.shares_front
        for tool in envelope.tool_list:
            yield self._segment(
                "tools", "tools", "tools", tool, f"tool:{tool.name}", opens=True, shared=shared
            )
        glue = ""
        order = self.layout.order_parts(envelope.system)
        for part in order.before:
            if text := part.text.strip():
                shared = shared and not is_personal(part.name)
                yield self._part(part, glue + text, opens=not glue, shared=shared)
                glue = "\n\n"
        if library := envelope.library:
            shared = shared and library[0].item in envelope.always
            yield self._system(
                "L2", glue + render.LIBRARY_HEADER, "system:library", opens=not glue, shared=shared
            )
            glue = ""
            for laid in library:
                shared = shared and laid.item in envelope.always
                text, tokens = self.block(items[laid.item, laid.version], "attached")
                source = f"{laid.item}@{laid.version[:8]}"
                tokens += bool(glue)
                yield self._system("L2", glue + text, source, tokens=tokens, shared=shared)
                glue = "\n\n"
        for part in order.behind:
            if text := part.text.strip():
                yield self._part(part, glue + text, opens=not glue)
                glue = "\n\n"

    def _part(self, part: SystemPart, text: str, **how: Any) -> Segment:
        return self._system("L1", text, f"system:{part.name}", **how)

    def _system(self, layer: Layer, text: str, source: str, **how: Any) -> Segment:
        return self._segment(layer, "system", "system", Text(text), source, **how)

    # -- messages --------------------------------------------------------------------------------

    def _render(
        self, message: Message, items: ItemVersions, region: Region, standing: Standing | None
    ) -> tuple[list[Segment], Standing | None]:
        segments = self._message_segments(message, items, region, standing=standing)
        return segments, advance(standing, segments) if standing else None

    def _message_segments(
        self,
        message: Message,
        items: ItemVersions,
        region: Region,
        tool_texts: Sequence[ToolText] = (),
        standing: Standing | None = None,
    ) -> list[Segment]:
        """Return a message in wire format. Without `standing`, all thinking that may be valid is
        included."""
        segments: list[Segment] = []
        role, layout = message.role, self.layout
        layer: Layer = "L4"
        strips = False
        if role == "user":
            layer = "L5" if region == "asked" else "L4"
            strips = layout.promotion == "eager"
            context = message.context
            bare = strips and region == "history"
            if (context or tool_texts) and not bare:
                segments += self._context_segments(message, context, items, region, tool_texts)
        source = f"message:{message.id}"
        loads = message.loads if role == "tool" else {}
        for block in message.blocks:
            # Not by `match`: nearly all blocks are texts, and all of history passes through here.
            if isinstance(block, Text):
                text = block.text
                if not text or text.isspace():
                    continue
                if strips:
                    block = Text(text.strip())
            elif isinstance(block, Context | LoadedTools):
                continue
            elif isinstance(block, Thinking):
                if not self._takes_back(block, message.model):
                    continue
                if standing:
                    before = advance(standing, segments, is_whole=False)
                    if not is_valid(block, before):
                        continue
                block = replace(block, binding=UNSET)
            content: Content = block
            if loads and isinstance(block, ToolResult) and block.call_id in loads:
                content = self._load(block, loads[block.call_id])
            opens = not segments
            segments.append(self._segment(layer, role, message.id, content, source, opens=opens))
        return segments

    def _load(self, result: ToolResult, loads: LoadedTools) -> ToolReferences | ToolResult:
        """Return a result that loads tools, or descriptions of them if the model cannot load
        tools."""
        if self.layout.loads_for(loads.model):
            return ToolReferences(
                call_id=result.call_id,
                name=result.name,
                text=result.text,
                tools=tuple(tool.definition for tool in loads.tools),
            )
        return replace(result, text=render_loaded(result.text, loads.tools, self.layout.wording))

    def _takes_back(self, block: Thinking, model: str) -> bool:
        layout = self.layout
        if not is_signed(block) or block.provider != layout.wire:
            return False
        if layout.binds_thinking and block.binding is not UNSET:
            return True
        # Its author was not always recorded; previously sent content continues to be sent.
        return not (model and layout.model) or model == layout.model

    def _context_segments(
        self,
        message: Message,
        context: Context | None,
        items: ItemVersions,
        region: Region,
        tool_texts: Sequence[ToolText],
    ) -> Iterator[Segment]:
        """Return L3 of one user message, before the typed text. Uncached parts come before L3 in
        eager, where all of it is gone next turn, and after it in lazy."""
        eager = self.layout.promotion == "eager"
        pieces = list(self._context_pieces(message, context, items)) if context else []
        asks = bool(message.text.strip())
        has_context = bool(pieces)
        frames = asks and (has_context or not eager)
        if tool_texts:
            extra = _Piece(text=render.render_tool_texts(tool_texts), source="tool_texts")
            pieces.insert(0 if eager else len(pieces), extra)
        before: _Piece | None = None
        for piece in pieces:
            # Glue stands at the start: a line break before text keeps its tokens whatever follows,
            # one after it does not. The original joins blocks with a single one.
            glue = "" if before is None else "\n" if before.is_block and piece.is_block else "\n\n"
            tail = "\n\n" if asks and not frames and piece is pieces[-1] else ""
            layer = _context_layer(piece, region)
            cached = not (eager and region == "asked") and piece.source != "tool_texts"
            yield self._segment(
                layer, "user", message.id, Text(f"{glue}{piece.text}{tail}"), piece.source,
                opens=before is None, tokens=piece.tokens and piece.tokens + bool(glue),
                cached=cached,
            )  # fmt: skip
            for picture in piece.pictures:
                yield self._segment(
                    layer, "user", message.id, Image(picture), piece.source, cached=cached
                )
            before = piece
        if frames and pieces:
            yield self._segment(
                "L4" if region == "history" else "L3", "user", message.id,
                Text(f"\n\n{render.QUERY_FRAME}"), f"frame:{message.id}",
                cached=has_context and not (eager and region == "asked"),
            )  # fmt: skip

    def _context_pieces(
        self, message: Message, context: Context, items: ItemVersions
    ) -> Iterator["_Piece"]:
        eager = self.layout.promotion == "eager"
        names = render.render_names(context, in_library=eager)
        if names:
            yield _Piece(text=names, source=f"names:{message.id}")
        for use in context.uses:
            if use.form == "full":
                item = items[use.item, use.version]
                shape = "bare" if eager and use.shape == "attached" else use.shape
                text, tokens = self.block(item, shape)
                yield _Piece(
                    text=text,
                    source=f"{use.item}@{use.version[:8]}",
                    tokens=tokens,
                    pictures=item.pictures,
                    is_block=True,
                )

    # -- segments --------------------------------------------------------------------------------

    def _segment(
        self,
        layer: Layer,
        role: WireRole,
        message: str,
        content: Content,
        source: str,
        *,
        opens: bool = False,
        tokens: int | None = None,
        cached: bool = True,
        shared: bool = False,
    ) -> Segment:
        if self.layout.hides_pictures and isinstance(content, Image):
            content = Text(("" if opens else "\n") + render.UNSEEN_PICTURE)
        if tokens is None:
            tokens = self._content_tokens(content)
        if opens:
            tokens += MESSAGE_TOKENS
        return Segment(
            layer=layer,
            role=role,
            message=message,
            content=content,
            source=source,
            digest=segment_digest(role, content, opens=opens),
            tokens=tokens,
            cached=cached,
            shared=shared,
        )

    def _content_tokens(self, content: Content) -> int:
        match content:
            case Text(text=text) | Thinking(text=text):
                return self._count(text)
            case ToolCall(name=name, arguments=arguments):
                return self._count(name) + self._count(arguments) + CALL_TOKENS
            case ToolResult(text=text):
                return self._count(text) + CALL_TOKENS
            case ToolReferences(tools=tools):
                return sum(map(self.definition_tokens, tools)) + CALL_TOKENS
            case Image(picture=picture):
                return picture_tokens(picture)
            case ToolDefinition():
                return self.definition_tokens(content)


class _Piece(Struct, frozen=True, kw_only=True):
    """A run of L3 text before it is joined to its neighbours."""

    text: str
    source: str
    tokens: int | None = None
    pictures: tuple[Picture, ...] = ()
    is_block: bool = False


def _context_layer(piece: _Piece, region: Region) -> Layer:
    if region != "history":
        return "L3"
    return "L2" if piece.is_block else "L4"


def with_compiled_system(envelope: Envelope, state: State, renderer: int | None = None) -> Envelope:
    """Return the envelope of `state`, or one made from it, whose `system.compiled` includes the
    library that stands in it. `renderer` is that of the request's layout, if known."""
    items = state.library.items
    renderer = renderer_in(state) if renderer is None else renderer
    layout = Layout(promotion=state.settings.promotion, renderer=renderer)

    def compile_text() -> str:
        order = layout.order_parts(envelope.system)
        blocks = (items[laid.item, laid.version] for laid in envelope.library)
        library = "\n\n".join(render.render_item(item, layout.wording) for item in blocks)
        texts = [part.text.strip() for part in order.before]
        texts += [f"{render.LIBRARY_HEADER}{library}"] if library else []
        texts += [part.text.strip() for part in order.behind]
        return "\n\n".join(filter(None, texts))

    return replace(envelope, system=SystemParts(envelope.system, compile_text))
