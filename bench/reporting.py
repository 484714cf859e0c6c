"""Tables and claims of the cache benchmark."""

from collections.abc import Sequence
from typing import Any

from conversations import Conversation

LAZY = "Lamina lazy"


def report(
    title: str,
    conversations: Sequence[Conversation],
    results: list[dict[str, Any]],
    everyone: Sequence[Any],
    *,
    per_conversation: bool = True,
) -> None:
    print(f"\n## {title}")
    for window in dict.fromkeys(result["window"] for result in results):
        print(f"\n### window: {'none' if window is None else f'{window:,}'}\n")
        mine = [r for r in results if r["window"] == window]
        print(
            f"{'row':<46}{'ratio':>7}{'breaks':>8}{'hits':>8}{'Anthropic':>13}{'OpenAI':>13}{'over':>6}{'lost':>6}"
        )
        for player in everyone:
            own = [r for r in mine if r["row"] == player.name]
            print(f"{player.name:<46}" + _cells(_sum(own)))
        if per_conversation:
            print("\nratio by conversation (hit rate where the window binds)")
            for conversation in conversations:
                cells = []
                for player in everyone:
                    r = next(
                        r
                        for r in mine
                        if r["row"] == player.name and r["conversation"] == conversation.name
                    )
                    cells.append(
                        f"{r['ratio']:>8.2f}" if window is None else f"{r['hit_rate']:>8.3f}"
                    )
                print(f"{conversation.name:<24}" + "".join(cells))


def _sum(rows: list[dict[str, Any]]) -> dict[str, Any]:
    keys = (
        "prompt_tokens",
        "reprocessed",
        "limit",
        "breaks",
        "cost_anthropic",
        "cost_openai",
        "over_window",
        "lost",
    )
    total: dict[str, Any] = {key: sum(row[key] for row in rows) for key in keys}
    total["ratio"] = total["reprocessed"] / total["limit"]
    total["hit_rate"] = 1 - total["reprocessed"] / total["prompt_tokens"]
    return total


def _cells(total: dict[str, Any]) -> str:
    return (
        f"{total['ratio']:>7.2f}{total['breaks']:>8}{total['hit_rate']:>8.3f}"
        f"{total['cost_anthropic']:>13,}{total['cost_openai']:>13,}{total['over_window']:>6}{total['lost']:>6}"
    )


def verdict(results: list[dict[str, Any]], attach: set[str], shapes: set[str]) -> dict[str, Any]:
    """The claims, as far as they held."""
    by = {(r["conversation"], r["window"], r["row"]): r for r in results}
    lazy = [r for r in results if r["row"] == LAZY]
    unbound = [r for r in lazy if not r["prunes"]]
    bound = [r for r in lazy if r["prunes"]]
    claims: dict[str, Any] = {}
    for name, group, most in (("scenarios", attach, 1.12), ("shapes", shapes, 1.05)):
        worst = max((r["ratio"] for r in unbound if r["conversation"] in group), default=None)
        if worst is not None:
            claims[f"worst ratio, {name}, window not binding (at most {most})"] = worst
    shares, attainable = {}, {}
    for r in bound:
        key = (r["conversation"], r["window"])
        free = by[r["conversation"], None, LAZY]["hit_rate"]
        shares[key] = r["hit_rate"] / free
        attainable[key] = r["best_hit_rate"] / free
    for window in sorted({window for _, window in shares}):
        for name, group in (("scenarios", attach), ("shapes", shapes)):
            keys = [key for key in shares if key[0] in group and key[1] == window]
            if keys:
                claims[f"hit rate over that without a window, {name}, {window:,}"] = {
                    "mean": round(sum(shares[key] for key in keys) / len(keys), 4),
                    "worst": round(min(shares[key] for key in keys), 4),
                    "mean of a perfect pruner": round(
                        sum(attainable[key] for key in keys) / len(keys), 4
                    ),
                    "below 0.97": f"{sum(shares[key] < 0.97 for key in keys)} of {len(keys)}",
                    "of a perfect pruner below 0.97": sum(attainable[key] < 0.97 for key in keys),
                }
    behind = []
    for r in lazy:
        for other in results:
            same = other["conversation"] == r["conversation"] and other["window"] == r["window"]
            # A row that overflows the window or leaves the question out is not in the race.
            if not same or other["row"] == LAZY or other["over_window"] or other["lost"]:
                continue
            measures = ["reprocessed"] if not r["prunes"] else []
            worse = [
                key
                for key in (*measures, "cost_anthropic", "cost_openai")
                if r[key] > 1.001 * other[key]
            ]
            if r["prunes"] and other["hit_rate"] > r["hit_rate"] + 0.001:
                worse.append("hit_rate")
            if worse:
                behind.append((r["conversation"], r["window"], other["row"], worse))
    claims["behind another row"] = len(behind)
    print("\n## Claims\n")
    for name, value in claims.items():
        print(f"{name}: {value}")
    for each in behind[:40]:
        print("  behind:", *each)
    claims["behind"] = [list(map(str, each)) for each in behind]
    return claims
