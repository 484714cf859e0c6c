/** The registered shortcuts by group, as the sheet lists them. */

import type { Key } from "../../lib/keys.svelte";

export interface KeyGroup {
  name: string;
  rows: { keys: string; label: string }[];
}

const FIRST = "Everywhere";
const SECOND = "Go";

/** Shortcuts with the same action share a line; a shortcut overridden by a screen shows its current action. */
export function groupKeys(all: readonly Pick<Key, "keys" | "label" | "group" | "hidden" | "when">[]): KeyGroup[] {
  const taken = new Set<string>();
  const groups = new Map<string, { keys: string; label: string }[]>();
  // The latest registration comes first, as when a key is pressed.
  for (const key of all.toReversed()) {
    if (key.hidden || taken.has(key.keys) || key.when?.() === false) continue;
    taken.add(key.keys);
    groups.set(key.group, [{ keys: key.keys, label: key.label }, ...(groups.get(key.group) ?? [])]);
  }
  const weight = (name: string): number => (name === FIRST ? 2 : name === SECOND ? 1 : 0);
  // Shortcuts of the current screen come first.
  return [...groups]
    .map(([name, rows]) => ({ name, rows }))
    .toReversed()
    .sort((a, b) => weight(a.name) - weight(b.name));
}
