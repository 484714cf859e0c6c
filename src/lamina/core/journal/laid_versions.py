"""What of the items stands in an envelope.

Law: an item counts as laid down if and only if its block stands in the envelope.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.values.envelope import Envelope
from lamina.core.values.item import ItemId
from lamina.core.values.message import Use
from lamina.core.values.patch import (
    ItemLay,
    ItemSupersede,
    LibraryConsolidate,
    MessagesCachedAppend,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    Patch,
    PatchOp,
)


class LaidVersions(Struct, frozen=True, kw_only=True):
    """The versions of an item whose blocks stand in the envelope, in order, and the one that
    applies, none if it was superseded. `in_library` says that it needs no boundary to get there."""

    versions: tuple[str, ...]
    current: str
    in_library: bool = False


class StandingItems(Struct, frozen=True, kw_only=True):
    """What stood in an envelope, so that those that grew out of it need not be looked through."""

    envelope: Envelope
    standing: Mapping[ItemId, LaidVersions]

    def versions_in(self, envelope: Envelope, item: ItemId) -> tuple[str, ...]:
        """The versions of an item whose blocks stand in `envelope`, a later one."""
        if not has_grown(self.envelope, envelope):
            return find_versions(envelope, item)
        laid = self.standing.get(item)
        versions = laid.versions if laid else ()
        new = envelope.cached.since(len(self.envelope.cached))
        uses = (use for message in new if message.context for use in message.context.uses)
        return (*versions, *(u.version for u in uses if u.item == item and u.form == "full"))


def has_grown(before: Envelope, after: Envelope) -> bool:
    """Whether all that stood before still stands, with messages added behind it if at all."""
    shared = after.cached.shared_with(before.cached)
    return after.library is before.library and shared == len(before.cached)


def find_versions(envelope: Envelope, item: ItemId) -> tuple[str, ...]:
    """The versions of an item whose blocks stand in `envelope`; all of it is looked through."""
    laid = find_laid_versions(envelope, {}).get(item)
    return laid.versions if laid else ()


def lay_uses(
    standing: Mapping[ItemId, LaidVersions], uses: Iterable[Use]
) -> Mapping[ItemId, LaidVersions]:
    """What stands once a message with these uses was appended."""
    after = dict(standing)
    for use in uses:
        before = after.get(use.item)
        versions = before.versions if before else ()
        if use.form == "full":
            # A version that stands twice counts at its last place only.
            versions = (*(version for version in versions if version != use.version), use.version)
            after[use.item] = LaidVersions(versions=versions, current=use.version)
        elif before and before.current != use.version:
            after[use.item] = replace(before, current=use.version, in_library=False)
    return after


def find_laid_versions(
    envelope: Envelope, before: Mapping[ItemId, LaidVersions]
) -> Mapping[ItemId, LaidVersions]:
    """What stands in `envelope`. `before` is what stood until now: a version chosen by name alone
    ("changed back") and one that was superseded stay so while the blocks stand."""
    library = {
        laid.item: LaidVersions(versions=(laid.version,), current=laid.version, in_library=True)
        for laid in envelope.library
    }
    contexts = (message.context for message in envelope.cached)
    uses = (use for context in contexts if context for use in context.uses if use.form == "full")
    after = dict(lay_uses(library, uses))
    for item, then in before.items():
        now = after.get(item)
        if now is None or then.current == now.current:
            continue
        if then.current in now.versions or (not then.current and then.versions == now.versions):
            after[item] = replace(now, current=then.current)
    return after


def apply_lay_ops(
    standing: Mapping[ItemId, LaidVersions], patch: Patch
) -> Mapping[ItemId, LaidVersions]:
    """What stands, as a patch says of single versions: one that is laid down applies from then on,
    one that is superseded no longer does."""
    laid = {op.item: op.version for op in patch.ops if isinstance(op, ItemLay)}
    gone = {(op.item, op.version) for op in patch.ops if isinstance(op, ItemSupersede)}
    if not (laid or gone):
        return standing
    after = dict(standing)
    for item, version in laid.items():
        if (versions := after.get(item)) and version in versions.versions:
            after[item] = replace(versions, current=version)
    for item, version in gone:
        if (versions := after.get(item)) and versions.current == version:
            after[item] = replace(versions, current="")
    return after


def laid_items(op: PatchOp) -> list[tuple[ItemId, str]]:
    """The item versions that an op lays down, whose contents have to be there."""
    match op:
        case ItemLay(item=item, version=version):
            return [(item, version)]
        case LibraryConsolidate(items=items):
            return [(laid.item, laid.version) for laid in items]
        case (
            MessagesCachedReplace(messages=messages)
            | MessagesCachedAppend(messages=messages)
            | MessagesUncachedAppend(messages=messages)
        ):
            contexts = [message.context for message in messages]
            uses = [use for context in contexts if context for use in context.uses]
            return [(use.item, use.version) for use in uses if use.form == "full"]
        case _:
            return []
