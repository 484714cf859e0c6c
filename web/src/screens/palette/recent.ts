/** Recent choices in the palette, latest first; stored in the browser. */

const STORED = "lamina.palette";
const MOST = 8;

export function recentOf(before: readonly string[], id: string): string[] {
  return [id, ...before.filter((entry) => entry !== id)].slice(0, MOST);
}

export function readRecent(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(STORED) ?? "[]");
    return Array.isArray(kept) ? kept.filter((each): each is string => typeof each === "string") : [];
  } catch {
    return [];
  }
}

export function keepRecent(ids: readonly string[]): void {
  try {
    localStorage.setItem(STORED, JSON.stringify(ids));
  } catch {
    // Without browser storage there are no recent choices next time.
  }
}
