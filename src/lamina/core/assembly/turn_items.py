"""Chooses the contents of a turn: items sent in full, items only named, and items left out."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from lamina.core.assembly.budget import assemble_turn
from lamina.core.assembly.request_draft import Draft, Page
from lamina.core.journal import ALWAYS, State
from lamina.core.layers import Assembler
from lamina.core.text import attachment_rank, label_of
from lamina.core.text.wording import Wording
from lamina.core.values.entry import EphemeralEntry, ItemEntry, MessageEntry
from lamina.core.values.item import Attachment, Item, ItemId, is_guidance
from lamina.core.values.message import AbsentAttachment, Block, Context, Message, Text, Use
from lamina.core.values.patch import Display, ItemLay, Patch, PatchOp, SystemPartSet
from lamina.core.values.prompt import Prompt
from lamina.core.values.request import Attachments, LeftOut
from lamina.errors import UsageError

RULES_PART = "rules"
# Tells the model why an item is missing, by the reason in the request context.
ABSENCE_REASONS = {
    "missing": "not found",
    "ambiguous": "several have this name",
    "unreadable": "could not be read",
    "refused": "not allowed",
    "window": "no room left",
    "attachment_limit": "no room left for attachments",
}

REMOVED_TOOL = "it was removed from this session and cannot be called"
# Up to this many items of one folder or tag are named individually.
FEW = 3


class TentativeTurn(Struct, frozen=True, kw_only=True):
    """A tentative turn: the items it names, leaves out, and would send."""

    attachments: Attachments
    page: Page
    prompt: Prompt

    @property
    def turn_tokens(self) -> int:
        return sum(segment.tokens for segment in self.prompt.turn)


def in_wire_order(attachments: Iterable[Attachment]) -> tuple[Attachment, ...]:
    if not attachments:
        return ()
    return tuple(sorted(attachments, key=lambda a: attachment_rank(a.item.id, a.shape)))


def is_laid_always(attachment: Attachment) -> bool:
    """Return whether an item is laid down with the first request. An item with images never is."""
    return attachment.provenance.include == "always" and not attachment.item.pictures


def lay_always(page: Page, attachments: Sequence[Attachment]) -> None:
    always = [attachment for attachment in attachments if is_laid_always(attachment)]
    if not always:
        return
    always.sort(key=_in_library)
    for attachment in always:
        keep_item(page, attachment)
    ops: list[PatchOp] = [ItemLay(item=a.item.id, version=a.item.version) for a in always]
    title = f"{len(ops)} always-included item{'s' * (len(ops) > 1)} laid down"
    page.transform(ALWAYS, Patch(ops=tuple(ops), display=Display(title=title)))


def _in_library(attachment: Attachment) -> tuple[int, int, int, str]:
    level = attachment.provenance.level or 0
    rank = attachment_rank(attachment.item.id, attachment.shape)
    return rank, level, attachment.priority, attachment.item.key


def explain_rules(page: Page, attachments: Sequence[Attachment], words: Wording) -> None:
    """Add the fixed sentence to L1 that makes naming rules meaningful, before the first rule is
    named."""
    if not any(is_guidance(a.item.id) for a in attachments):
        return
    if any(part.name == RULES_PART for part in page.state.envelope.system):
        return
    reason = "rules come into play: L1 says when they apply"
    op = SystemPartSet(name=RULES_PART, text=words.rules, reason=reason)
    page.transform("lamina.rules", Patch(ops=(op,), display=Display(title=reason)))


def keep_item(page: Page, attachment: Attachment) -> None:
    item = attachment.item
    if (item.id, item.version) not in page.state.library.items:
        page.write(ItemEntry, item=item)


def resolve(state: State, attachments: Sequence[Attachment]) -> tuple[Use, ...]:
    uses = []
    for attachment in attachments:
        item = _as_standing(state, attachment.item)
        use = Use(item=item.id, version=item.version, form="full", shape=attachment.shape)
        standing = state.library.standing.get(item.id)
        if standing is None:
            uses.append(use)
        elif item.version not in standing.versions:
            uses.append(replace(use, replaces=not _only_adds(state, item)))
        elif not is_guidance(item.id) or item.version != standing.current:
            use = replace(use, form="named")
            if not item.version == standing.versions[-1] == standing.current:
                ordinal = standing.versions.index(item.version) + 1
                use = replace(use, ordinal=ordinal, shown=len(standing.versions))
            uses.append(use)
    return tuple(sorted(uses, key=lambda use: use.form != "named"))


def _as_standing(state: State, item: Item) -> Item:
    """Return the standing version that already shows all of `item`: an earlier active note may have
    included its images, so that attaching it without them adds nothing."""
    standing = state.library.standing.get(item.id)
    for version in standing.versions if standing and not item.pictures else ():
        earlier = state.library.items[item.id, version]
        if earlier.content == item.content:
            return earlier
    return item


def _only_adds(state: State, item: Item) -> bool:
    """Return whether everything last shown of `item` still stands: pictures are added, and nothing
    changed."""
    last = state.library.items[item.id, state.library.standing[item.id].versions[-1]]
    return last.content == item.content and set(last.pictures) <= set(item.pictures)


def stands(state: State, item: Item) -> bool:
    """Return whether a block that shows all of `item` stands in the envelope."""
    standing = state.library.standing.get(item.id)
    return standing is not None and _as_standing(state, item).version in standing.versions


def applies(state: State, item: Item) -> bool:
    """Return whether the block that shows all of `item` is the one that applies: only that block
    survives a boundary."""
    standing = state.library.standing.get(item.id)
    return standing is not None and _as_standing(state, item).version == standing.current


def compose(
    page: Page,
    draft: Draft,
    attached: Attachments,
    assembler: Assembler,
) -> TentativeTurn:
    """Return the turn with these attachments, written on a copy of the page."""
    page = page.copy()
    attachments = attached.attachments
    state = page.state
    uses: tuple[Use, ...] = ()
    guidance: tuple[ItemId, ...] = ()
    if attachments:
        uses = resolve(state, attachments)
        full = {use.item for use in uses if use.form == "full"}
        for attachment in attachments:
            if attachment.item.id in full:
                keep_item(page, attachment)
        guidance = tuple(a.item.id for a in attachments if is_guidance(a.item.id))
    absent = _list_absent(attached.left_out)
    in_force = _list_in_force(state, guidance)
    blocks: tuple[Block, ...] = (Text(draft.text),)
    if uses or absent or in_force is not None:
        blocks = (Context(uses=uses, absent=absent, in_force=in_force), *blocks)
    page.write(MessageEntry, message=Message(role="user", blocks=blocks, id=page.next_id()))
    if draft.tool_texts or draft.ephemera:
        page.write(EphemeralEntry, tool_texts=draft.tool_texts, **asdict(draft.ephemera))
    prompt = assemble_turn(page.state, assembler)
    if not prompt.asked:
        raise UsageError("nothing to send: the message is empty and nothing new is attached")
    return TentativeTurn(attachments=attached, page=page, prompt=prompt)


def lay_found(page: Page, attached: Sequence[Attachment], found: Sequence[Attachment]) -> None:
    """Lay down items found through the results of the current turn, after those results, and name
    the rules that apply from here on: those `attached` and those found."""
    state = page.state
    new = [attachment for attachment in found if not stands(state, attachment.item)]
    for attachment in new:
        keep_item(page, attachment)
    ops = [ItemLay(item=a.item.id, version=a.item.version) for a in new]
    rules = [attachment for attachment in found if is_guidance(attachment.item.id)]
    if rules:
        guidance = [a.item.id for a in (*attached, *found) if is_guidance(a.item.id)]
        in_force = _list_in_force(state, tuple(dict.fromkeys(guidance)))
        if in_force is not None:
            # After the texts that it names.
            last = new[-1].item if new else _as_standing(state, rules[-1].item)
            ops = [*ops[:-1], ItemLay(item=last.id, version=last.version, in_force=in_force)]
    if ops:
        title = f"{len(found)} item{'s' * (len(found) > 1)} brought by results of tools"
        page.transform("lamina.results", Patch(ops=tuple(ops), display=Display(title=title)))


def _list_absent(left_out: Sequence[LeftOut]) -> tuple[AbsentAttachment, ...]:
    """Return the attachments that the model is told it does not get; many of one folder or tag are
    grouped in one line."""
    if not left_out:
        return ()
    groups: dict[tuple[str, str], list[str]] = {}
    for omission in left_out:
        if why := ABSENCE_REASONS.get(omission.reason):
            groups.setdefault((omission.source, why), []).append(omission.what)
    absent = []
    for (source, why), whats in groups.items():
        if source and len(whats) > FEW:
            label = f"{len(whats):,} more of {label_of(ItemId(source))}"
            absent.append(AbsentAttachment(label=label, why=why))
        else:
            absent += [_absent(ItemId(what), why) for what in whats]
    return tuple(absent)


def _absent(item: ItemId, why: str) -> AbsentAttachment:
    if item.startswith("tool:") and why == ABSENCE_REASONS["refused"]:
        # Not an attachment: it is described above, and was removed.
        return AbsentAttachment(label=f"the tool {label_of(item).lstrip('/')}", why=REMOVED_TOOL)
    return AbsentAttachment(label=label_of(item), why=why)


def _list_in_force(state: State, guidance: tuple[ItemId, ...]) -> tuple[ItemId, ...] | None:
    """Return the rules to name in this turn; None if the standing list already names them. In eager
    no list outlives its turn."""
    standing = state.library.in_force if state.settings.promotion == "lazy" else None
    if not (guidance or standing):
        return None
    # A new order is not a change: chosen items are ordered by score, which differs from turn to
    # turn.
    return guidance if set(guidance) != set(standing or ()) else None
