"""Does stable text mean a stable prefix cache? Two interleaved sessions on the embedded model.

Each turn's cached tokens are predicted from what was sent and received, then compared with
what llama.cpp reports. Exits with 1 if a prediction from token ids is wrong.
"""

import argparse
import json
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xllamacpp

SYSTEM = "You are a careful assistant. Answer from the attached notes, in one or two sentences."
NOTES = (
    ("harbour.md", "Berth {0} is kept for boats of {0} metres; the office opens at seven.\n"),
    ("garden.md", "Bed {0} holds beans. Water it every {0} days, early, never at noon.\n"),
)
QUESTIONS = (
    "What is this note about?",
    "Name one number in it.",
    "Why might that matter?",
    "Say it in other words.",
    "Thank you. Anything else?",
)


class Model:
    def __init__(self, path: Path) -> None:
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx, params.n_parallel, params.verbosity = 8192, len(NOTES), -1
        params.cache_ram_mib = 0  # else a second cache, in RAM, restores what the slot lost
        self.server = xllamacpp.Server(params)
        # The server runs in this process: a proxy from the environment must not be asked.
        self.http = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def tokens(self, text: str) -> list[int]:
        body = json.dumps({"content": text, "add_special": True, "parse_special": True}).encode()
        request = urllib.request.Request(
            f"{self.server.listening_address}/tokenize", body, {"Content-Type": "application/json"}
        )
        with self.http.open(request) as reply:
            ids: list[int] = json.load(reply)["tokens"]
        return ids

    def chat(self, messages: list[dict[str, str]], slot: int) -> dict[str, Any]:
        # `verbose` adds the rendered prompt and, with `return_tokens`, the generated ids.
        reply: dict[str, Any] = self.server.handle_chat_completions(
            {
                "messages": messages,
                "id_slot": slot,
                "max_tokens": 48,
                "temperature": 0.0,
                "verbose": True,
                "return_tokens": True,
            }
        )
        return reply


def common(a: Sequence[int], b: Sequence[int]) -> int:
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


def common_text(a: str, b: str) -> str:
    return a[: common([ord(char) for char in a], [ord(char) for char in b])]


def probe(model: Model) -> list[dict[str, Any]]:
    history = [[{"role": "system", "content": SYSTEM}] for _ in NOTES]
    slots: list[list[int]] = [[] for _ in NOTES]  # token ids in each slot
    requests = ["" for _ in NOTES]  # rendered text of each session's last request
    rows: list[dict[str, Any]] = []
    for turn, question in enumerate(QUESTIONS, 1):
        for slot, (name, line) in enumerate(NOTES):
            note = "".join(line.format(n) for n in range(2, 18))
            attachment = f'<note path="{name}">\n{note}</note>\n\n' if turn == 1 else ""
            history[slot].append({"role": "user", "content": attachment + question})
            reply = model.chat(history[slot], slot)
            raw, choice = reply["__verbose"], reply["choices"][0]
            prompt = model.tokens(raw["prompt"])
            rows.append(
                {
                    "session": slot,
                    "turn": turn,
                    "prompt": reply["usage"]["prompt_tokens"],
                    # At least one token is processed again: its logits start the answer.
                    "predicted": min(common(slots[slot], prompt), len(prompt) - 1),
                    "by_text": len(model.tokens(common_text(requests[slot], raw["prompt"]))),
                    "reported": reply["usage"]["prompt_tokens_details"]["cached_tokens"],
                    "finish": choice["finish_reason"],
                    "ms": round(reply["timings"]["prompt_ms"]),
                }
            )
            # The last generated token was sampled but never decoded: the slot lacks it.
            slots[slot], requests[slot] = prompt + raw["tokens"][:-1], raw["prompt"]
            history[slot].append({"role": "assistant", "content": choice["message"]["content"]})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="a GGUF with a chat template")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    args = parser.parse_args()
    rows = probe(Model(args.model))
    for cells in (list(rows[0]), *(list(row.values()) for row in rows)):
        print(*(f"{cell:>9}" for cell in cells))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    right = sum(row["predicted"] == row["reported"] for row in rows)
    print(f"{right} of {len(rows)} turns as predicted from token ids")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
