"""Sessions with one planted cause each, played against emulated caches and recorded in three ways.

The recorder knows what it planted, where, and how long everything is. It shares no code with the
doctor: bodies are built and compared here with plain dicts and `json`.
"""

import json
import random
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from lamina.adapters.providers.model_book import load_book
from lamina.adapters.providers.tokens import counter_for
from lamina.emulators.anthropic.blocks import read_blocks
from lamina.emulators.anthropic.cache import AnthropicCache
from lamina.emulators.gemini.bodies import GenerateBody
from lamina.emulators.gemini.cache import GeminiCache
from lamina.emulators.openai.cache import OpenAICache, count_tokens

WIRES = ("anthropic", "openai", "gemini")
MODELS = {
    "anthropic": ("claude-sonnet-4-5", "claude-opus-4-1"),
    "openai": ("gpt-5", "gpt-5-mini"),
    "gemini": ("gemini-3-pro", "gemini-3-flash"),
}
# Each a row of the table of causes.
CAUSES = (
    "idle", "clock", "tools_reordered", "tools_changed", "first_message", "history_edited", "image",
    "thinking", "parameter", "model", "compaction", "trimmed", "whitespace", "below_minimum",
    "other_machine", "fan_out",
)  # fmt: skip
JSON = dict[str, Any]
START = 1_790_000_000.0
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAyAAAAJYCAYAAACadoJwAAAA"
WORDS = [
    "harbour", "tide", "berth", "vessel", "pilot", "crane", "manifest", "cargo", "signal", "buoy",
    "chart", "anchor", "ledger", "quay", "mast", "dredge", "ferry", "keel", "rudder", "compass",
    "lantern", "warehouse", "customs", "depot", "rail", "convoy", "timber", "grain", "salt",
]  # fmt: skip


def words(random_: random.Random, count: int) -> str:
    return " ".join(random_.choice(WORDS) for _ in range(count))


@dataclass
class Talk:
    """A conversation before it has the form of a wire."""

    system: str
    tools: list[JSON]
    turns: list[JSON]
    model: str
    effort: str = "high"


@dataclass
class Played:
    """One request as it was sent, with what the cache did."""

    body: JSON
    usage: JSON
    at: float
    ended: float
    step: str
    model: str
    input: int
    read: int
    end: int
    agent: str = ""
    planted: str = ""
    # Where the recorder broke it: path and byte, if bytes moved.
    place: str = ""
    offset: int | None = None
    thought: bool = False
    compacted: bool = False
    number: int = 0


@dataclass
class PlayedSession:
    name: str
    wire: str
    cause: str
    front: int
    requests: list[Played] = field(default_factory=list)


class Vendor:
    """A vendor's cache, by its emulator. Gemini's keys nothing by parameters, so every value of
    them has a cache of its own here."""

    def __init__(self, wire: str) -> None:
        self.wire = wire
        self.book = load_book()
        self.caches: dict[str, Any] = {}

    def cache(self, body: JSON) -> Any:
        key = json.dumps(body.get("toolConfig")) if self.wire == "gemini" else ""
        if key not in self.caches:
            made = {"anthropic": AnthropicCache, "openai": OpenAICache, "gemini": GeminiCache}
            self.caches[key] = made[self.wire]()
        return self.caches[key]

    def ask(
        self, body: JSON, model: str, now: float, cache: Any = None
    ) -> tuple[JSON, int, int, int]:
        """Usage as the vendor writes it, with input, read and cached end."""
        target = self.book.find(f"{self.wire}:{model}")
        cache = cache or self.cache(body)
        if self.wire == "anthropic":
            use = cache.look_up(body, target, now)
            cache.begin(use)
            usage = {
                "input_tokens": use.fresh, "cache_read_input_tokens": use.read,
                "cache_creation_input_tokens": use.written, "output_tokens": 60,
                "cache_creation": {"ephemeral_5m_input_tokens": use.written,
                                   "ephemeral_1h_input_tokens": 0},
            }  # fmt: skip
            return usage, use.input, use.read, use.read + use.written
        if self.wire == "openai":
            use = cache.use(_with_reasoning(body), target, now)
            usage = {
                "prompt_tokens": use.tokens, "completion_tokens": 60,
                "prompt_tokens_details": {"cached_tokens": use.cached},
            }  # fmt: skip
            return usage, use.tokens, use.cached, use.tokens
        decoded = msgspec.convert(_snake(body), GenerateBody)
        use = cache.use(decoded, target, "owner", counter_for(target).count, now)
        cache.remember(use, now)
        usage = {
            "promptTokenCount": use.input, "candidatesTokenCount": 60,
            "cachedContentTokenCount": use.cached,
        }  # fmt: skip
        return usage, use.input, use.cached, use.input

    def front(self, body: JSON, model: str) -> int:
        """How many tokens tools and system have."""
        target = self.book.find(f"{self.wire}:{model}")
        if self.wire == "anthropic":
            blocks = [*read_blocks(body, target)]
            return max((b.until for b in blocks if b.layer != "messages"), default=0)
        if self.wire == "openai":
            return count_tokens({**body, "messages": body["messages"][:1]}, target)
        count = counter_for(target).count
        cache = GeminiCache()
        decoded = msgspec.convert(_snake({**body, "contents": []}), GenerateBody)
        return int(cache.use(decoded, target, "o", count, 0.0).input)


def _with_reasoning(body: JSON) -> JSON:
    """What a server's template makes of reasoning: text in front of the answer."""
    messages = []
    for message in body["messages"]:
        if "reasoning_content" in message:
            rest = {k: v for k, v in message.items() if k != "reasoning_content"}
            rest["content"] = (
                f"<think>{message['reasoning_content']}</think>{rest['content'] or ''}"
            )
            message = rest
        messages.append(message)
    return {**body, "messages": messages}


def _snake(value: Any) -> Any:
    """Gemini's bodies as its emulator reads them."""
    return msgspec.json.decode(msgspec.json.encode(value))


# -- building ------------------------------------------------------------------------------------


def make_tools(random_: random.Random) -> list[JSON]:
    return [
        {
            "name": f"{random_.choice(WORDS)}_{index}",
            "description": words(random_, 60),
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
            },
        }
        for index in range(6)
    ]


def write_body(talk: Talk, wire: str) -> JSON:
    """The conversation as a body of its wire."""
    if wire == "anthropic":
        return _anthropic(talk)
    return _openai(talk) if wire == "openai" else _gemini(talk)


def _anthropic(talk: Talk) -> JSON:
    messages: list[JSON] = []
    for turn in talk.turns:
        match turn["kind"]:
            case "user":
                content = [{"type": "text", "text": turn["text"]}]
                if turn.get("image"):
                    source = {"type": "base64", "media_type": "image/png", "data": turn["image"]}
                    content.insert(0, {"type": "image", "source": source})
            case "answer":
                content = []
                if turn.get("thinking"):
                    thought = {"thinking": turn["thinking"], "signature": "sig"}
                    content.append({"type": "thinking", **thought})
                content.append({"type": "text", "text": turn["text"]})
                if turn.get("call"):
                    call = {"id": turn["call"], "name": turn["tool"], "input": turn["arguments"]}
                    content.append({"type": "tool_use", **call})
            case _:
                result = {"tool_use_id": turn["call"], "content": turn["text"]}
                content = [{"type": "tool_result", **result}]
        role = "assistant" if turn["kind"] == "answer" else "user"
        messages.append({"role": role, "content": content})
    body: JSON = {
        "model": talk.model,
        "max_tokens": 1000,
        "tools": [
            {"name": t["name"], "description": t["description"], "input_schema": t["parameters"]}
            for t in talk.tools
        ],
        "system": [{"type": "text", "text": talk.system, "cache_control": {"type": "ephemeral"}}],
        "messages": deepcopy(messages),
        "tool_choice": {"type": "auto" if talk.effort == "high" else "any"},
    }
    body["messages"][-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return body


def _openai(talk: Talk) -> JSON:
    messages: list[JSON] = [{"role": "system", "content": talk.system}]
    for turn in talk.turns:
        match turn["kind"]:
            case "user":
                content: Any = turn["text"]
                if turn.get("image"):
                    url = f"data:image/png;base64,{turn['image']}"
                    content = [
                        {"type": "image_url", "image_url": {"url": url}},
                        {"type": "text", "text": turn["text"]},
                    ]
                messages.append({"role": "user", "content": content})
            case "answer":
                message: JSON = {"role": "assistant", "content": turn["text"]}
                if turn.get("thinking"):
                    message["reasoning_content"] = turn["thinking"]
                if turn.get("call"):
                    function = {"name": turn["tool"], "arguments": json.dumps(turn["arguments"])}
                    message["tool_calls"] = [
                        {"id": turn["call"], "type": "function", "function": function}
                    ]
                messages.append(message)
            case _:
                messages.append(
                    {"role": "tool", "tool_call_id": turn["call"], "content": turn["text"]}
                )
    return {
        "model": talk.model,
        "messages": messages,
        "tools": [{"type": "function", "function": dict(tool)} for tool in talk.tools],
        "reasoning_effort": talk.effort,
    }


def _gemini(talk: Talk) -> JSON:
    contents: list[JSON] = []
    for turn in talk.turns:
        parts: list[JSON] = []
        if turn.get("image"):
            parts.append({"inlineData": {"mimeType": "image/png", "data": turn["image"]}})
        if turn.get("thinking"):
            parts.append({"text": turn["thinking"], "thought": True})
        if turn["kind"] == "result":
            response = {"name": turn["tool"], "response": {"output": turn["text"]}}
            parts.append({"functionResponse": response})
        else:
            parts.append({"text": turn["text"]})
        if turn["kind"] == "answer" and turn.get("call"):
            call = {"name": turn["tool"], "args": turn["arguments"]}
            parts.append({"functionCall": call})
        contents.append({"role": "model" if turn["kind"] == "answer" else "user", "parts": parts})
    return {
        "contents": contents,
        "systemInstruction": {"parts": [{"text": talk.system}]},
        "tools": [{"functionDeclarations": [dict(tool) for tool in talk.tools]}],
        "toolConfig": {
            "functionCallingConfig": {"mode": "AUTO" if talk.effort == "high" else "ANY"}
        },
    }


# -- what a body is made of, for the truth --------------------------------------------------------


def flatten(body: JSON, wire: str) -> list[tuple[str, str, str, bytes]]:
    """Paths, kinds, roles and bytes in the order of the prefix, written a second time here."""
    rows: list[tuple[str, str, str, bytes]] = []

    def dump(value: Any) -> bytes:
        bare = {k: v for k, v in value.items() if k != "cache_control"}
        return json.dumps(bare, separators=(",", ":"), ensure_ascii=False).encode()

    if wire == "gemini":
        for i, tool in enumerate(body["tools"][0]["functionDeclarations"]):
            rows.append((f"tools[0].functionDeclarations[{i}]", "tool", "", dump(tool)))
        text = body["systemInstruction"]["parts"][0]["text"]
        rows.append(("systemInstruction.parts[0].text", "text", "system", text.encode()))
        for i, content in enumerate(body["contents"]):
            for j, part in enumerate(content["parts"]):
                place = f"contents[{i}].parts[{j}]"
                if "text" in part:
                    kind = "thought" if part.get("thought") else "text"
                    rows.append((f"{place}.text", kind, content["role"], part["text"].encode()))
                else:
                    rows.append((place, next(iter(part)), content["role"], dump(part)))
        return rows
    for i, tool in enumerate(body["tools"]):
        rows.append((f"tools[{i}]", "tool", "", dump(tool)))
    if wire == "anthropic":
        rows.append(("system[0].text", "text", "system", body["system"][0]["text"].encode()))
    for i, message in enumerate(body["messages"]):
        role = message["role"]
        if "reasoning_content" in message:
            place = f"messages[{i}].reasoning_content"
            rows.append((place, "thought", role, message["reasoning_content"].encode()))
        content = message["content"]
        place = f"messages[{i}].content"
        if isinstance(content, str):
            rows.append((place, "text", role, content.encode()))
        else:
            for j, block in enumerate(content):
                if block["type"] == "text":
                    rows.append((f"{place}[{j}].text", "text", role, block["text"].encode()))
                else:
                    rows.append((f"{place}[{j}]", block["type"], role, dump(block)))
        for j, call in enumerate(message.get("tool_calls", [])):
            where = f"messages[{i}].tool_calls[{j}].function"
            rows.append((f"{where}.name", "text", role, call["function"]["name"].encode()))
            rows.append(
                (f"{where}.arguments", "call", role, call["function"]["arguments"].encode())
            )
    return rows


def first_difference(before: JSON, after: JSON, wire: str) -> tuple[str, int | None]:
    for old, new in zip(flatten(before, wire), flatten(after, wire), strict=False):
        if old[1:] == new[1:]:
            continue
        if old[1:3] != new[1:3]:
            return new[0], 0
        at = 0
        for one, other in zip(old[3], new[3], strict=False):
            if one != other:
                break
            at += 1
        return new[0], at
    return "", None


# -- playing -------------------------------------------------------------------------------------


def play(
    cause: str, wire: str, seed: int, vendor: Vendor, shared: tuple[str, list[JSON]], now: float
) -> PlayedSession:
    """A session of some 16 requests, with the cause planted at one of them."""
    rng = random.Random(f"{cause}/{wire}/{seed}")
    system, tools = shared
    clock = (
        f"Now: 2026-11-{rng.randint(1, 28):02} {rng.randint(0, 23):02}:{rng.randint(10, 59)}:07."
    )
    system = f"{system}\n{clock}" if cause == "clock" else system
    if cause == "below_minimum":
        system, tools = words(rng, 120), []
    talk = Talk(system=system, tools=deepcopy(tools), turns=[], model=MODELS[wire][0])
    session = PlayedSession(name=f"{cause}-{wire}-{seed:02}", wire=wire, cause=cause, front=0)
    size = 30 if cause == "below_minimum" else 250
    at_request = rng.randint(6, 9)
    before: JSON | None = None
    planted, planted_at = False, 0
    for number in range(1, 15):
        is_turn = number % 3 == 1
        if is_turn:
            turn = {"kind": "user", "text": f"Question {number}: {words(rng, size)}"}
            if cause == "image" and number == 1:
                turn["image"] = PIXEL
            talk.turns.append(turn)
        compacted = False
        wants = cause not in ("below_minimum", "fan_out") and number >= at_request
        wants = wants and (is_turn or cause not in ("thinking", "model", "parameter", "idle"))
        cache = None
        name = ""
        if cause == "trimmed" and number >= at_request:
            name, talk.turns = cause, _trim(talk.turns)
        elif wants and not planted:
            planted, planted_at, name = True, number, cause
            now, compacted, cache = plant(cause, talk, rng, now, wire, vendor)
        if cause == "below_minimum" and number > 1:
            name = cause
        if cause == "other_machine" and planted and number == planted_at + 1:
            # Back on the first machine, which never saw the request before.
            name = cause
        body = write_body(talk, wire)
        usage, total, read, end = vendor.ask(body, talk.model, now, cache)
        session.front = session.front or vendor.front(body, talk.model)
        place, offset = first_difference(before, body, wire) if before else ("", None)
        session.requests.append(Played(
            body=body, usage=usage, at=now, ended=now + 2.5, step="turn" if is_turn else "loop",
            model=talk.model, input=total, read=read, end=end, planted=name, place=place,
            offset=offset, thought=True, compacted=compacted, number=number,
        ))  # fmt: skip
        before = body
        now += 4 + rng.random() * 20
        _answer(talk, rng, number, size, is_last=number % 3 == 0)
    if cause == "fan_out":
        _fan_out(session, talk, rng, vendor, wire, now)
    return session


def _answer(talk: Talk, rng: random.Random, number: int, size: int, *, is_last: bool) -> None:
    answer: JSON = {
        "kind": "answer", "text": f"Step {number}: {words(rng, size // 4)}.\n",
        "thinking": words(rng, size // 5),
    }  # fmt: skip
    talk.turns.append(answer)
    if is_last:
        return
    tool = talk.tools[0]["name"] if talk.tools else "look"
    arguments = {"path": words(rng, 1), "limit": number}
    answer |= {"call": f"call_{number}", "tool": tool, "arguments": arguments}
    text = words(rng, size)
    talk.turns.append({"kind": "result", "call": f"call_{number}", "tool": tool, "text": text})


def _trim(turns: list[JSON]) -> list[JSON]:
    """Without the oldest question and all that belongs to it."""
    start = next((i for i, t in enumerate(turns) if i and t["kind"] == "user"), 0)
    return turns[start:] if start else turns[3:] if len(turns) > 5 else turns


def plant(
    cause: str, talk: Talk, rng: random.Random, now: float, wire: str, vendor: Vendor
) -> tuple[float, bool, Any]:
    """Breaks the conversation in one way; gives the time, and a cache if it is another one."""
    earlier = [t for t in talk.turns[:-1] if t["kind"] == "answer"]
    match cause:
        case "idle":
            now += 4_000 + rng.random() * 4_000
        case "clock":
            kind = rng.choice(("uuid", "time", "date"))
            head = talk.system.rpartition("\n")[0]
            fresh = {
                "uuid": f"Now: 2026-11-29 {rng.randint(0, 23):02}:{rng.randint(10, 59)}:41.",
                "time": f"Now: 2026-11-30 {rng.randint(0, 23):02}:{rng.randint(10, 59)}:19.",
                "date": f"Now: 2026-12-0{rng.randint(1, 9)} 08:{rng.randint(10, 59)}:33.",
            }
            talk.system = f"{head}\n{fresh[kind]}"
        case "tools_reordered":
            order = talk.tools[:]
            while order == talk.tools:
                rng.shuffle(order)
            talk.tools = order
        case "tools_changed":
            match rng.choice(("add", "remove", "edit")):
                case "add":
                    tool = {**talk.tools[0], "name": "added_tool"}
                    talk.tools.insert(rng.randint(0, len(talk.tools)), tool)
                case "remove":
                    talk.tools.pop(rng.randint(0, len(talk.tools) - 2))
                case _:
                    tool = talk.tools[rng.randint(0, len(talk.tools) - 1)]
                    tool["description"] += " Beware."
        case "first_message":
            first = next(t for t in talk.turns if t["kind"] == "user")
            first["text"] = f"<reminder>{words(rng, 12)}</reminder>\n{first['text']}"
        case "history_edited":
            results = [t for t in talk.turns[:-1] if t["kind"] == "result"]
            rng.choice(results[:-1] or results)["text"] = "[old result cleared]"
        case "image":
            first = next(t for t in talk.turns if t.get("image"))
            if rng.random() < 0.5:
                del first["image"]
            else:
                first["image"] = first["image"][:-4] + "BBBB"
        case "thinking":
            for answer in earlier[-3:]:
                answer.pop("thinking", None)
        case "parameter":
            talk.effort = "low"
        case "model":
            talk.model = MODELS[wire][1]
        case "compaction":
            # Some programs keep the newest turns as they are, others nothing but the question.
            kept = talk.turns[-3:]
            if talk.turns[-1]["kind"] == "user" and rng.random() < 0.5:
                kept = talk.turns[-1:]
            if kept[0]["kind"] == "result":
                kept = talk.turns[-2:]
            summary = {"kind": "user", "text": f"Summary so far: {words(rng, 90)}"}
            talk.turns = [summary, *deepcopy(kept)]
            return now, True, None
        case "whitespace":
            answer = rng.choice(earlier)
            answer["text"] = answer["text"].rstrip("\n")
        case "other_machine":
            return now, False, type(vendor.cache(write_body(talk, wire)))()
        case _:
            raise ValueError(cause)
    return now, False, None


def _fan_out(
    session: PlayedSession, talk: Talk, rng: random.Random, vendor: Vendor, wire: str, now: float
) -> None:
    """Two subagents with the same long brief, the second sent before the first is answered."""
    brief = {"kind": "user", "text": f"Brief: {words(rng, 1500)}"}
    system = f"You are a subagent. {words(rng, 2600)}"
    bodies = []
    for task in ("north", "south"):
        own = Talk(system=system, tools=talk.tools, model=talk.model, turns=[
            brief, {"kind": "answer", "text": "Ready.\n"},
            {"kind": "user", "text": f"Look at the {task} side. {words(rng, 40)}"},
        ])  # fmt: skip
        bodies.append(write_body(own, wire))
    untouched = deepcopy(vendor.cache(bodies[0]))
    for index, (body, cache) in enumerate(zip(bodies, (None, untouched), strict=True)):
        usage, total, read, end = vendor.ask(body, talk.model, now + index, cache)
        session.requests.append(Played(
            body=body, usage=usage, at=now + index, ended=now + index + 9, step="turn",
            model=talk.model, input=total, read=read, end=end, agent=("north", "south")[index],
            planted="fan_out" if index else "", number=len(session.requests) + 1,
        ))  # fmt: skip
    del rng


# -- recording -----------------------------------------------------------------------------------


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def record_bodies(session: PlayedSession, folder: Path) -> None:
    """A log of bodies with their answers."""
    lines = []
    for request in session.requests:
        key = "usageMetadata" if session.wire == "gemini" else "usage"
        lines.append({
            "timestamp": iso(request.at), "ended_at": iso(request.ended),
            "session_id": session.name, "agent_id": request.agent, "provider": session.wire,
            "model": request.model, "request": {"body": request.body},
            "response": {"status_code": 200, "body": {key: request.usage}},
        })  # fmt: skip
    _write(folder / f"{session.name}.jsonl", lines)


def record_usage(session: PlayedSession, folder: Path) -> None:
    """Figures alone."""
    key = "usageMetadata" if session.wire == "gemini" else "usage"
    lines = [
        {
            "timestamp": iso(r.at), "session_id": session.name, "agent_id": r.agent,
            "provider": session.wire, "model": r.model, key: r.usage,
        }
        for r in session.requests
    ]  # fmt: skip
    _write(folder / f"{session.name}.jsonl", lines)


def record_transcript(session: PlayedSession, folder: Path) -> None:
    """What the usual program of each vendor would have written."""
    by_agent: dict[str, list[Played]] = {}
    for request in session.requests:
        by_agent.setdefault(request.agent, []).append(request)
    record = {"anthropic": _claude, "openai": _codex, "gemini": _gemini_cli}[session.wire]
    for agent, requests in by_agent.items():
        record(session, agent, requests, folder)


def _claude(session: PlayedSession, agent: str, requests: list[Played], folder: Path) -> None:
    lines: list[JSON] = []
    last: str | None = None

    def put(kind: str, at: float, **fields: Any) -> None:
        nonlocal last
        uuid = f"{session.name}-{agent}-{len(lines)}"
        lines.append({
            "type": kind, "uuid": uuid, "parentUuid": last, "sessionId": session.name,
            "isSidechain": bool(agent), "timestamp": iso(at), "version": "2.1.40",
            **({"agentId": agent} if agent else {}), **fields,
        })  # fmt: skip
        last = uuid

    for number, request in enumerate(requests):
        if request.compacted:
            put("system", request.at - 0.2, subtype="compact_boundary")
        if request.step == "turn":
            put("user", request.at, message={"role": "user", "content": "xxxx"})
        else:
            content = [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]
            put("user", request.at, message={"role": "user", "content": content})
        name = f"msg_{session.name}_{agent}_{number}"
        content = [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "x"}]
        for block in content:
            put("assistant", request.ended, requestId=f"req_{name}", message={
                "id": name, "role": "assistant", "model": request.model, "content": [block],
                "usage": request.usage,
            })  # fmt: skip
    place = folder / session.name / "subagents" / f"agent-{agent}.jsonl" if agent else (
        folder / f"{session.name}.jsonl"
    )  # fmt: skip
    _write(place, lines)


def _codex(session: PlayedSession, agent: str, requests: list[Played], folder: Path) -> None:
    thread = f"{session.name}-{agent}" if agent else session.name
    lines: list[JSON] = []

    def put(kind: str, at: float, payload: JSON) -> None:
        lines.append({"timestamp": iso(at), "type": kind, "payload": payload})

    meta = {"id": thread, "session_id": session.name, "model_provider": "openai"}
    put("session_meta", requests[0].at, meta)
    total = 0
    for request in requests:
        effort = request.body["reasoning_effort"]
        if request.compacted:
            put("compacted", request.at - 0.2, {"message": ""})
        if request.step == "turn":
            put("turn_context", request.at, {"model": request.model, "effort": effort})
            put("response_item", request.at, {"type": "message", "role": "user", "content": []})
        else:
            put("response_item", request.at, {"type": "function_call_output", "call_id": "c"})
        put("response_item", request.ended, {"type": "reasoning", "summary": []})
        put("response_item", request.ended, {"type": "function_call", "name": "x", "call_id": "c"})
        total += request.input + 60
        usage = {
            "input_tokens": request.input, "cached_input_tokens": request.read,
            "output_tokens": 60, "total_tokens": request.input + 60,
        }  # fmt: skip
        info = {"total_token_usage": {**usage, "total_tokens": total}, "last_token_usage": usage}
        put("event_msg", request.ended, {"type": "token_count", "info": info})
    _write(folder / f"rollout-{thread}.jsonl", lines)


def _gemini_cli(session: PlayedSession, agent: str, requests: list[Played], folder: Path) -> None:
    messages: list[JSON] = []
    for number, request in enumerate(requests):
        if request.step == "turn":
            messages.append({
                "id": f"u{number}", "type": "user", "timestamp": iso(request.at), "content": "x",
            })  # fmt: skip
        else:
            call = {"id": "c", "name": "x", "args": {}, "timestamp": iso(request.at)}
            messages[-1]["toolCalls"] = [call]
        messages.append({
            "id": f"{session.name}{agent}{number}", "type": "gemini", "content": "x",
            "timestamp": iso(request.ended), "model": request.model, "thoughts": [{"subject": "x"}],
            "tokens": {"input": request.input, "output": 60, "cached": request.read,
                       "thoughts": 0, "tool": 0, "total": request.input + 60},
        })  # fmt: skip
    document = {
        "sessionId": session.name, "projectHash": "p", "startTime": iso(requests[0].at),
        "lastUpdated": iso(requests[-1].at), "messages": messages,
        **({"kind": "subagent"} if agent else {}),
    }  # fmt: skip
    place = folder / f"session-{session.name}{agent}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(document, indent=1), "utf-8")


def _write(place: Path, lines: list[JSON]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    place.write_text(text, "utf-8")


def play_group(cause: str, wire: str, count: int, seed: int = 0) -> list[PlayedSession]:
    """Sessions of one program, which share its tools and its system prompt, a minute apart."""
    rng = random.Random(f"{wire}/{cause}/{seed}")
    shared = (words(rng, 3600), make_tools(rng))
    vendor, now, sessions = Vendor(wire), START, []
    for number in range(count):
        session = play(cause, wire, seed + number, vendor, shared, now)
        sessions.append(session)
        now = session.requests[-1].at + 30
    return sessions
