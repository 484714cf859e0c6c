/** Targets as people look for them: what they cost, how much they take, and in which order. */

import type { Shapes } from "../../lib/types";

export type Choice = Shapes["TargetChoice"];

/** Dollars per million tokens; nobody's guess: unknown stays unknown. */
export function perMillion(price: number | null | undefined): string {
  if (price == null) return "unknown";
  if (price === 0) return "free";
  return `$${price < 0.1 ? price.toFixed(3) : price < 10 ? price.toFixed(2) : price.toFixed(price % 1 ? 1 : 0)}`;
}

export function lifetime(seconds: number | null | undefined): string {
  if (seconds == null) return "while it runs";
  if (seconds === 0) return "no cache";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** All words have to be there, in any order. */
export function found(choices: readonly Choice[], words: string, readyOnly: boolean): Choice[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return choices.filter(
    (choice) => (!readyOnly || !choice.missing) && wanted.every((word) => choice.target.target.toLowerCase().includes(word)),
  );
}

const weight = (choice: Choice): number => (choice.missing ? 4 : 0) + (choice.is_family ? 2 : 0) + (choice.provider === "local" ? 0 : 1);

/** Those that can be asked now first, names before families, this machine before others. */
export const ordered = (choices: readonly Choice[]): Choice[] => choices.toSorted((a, b) => weight(a) - weight(b));

/** What is in the way of a target, in a few words for a list. */
export function lackOf(row: Choice): string {
  const known: Record<string, string> = { key_missing: "no key yet", model_missing: "not fetched yet" };
  return known[row.missing_code] ?? row.missing.split(":")[0] ?? "";
}
