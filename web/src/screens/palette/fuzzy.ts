/** Fuzzy search. Every typed word must occur, its letters in order; beginnings of words and consecutive letters
 * score higher. */

export interface Fuzzy {
  score: number;
  /** The positions of matched letters, from 0. */
  places: number[];
}

const isBoundary = (text: string, place: number): boolean => {
  if (place === 0) return true;
  const [before, here] = [text[place - 1] ?? "", text[place] ?? ""];
  return /[\s/._:#\-›•]/.test(before) || (/\p{Ll}/u.test(before) && /\p{Lu}/u.test(here));
};

/** Matches one word: first as a whole, else letter by letter. */
function word(text: string, lower: string, wanted: string): Fuzzy | null {
  let best: Fuzzy | null = null;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + 1)) {
    const score = 10 * wanted.length + (isBoundary(text, at) ? 20 : 0) + (at === 0 ? 10 : 0);
    if (!best || score > best.score) best = { score, places: Array.from(wanted, (_, step) => at + step) };
  }
  if (best) return best;
  const places: number[] = [];
  let score = 0;
  let from = 0;
  for (const letter of wanted) {
    let at = lower.indexOf(letter, from);
    if (at < 0) return null;
    // Prefer the beginning of a word to a letter inside one, if it is near.
    if (!isBoundary(text, at) && at !== from) {
      for (let next = at; next >= 0; next = lower.indexOf(letter, next + 1)) {
        if (isBoundary(text, next)) {
          at = next;
          break;
        }
      }
    }
    score += at === from && places.length ? 6 : isBoundary(text, at) ? 8 : 1;
    places.push(at);
    from = at + 1;
  }
  // Widely scattered letters match by chance.
  const spread = (places.at(-1) ?? 0) - (places[0] ?? 0) + 1;
  return score * 2 < spread ? null : { score, places };
}

/** The score of a text; null without a match. Without a query all scores are equal. */
export function fuzzy(text: string, query: string): Fuzzy | null {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const lower = text.toLowerCase();
  let score = 0;
  const places = new Set<number>();
  for (const wanted of words) {
    const found = word(text, lower, wanted);
    if (!found) return null;
    score += found.score;
    found.places.forEach((place) => places.add(place));
  }
  // With equal scores prefer the shorter text.
  return { score: words.length ? score - text.length / 100 : 0, places: [...places].sort((a, b) => a - b) };
}

export interface Entry {
  id: string;
  label: string;
  /** More searchable text, shown beside the label. */
  detail?: string;
  group: string;
}

export interface Ranked<T> {
  entry: T;
  places: number[];
}

/** Matching entries, best first. With equal scores recently chosen ones come first, as they do while nothing is
 * typed. */
export function rank<T extends Entry>(entries: readonly T[], query: string, recent: readonly string[], most = 60): Ranked<T>[] {
  const found: (Ranked<T> & { score: number })[] = [];
  entries.forEach((entry, place) => {
    const late = recent.indexOf(entry.id);
    const bonus = late < 0 ? 0 : query.trim() ? Math.max(0, 6 - late) : 1000 - late;
    const own = fuzzy(entry.label, query);
    // Words may be split over label and detail, with a lower score.
    const whole = own ?? (entry.detail ? fuzzy(`${entry.label} ${entry.detail}`, query) : null);
    if (!whole) return;
    const score = (own ? own.score : whole.score / 2) + bonus - place / 10_000;
    found.push({ entry, places: own ? own.places : whole.places.filter((at) => at < entry.label.length), score });
  });
  return found.sort((a, b) => b.score - a.score).slice(0, most).map(({ entry, places }) => ({ entry, places }));
}

export interface Section<T> {
  name: string;
  rows: Ranked<T>[];
}

/** Rows under headings: the group with the best row comes first. While nothing is typed, recently chosen entries
 * have their own heading. */
export function sections<T extends Entry>(rows: readonly Ranked<T>[], recent: readonly string[], query: string): Section<T>[] {
  const groups = new Map<string, Ranked<T>[]>();
  for (const row of rows) {
    const name = !query.trim() && recent.includes(row.entry.id) ? "Recent" : row.entry.group;
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups].map(([name, found]) => ({ name, rows: found }));
}

/** The label in matched and unmatched pieces. */
export function pieces(label: string, places: readonly number[]): { text: string; hit: boolean }[] {
  const meant = new Set(places);
  const found: { text: string; hit: boolean }[] = [];
  for (let at = 0; at < label.length; at++) {
    const hit = meant.has(at);
    const last = found.at(-1);
    if (last && last.hit === hit) last.text += label[at];
    else found.push({ text: label[at] ?? "", hit });
  }
  return found;
}
