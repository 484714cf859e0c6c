/** Usage in words. The server omits fields that have their default: a missing `cached` is a reported 0, unless
 * `cache_reported` says that the cache was not reported. */

import { cachedShare, money, percent, seconds, short, UNKNOWN } from "./numbers";
import type { Shapes } from "./types";

export interface Figures {
  usage: Shapes["Usage"] | null;
  cost: number | null;
  first_s: number | null;
  total_s: number | null;
}

/** How much of the input was read from a cache; null if unreported. */
export function cachedOf(usage: Partial<Shapes["Usage"]>): number | null {
  return (usage.cache_reported ?? true) ? (usage.cached ?? 0) : null;
}

/** `in 16.1k (91% cached) · out 88 · 0.7 s · $0.004`. What was reported is priced, not guessed: no tilde. */
export function usageLine({ usage, cost, total_s }: Figures): string {
  const input = usage?.input ?? 0;
  // A request always has an input: one of 0 was stopped before it was counted.
  if (!usage || input === 0) return "usage not reported";
  const share = cachedShare(input, cachedOf(usage));
  const cached = share === null ? `cached ${UNKNOWN}` : `${percent(share)} cached`;
  const parts = [`in ${short(input)} (${cached})`, `out ${short(usage.output ?? 0)}`];
  if (total_s) parts.push(seconds(total_s));
  parts.push(cost === null ? "price unknown" : money(cost, { estimated: false }));
  return parts.join(" · ");
}
