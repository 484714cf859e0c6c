"""Which request a prompt goes on from, where nothing names it: by the longest known chain of
messages.

Laws: interleaved conversations are told apart by what was said in them; a conversation whose front
or middle changed is still the same one. Only the newest prompts are kept whole.
"""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from lamina.doctor.comparison import message_digests
from lamina.doctor.observed import RecordedPrompt

# Prompts that are kept at a time: as many as conversations that run at once, and of a session that
# has a name only the newest. What they have in common is kept once.
KEPT, KEPT_OF_ONE = 32, 4
# The share of an earlier prompt's messages that says it is the same conversation.
_SAME = 0.25


class KnownPrompt(Struct, frozen=True, kw_only=True):
    """A prompt that was seen, with the digests of its messages."""

    id: str
    prompt: RecordedPrompt
    messages: tuple[bytes, ...]


class Lineage:
    """The prompts of one session, or of a log that names none, in order of sending."""

    def __init__(self, *, is_one_session: bool = False) -> None:
        # Whether whatever comes belongs together, however little it shares.
        self._is_one_session = is_one_session
        # The newest prompt that begins with a chain of messages, by that chain's digest.
        self._chains: dict[bytes, str] = {}
        self._known: OrderedDict[str, KnownPrompt] = OrderedDict()
        # What the newest prompts were extended by: a prompt that was is no head any more.
        self._extended: set[str] = set()

    def add(self, id: str, prompt: RecordedPrompt) -> KnownPrompt | None:
        """Takes in a prompt; gives the one it goes on from."""
        messages = tuple(message_digests(prompt.parts))
        chains = _chain(messages)
        before = self._find(messages, chains)
        for chain in chains:
            self._chains[chain] = id
        if before is not None:
            self._extended.add(before.id)
            prompt = _share(before.prompt, prompt)
        self._known[id] = KnownPrompt(id=id, prompt=prompt, messages=messages)
        while len(self._known) > (KEPT_OF_ONE if self._is_one_session else KEPT):
            gone, _ = self._known.popitem(last=False)
            self._extended.discard(gone)
        return before

    @property
    def known(self) -> Sequence[KnownPrompt]:
        """The prompts that are kept whole, the oldest first."""
        return tuple(self._known.values())

    def _find(self, messages: tuple[bytes, ...], chains: Sequence[bytes]) -> KnownPrompt | None:
        for count in range(len(chains), 0, -1):
            known = self._known.get(self._chains.get(chains[count - 1], ""))
            if known is not None:
                return self._nearest(known, messages, count)
        best = max(
            (known for known in self._known.values() if known.id not in self._extended),
            key=lambda known: len(set(known.messages) & set(messages)),
            default=None,
        )
        if best is None:
            return None
        overlap = len(set(best.messages) & set(messages))
        if overlap and overlap >= _SAME * len(best.messages):
            return best
        if self._is_one_session:
            return next(reversed(self._known.values()))
        return None

    def _nearest(
        self, known: KnownPrompt, messages: tuple[bytes, ...], shared: int
    ) -> KnownPrompt | None:
        """Of those that share as much: the one that is whole within the prompt, if the newest one
        went another way; a question asked beside others is not an edit of theirs."""
        if len(known.messages) == shared or len(messages) > shared + 1:
            return known
        whole = (
            earlier
            for earlier in reversed(self._known.values())
            if earlier.messages == messages[: len(earlier.messages)] and earlier.messages
        )
        found = next(whole, None)
        if found is None and len(known.messages) == len(messages):
            return None
        return found or known


def _share(before: RecordedPrompt, after: RecordedPrompt) -> RecordedPrompt:
    """The later prompt, with the parts of the earlier one where they are the same."""
    pairs = zip(before.parts, after.parts, strict=False)
    parts = [old if old == new else new for old, new in pairs]
    return replace(after, parts=(*parts, *after.parts[len(parts) :]))


def _chain(messages: Sequence[bytes]) -> list[bytes]:
    chains, running = [], b""
    for digest in messages:
        running = blake2b(running + digest, digest_size=12).digest()
        chains.append(running)
    return chains
