/** The `@` being typed: where it begins and what follows it. */

export interface Mention {
  start: number;
  end: number;
  query: string;
}

/** The mention at the caret. An address such as a@b.c is not a mention. */
export function mentionAt(text: string, caret: number): Mention | null {
  const before = text.slice(0, caret);
  const found = /(?:^|[\s([{"'])@("[^"\n]*|[^\s"]*)$/.exec(before);
  if (!found) return null;
  const typed = found[1] ?? "";
  return { start: caret - typed.length - 1, end: caret, query: typed.replace(/^"/, "") };
}

/** The text with the mention replaced by the choice, and the new caret position. */
export function complete(text: string, mention: Mention, insert: string): { text: string; caret: number } {
  const inside = insert.startsWith("@") ? insert : `@${insert}`;
  const rest = text.slice(mention.end);
  // A folder can be completed further: no space after it.
  const gap = inside.endsWith("/") || /^\s/.test(rest) ? "" : " ";
  return { text: text.slice(0, mention.start) + inside + gap + rest, caret: mention.start + inside.length + gap.length };
}

/** A dropped text quoted in a message, so that nothing in it ends the quote. */
export function quote(name: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return `${name ? `${name}:\n` : ""}${fence}\n${text.replace(/\n$/, "")}\n${fence}\n`;
}
