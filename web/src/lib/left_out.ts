/** Omitted items, one line per reason: eleven files without room make one line. */

import type { Shapes } from "./types";

export interface LeftOutGroup {
  why: string;
  names: string[];
  tokens: number;
}

export function groupLeftOut(rows: readonly Shapes["LeftOut"][]): LeftOutGroup[] {
  const groups = new Map<string, LeftOutGroup>();
  for (const row of rows) {
    const why = row.detail || row.reason.replaceAll("_", " ");
    const group = groups.get(why) ?? { why, names: [], tokens: 0 };
    group.names.push(row.what.replace(/^[a-z]+:/, ""));
    group.tokens += row.tokens ?? 0;
    groups.set(why, group);
  }
  return [...groups.values()];
}
