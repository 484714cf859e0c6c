/** A note for reading: without its head, with working links and highlighted search words. */

export interface Link {
  /** The link as written, without brackets and display text. */
  link: string;
  /** The linked file; empty if the link is broken. */
  path: string;
  anchor: string;
}

/** A note without its YAML head, and how many lines that was. */
export function bodyOf(text: string): { body: string; skipped: number } {
  const head = /^---[ \t]*\r?\n[\s\S]*?\n---[ \t]*(?:\r?\n|$)/.exec(text)?.[0] ?? "";
  return { body: text.slice(head.length), skipped: head.split("\n").length - 1 };
}

const FENCE = /^(\s*)(`{3,}|~{3,})/;
const WIKI = /(!?)\[\[([^\]|\n]+)(?:\|([^\]\n]*))?\]\]/g;
const INLINE = /(!?)\[([^\]\n]*)\]\(<?([^)>\s]+)>?(?:\s+"[^"]*")?\)/g;

const quote = (text: string): string => text.replace(/[[\]\\]/g, "\\$&");

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The same Markdown, with links to notes as links within the app. Broken links are crossed out; code stays as
 * it is. */
export function linked(text: string, links: readonly Link[], to: (path: string, anchor: string) => string): string {
  const known = new Map<string, Link>();
  for (const link of links) {
    known.set(link.link, link);
    known.set(decoded(link.link), link);
  }
  const find = (target: string): Link | undefined => known.get(target) ?? known.get(decoded(target)) ?? known.get(target.split("#")[0] ?? "");
  let fence = "";
  return text
    .split("\n")
    .map((line) => {
      const mark = FENCE.exec(line)?.[2];
      if (fence) {
        if (mark?.startsWith(fence)) fence = "";
        return line;
      }
      if (mark) {
        fence = mark;
        return line;
      }
      // Text between backticks is code: only the pieces outside are processed.
      return line
        .split(/(`+[^`]*`+)/)
        .map((piece, place) => (place % 2 ? piece : piece.replace(WIKI, wiki).replace(INLINE, inline)))
        .join("");
    })
    .join("\n");

  function wiki(_whole: string, embed: string, target: string, shown?: string): string {
    const words = quote((shown ?? target).trim());
    const link = find(target.trim());
    if (!link?.path) return `~~${words}~~`;
    return `[${embed ? `▸ ${words}` : words}](${to(link.path, link.anchor)})`;
  }

  function inline(whole: string, embed: string, words: string, target: string): string {
    if (embed || /^(https?:|#|mailto:)/i.test(target)) return whole;
    const link = find(target);
    if (!link) return whole;
    return link.path ? `[${words}](${to(link.path, link.anchor)})` : `~~${words}~~`;
  }
}

export interface Piece {
  text: string;
  hit: boolean;
}

/** A passage in pieces; search words are hits. */
export function marked(text: string, query: string): Piece[] {
  const typed = query.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? [];
  // Singular and plural: `key` also matches `keys`, and vice versa.
  const words = [...new Set(typed.map((word) => (word.length > 3 ? word.replace(/s$/, "") : word)))];
  if (!words.length) return [{ text, hit: false }];
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])((?:${words.join("|")})[\\p{L}\\p{N}]{0,3})(?![\\p{L}\\p{N}])`, "giu");
  return text
    .split(pattern)
    .map((piece, place) => ({ text: piece, hit: place % 2 === 1 }))
    .filter((piece) => piece.text !== "");
}

/** Markdown as plain text, for a line or two in a list. */
export function plainOf(text: string): string {
  return text
    .replace(/^(`{3,}|~{3,}).*$/gm, "")
    .replace(/!?\[\[([^\]|\n]+)(?:\|([^\]\n]*))?\]\]/g, (_whole, target: string, shown?: string) => shown || target)
    .replace(/!?\[([^\]\n]*)\]\([^)\n]*\)/g, "$1")
    .replace(/^\s{0,3}(#{1,6}\s+|>\s?|[-*+]\s+(\[[ x]\]\s+)?)/gm, "")
    .replace(/(\*\*|__|`+)(?=\S)(.*?\S)\1/g, "$2")
    .replace(/\s+/g, " ")
    .trim();
}

/** A passage shortened for a list, starting at its first hit. */
export function excerpt(text: string, query: string, most = 320): string {
  const flat = plainOf(text);
  if (flat.length <= most) return flat;
  const before = marked(flat, query);
  const at = before[0]?.hit === false && before.length > 1 ? before[0].text.length : 0;
  const from = at > most - 80 ? flat.lastIndexOf(" ", at - 60) + 1 : 0;
  const cut = flat.slice(from, from + most);
  return `${from ? "… " : ""}${cut}${from + most < flat.length ? "…" : ""}`;
}

/** The name of a note without its folders. */
export const nameOf = (path: string): string => path.split("/").at(-1)?.replace(/\.md$/i, "") ?? path;
/** All folders of some files, including parent folders. */
export function foldersOf(paths: readonly string[]): string[] {
  const folders = new Set<string>();
  for (const path of paths) {
    for (let folder = folderOf(path); folder; folder = folderOf(folder)) folders.add(folder);
  }
  return [...folders].sort();
}

export const folderOf = (path: string): string => path.split("/").slice(0, -1).join("/");
