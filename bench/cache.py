"""Re-processed tokens, broken prefixes, hit rate and cost: Lamina against what people use today.

    python bench/cache.py --data FOLDER [--json FILE] [--quick]

Every row plays the same conversations with the same counts in one run. `ratio` is re-processed
tokens over the physical limit: each token once, and the live prompt again after an expired cache
lifetime. Costs are in tokens of fresh input, under Anthropic's and OpenAI's rules.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from accounting import Account, account, best_hit_rate, physical_limit
from peers import rows as peer_rows
from played import Conversation, recorded, scenarios
from reporting import LAZY, report, verdict
from rows import LaminaPlayer, Naive, Player, RowPlayer

WINDOWS: tuple[int | None, ...] = (None, 200_000, 32_000)


def players() -> list[Player]:
    peers: list[Player] = [RowPlayer(build()) for build in peer_rows()]
    variants: list[Player] = [
        LaminaPlayer("lazy", "forgetting while cold", prune_cold_above=0.7),
        LaminaPlayer("lazy", "summing up", sums_up=True),
    ]
    return [RowPlayer(Naive()), LaminaPlayer("eager"), LaminaPlayer("lazy"), *variants, *peers]


def play(
    conversations: Sequence[Conversation], everyone: Sequence[Player], windows: Sequence[int | None]
) -> list[dict[str, object]]:
    results: list[dict[str, object]] = []
    start = time.monotonic()
    for number, conversation in enumerate(conversations, 1):
        limit = physical_limit(conversation)
        free = next(list(p.play(conversation, None)) for p in everyone if p.name == LAZY)
        best = {window: best_hit_rate(free, window) for window in windows if window}
        for window in windows:
            for player in everyone:
                if sys.stderr.isatty():
                    line = (
                        f"{number}/{len(conversations)} {conversation.name} {window} {player.name}"
                    )
                    print(
                        f"\r\x1b[K{line} ({time.monotonic() - start:.0f} s)",
                        end="",
                        file=sys.stderr,
                    )
                result = account(player.play(conversation, window), window)
                record = _record(conversation, window, player, result, limit)
                results.append(record | {"best_hit_rate": round(best.get(window or 0, 0.0), 4)})
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    return results


def _record(
    conversation: Conversation, window: int | None, player: Player, result: Account, limit: int
) -> dict[str, object]:
    return {
        "conversation": conversation.name,
        "window": window,
        "row": player.name,
        "requests": result.requests,
        "prompt_tokens": result.prompt,
        "reprocessed": result.reprocessed,
        "limit": limit,
        "ratio": round(result.reprocessed / limit, 4),
        "breaks": result.breaks,
        "hit_rate": round(result.hit_rate, 4),
        "cost_anthropic": round(result.anthropic),
        "cost_openai": round(result.openai),
        "prunes": result.pruned,
        "answers": result.answers,
        "answers_kept": result.answers_kept,
        "over_window": result.over,
        "lost": result.lost,
        "largest": result.largest,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--data",
        type=Path,
        help="folder with sessions/shapes.jsonl; without it only the scenarios run",
    )
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    parser.add_argument(
        "--quick", action="store_true", help="20-turn scenarios and six shapes only"
    )
    args = parser.parse_args()

    everyone = players()
    attach = list(scenarios((20,) if args.quick else (20, 40, 60)))
    shapes = list(recorded(args.data / "sessions" / "shapes.jsonl")) if args.data else []
    if args.quick:
        shapes = shapes[::8]
    print(
        f"Python {platform.python_version()}; "
        + "; ".join(dict.fromkeys(p.version for p in everyone))
    )
    results = play(attach, everyone, WINDOWS)
    report("Attach scenarios", attach, results, everyone)
    if shapes:
        more = play(shapes, everyone, WINDOWS)
        report(
            f"Recorded shapes ({len(shapes)} sessions)",
            shapes,
            more,
            everyone,
            per_conversation=False,
        )
        results += more
    has_passed = verdict(results, {c.name for c in attach}, {c.name for c in shapes})
    if args.json:
        versions = {player.name: player.version for player in everyone}
        args.json.write_text(
            json.dumps({"versions": versions, "claims": has_passed, "results": results}, indent=1)
            + "\n"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
