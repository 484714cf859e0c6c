/** The keys that are registered, by group, as the sheet lists them. */

import type { Key } from "../../lib/keys.svelte";

export interface KeyGroup {
  name: string;
  rows: { keys: string; label: string }[];
}

const FIRST = "Everywhere";
const SECOND = "Go";

/** Keys that do the same stand on one line; a key that a screen took over is shown with what it does now. */
export function groupKeys(all: readonly Pick<Key, "keys" | "label" | "group" | "hidden" | "when">[]): KeyGroup[] {
  const taken = new Set<string>();
  const groups = new Map<string, { keys: string; label: string }[]>();
  // The youngest goes first, as when a key is pressed.
  for (const key of all.toReversed()) {
    if (key.hidden || taken.has(key.keys) || key.when?.() === false) continue;
    taken.add(key.keys);
    groups.set(key.group, [{ keys: key.keys, label: key.label }, ...(groups.get(key.group) ?? [])]);
  }
  const weight = (name: string): number => (name === FIRST ? 2 : name === SECOND ? 1 : 0);
  // What belongs to the screen at hand is what one looks for.
  return [...groups]
    .map(([name, rows]) => ({ name, rows }))
    .toReversed()
    .sort((a, b) => weight(a.name) - weight(b.name));
}
