"""Prefix caches, accounted for by rules that know nothing of Lamina: what was sent before, how
long ago, and what a vendor charges for it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from played import LIFETIME_S, Conversation
from rows import COUNTER, Sent, line, note_line

MINIMUM = 1_024
STEP = 128
# Factors on the price of fresh input. Anthropic: 5-minute entries, marked at the end of what is
# kept. OpenAI (GPT-5): automatic, writes are free.
# A summary is an answer that other rows do not ask for, at what answers cost there.
ANTHROPIC = {"read": 0.1, "write": 1.25, "answer": 5.0}
OPENAI = {"read": 0.1, "answer": 8.0}


@dataclass(slots=True)
class Account:
    """What a row cost on one conversation."""

    requests: int = 0
    prompt: int = 0
    cached: int = 0
    breaks: int = 0
    anthropic: float = 0.0
    openai: float = 0.0
    pruned: int = 0
    over: int = 0
    lost: int = 0
    largest: int = 0
    answers: int = 0
    answers_kept: int = 0

    @property
    def reprocessed(self) -> int:
        return self.prompt - self.cached

    @property
    def hit_rate(self) -> float:
        return self.cached / self.prompt if self.prompt else 0.0


@dataclass(slots=True)
class Cache:
    """Every prefix sent so far and when it was last touched. Generous: a hit may end between any
    two atoms, whoever marked what."""

    touched: dict[int, float] = field(default_factory=dict)

    def send(self, sent: Sent) -> int:
        """Tokens found, and the prompt is kept from now on."""
        running, cached, total, alive = 0, 0, 0, True
        for atom in sent.atoms:
            running = hash((running, atom.key))
            total += atom.tokens
            last = self.touched.get(running)
            alive = alive and last is not None and sent.at - last <= LIFETIME_S
            if alive:
                cached = total
            self.touched[running] = sent.at
        return cached


def account(requests: Iterable[Sent], budget: int | None) -> Account:
    result = Account()
    cache = Cache()
    before: Sent | None = None
    for sent in requests:
        total = sum(atom.tokens for atom in sent.atoms)
        cached = cache.send(sent)
        # A run that ends in uncached text is kept up to it.
        kept = 0
        for atom in sent.atoms:
            if not atom.kept:
                break
            kept += atom.tokens
        if before is not None and sent.at - before.at <= LIFETIME_S and _moved(before, sent):
            result.breaks += 1
        result.requests += 1
        result.prompt += total
        result.cached += cached
        result.pruned += sent.pruned
        result.lost += sent.lost
        result.over += budget is not None and total > budget
        result.largest = max(result.largest, total)
        result.anthropic += _anthropic(total, cached, kept) + ANTHROPIC["answer"] * sent.summary
        result.openai += _openai(total, cached) + OPENAI["answer"] * sent.summary
        if sent.summary:
            continue
        result.answers += sent.answers
        result.answers_kept += sent.answers_kept
        before = sent
    return result


def _moved(before: Sent, after: Sent) -> bool:
    for index, atom in enumerate(before.atoms):
        if not atom.kept:
            return False
        if index >= len(after.atoms) or after.atoms[index].key != atom.key:
            return True
    return False


def _anthropic(total: int, cached: int, kept: int) -> float:
    read_tokens = cached if cached >= MINIMUM else 0
    written_tokens = max(0, kept - read_tokens) if kept >= MINIMUM else 0
    return (
        ANTHROPIC["read"] * read_tokens
        + ANTHROPIC["write"] * written_tokens
        + (total - read_tokens - written_tokens)
    )


def _openai(total: int, cached: int) -> float:
    read_tokens = cached // STEP * STEP if cached >= MINIMUM else 0
    return OPENAI["read"] * read_tokens + (total - read_tokens)


def best_hit_rate(unbounded: Iterable[Sent], window: int) -> float:
    """A reference, no bound: every request as full as the window allows, and only what is new in
    it processed (pruning while the cache is cold can beat it). `unbounded` are the requests of the
    same session without a window."""
    cache = Cache()
    prompt = misses = 0
    for sent in unbounded:
        total = sum(atom.tokens for atom in sent.atoms)
        new = total - cache.send(sent)
        full = min(total, window)
        prompt += full
        misses += min(full, new)
    return 1 - misses / prompt if prompt else 0.0


def physical_limit(conversation: Conversation) -> int:
    """Every token once, and the live prompt again after an expired lifetime: L1, the notes in
    force and bare history. Results of planned tools live for one request."""
    total = live = line("system", conversation.system).tokens
    versions: dict[str, tuple[int, str]] = {}
    first = True
    answer_tokens = 0
    for step in conversation.steps:
        # The answer before is new to the provider's input, unless all is processed again anyway.
        live += answer_tokens
        new = live if not first and step.idle > LIFETIME_S else answer_tokens
        for note in step.notes:
            version = versions.get(note.path)
            if version is None or version[1] != note.text:
                tokens = note_line(note).tokens
                live += tokens - (version[0] if version else 0)
                new += tokens
                versions[note.path] = (tokens, note.text)
        if step.question is not None:
            question_tokens = line("user", step.question).tokens
        else:
            question_tokens = sum(
                line("tool", text, call_id=call).tokens for call, text in step.results
            )
        new += question_tokens + COUNTER.count(step.tool_text)
        live += question_tokens
        total += new
        first = False
        calls = "".join(text for _, text in step.calls)
        ids = tuple(call for call, _ in step.calls)
        answer_tokens = line("assistant", step.answer, calls=ids, also=calls).tokens
    return total
