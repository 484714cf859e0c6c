"""Tables and claims of the cache benchmark."""

from collections.abc import Sequence
from typing import Any

from played import Conversation

LAZY = "Lamina lazy"
# Differences below this share are noise: a token or two per message, steps of 128.
SLACK = 0.005


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
            f"{'row':<46}{'ratio':>7}{'breaks':>8}{'hits':>8}{'Anthropic':>13}{'OpenAI':>13}{'over':>6}{'lost':>6}{'kept':>7}"
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


def _cost_ratios(results: list[dict[str, Any]], window: int | None) -> dict[str, Any]:
    """Each row's cost over that of lazy, on the conversations where the row kept within the window
    and sent every question; those of the others are only counted."""
    by = {(r["conversation"], r["row"]): r for r in results if r["window"] == window}
    ratios: dict[str, Any] = {}
    for row in dict.fromkeys(name for _, name in by):
        mine = [r for (_, name), r in by.items() if name == row]
        fair = [r for r in mine if not r["over_window"] and not r["lost"]]
        ratios[row] = {"fair": f"{len(fair)} of {len(mine)}"} | {
            vendor: round(
                sum(r[key] for r in fair) / sum(by[r["conversation"], LAZY][key] for r in fair), 3
            )
            for vendor, key in (("Anthropic", "cost_anthropic"), ("OpenAI", "cost_openai"))
            if fair
        }
    return ratios


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
        "answers",
        "answers_kept",
    )
    total: dict[str, Any] = {key: sum(row[key] for row in rows) for key in keys}
    total["ratio"] = total["reprocessed"] / total["limit"]
    total["hit_rate"] = 1 - total["reprocessed"] / total["prompt_tokens"]
    return total


def _cells(total: dict[str, Any]) -> str:
    return (
        f"{total['ratio']:>7.2f}{total['breaks']:>8}{total['hit_rate']:>8.3f}"
        f"{total['cost_anthropic']:>13,}{total['cost_openai']:>13,}"
        f"{total['over_window']:>6}{total['lost']:>6}"
        f"{total['answers_kept'] / (total['answers'] or 1):>7.3f}"
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
                    "mean of an ideal pruner": round(
                        sum(attainable[key] for key in keys) / len(keys), 4
                    ),
                    "below 0.97": f"{sum(shares[key] < 0.97 for key in keys)} of {len(keys)}",
                    "of an ideal pruner below 0.97": sum(attainable[key] < 0.97 for key in keys),
                }
    behind = []
    for r in lazy:
        for other in results:
            same = other["conversation"] == r["conversation"] and other["window"] == r["window"]
            # A row that overflows the window or leaves the question out is not in the race.
            own = other["row"].startswith(f"{LAZY},")
            if not same or other["row"] == LAZY or own or other["over_window"] or other["lost"]:
                continue
            worse = []
            if r["prunes"] and other["hit_rate"] > r["hit_rate"] + SLACK:
                worse.append("hit_rate")
            if not r["prunes"] and r["reprocessed"] > (1 + SLACK) * other["reprocessed"]:
                worse.append("reprocessed")
            # Whoever throws more of the context away pays less for the rest of it.
            if other["prompt_tokens"] >= (1 - SLACK) * r["prompt_tokens"]:
                costs = ("cost_anthropic", "cost_openai")
                worse += [key for key in costs if r[key] > (1 + SLACK) * other[key]]
            if worse:
                behind.append((r["conversation"], r["window"], other["row"], worse))
    for window in dict.fromkeys(r["window"] for r in lazy):
        claims[f"total cost over lazy's, window {window or 'none'}"] = _cost_ratios(results, window)
    claims["behind another row (most lenient rule, see RESULTS.md)"] = len(behind)
    print("\n## Claims\n")
    for name, value in claims.items():
        if not isinstance(value, dict):
            print(f"{name}: {value}")
            continue
        print(f"{name}:")
        for key, inner in value.items():
            text = (
                inner
                if not isinstance(inner, dict)
                else ", ".join(f"{word} {figure}" for word, figure in inner.items())
            )
            print(f"  {key}: {text}")
    for case in behind[:40]:
        print("  behind:", *case)
    claims["behind"] = [list(map(str, case)) for case in behind]
    return claims
