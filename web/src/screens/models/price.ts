/** Targets in a list: prices, cache lifetimes, and their order. */

import type { Shapes } from "../../lib/types";

export type Choice = Shapes["TargetChoice"];

/** Dollars per million tokens; unknown stays unknown. */
export function perMillion(price: number | null | undefined): string {
  if (price == null) return "unknown";
  if (price === 0) return "free";
  return `$${price < 0.1 ? price.toFixed(3) : price < 10 ? price.toFixed(2) : price.toFixed(price % 1 ? 1 : 0)}`;
}

export function lifetime(seconds: number | null | undefined): string {
  if (seconds == null) return "while running";
  if (seconds === 0) return "no cache";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** Matches if all words occur, in any order. */
export function found(choices: readonly Choice[], words: string, readyOnly: boolean): Choice[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return choices.filter(
    (choice) => (!readyOnly || !choice.missing) && wanted.every((word) => choice.target.target.toLowerCase().includes(word)),
  );
}

const weight = (choice: Choice): number => (choice.missing ? 4 : 0) + (choice.is_family ? 2 : 0) + (choice.provider === "local" ? 0 : 1);

/** Available targets first, names before families, this machine before others. */
export const ordered = (choices: readonly Choice[]): Choice[] => choices.toSorted((a, b) => weight(a) - weight(b));

/** Why a target is unavailable, in a few words for a list. */
export function lackOf(row: Choice): string {
  const known: Record<string, string> = { key_missing: "no key", model_missing: "not downloaded" };
  return known[row.missing_code] ?? row.missing.split(":")[0] ?? "";
}
