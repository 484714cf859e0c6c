/** A file being edited that others may write as well.
 *
 * The law: nothing typed is lost, and no other change is overwritten unseen. */

export interface FileText {
  text: string;
  /** The etag of the file on disk; empty without a file. */
  etag: string;
}

export interface Draft {
  /** The current text. */
  text: string;
  /** The version last read or written. */
  base: FileText;
  /** Another writer's version; set while the person must choose. */
  theirs: FileText | null;
}

export const opened = (file: FileText): Draft => ({ text: file.text, base: file, theirs: null });

export const edited = (draft: Draft, text: string): Draft => ({ ...draft, text });

export const isChanged = (draft: Draft): boolean => draft.text !== draft.base.text;

/** After saving; text typed since then is kept. */
export const saved = (draft: Draft, file: FileText): Draft => ({ text: draft.text, base: file, theirs: null });

/** After reloading: an unedited text follows the file, an edited one becomes a conflict. */
export function reread(draft: Draft, file: FileText): Draft {
  if (file.etag === draft.base.etag || draft.text === file.text) return { ...draft, base: file, theirs: null };
  return isChanged(draft) ? { ...draft, theirs: file } : opened(file);
}

/** Resolves a conflict: the edited text overwrites the file, which the person has seen. */
export const keepMine = (draft: Draft): Draft =>
  draft.theirs ? { text: draft.text, base: draft.theirs, theirs: null } : draft;

/** Resolves a conflict: the file's version is kept. */
export const takeTheirs = (draft: Draft): Draft => (draft.theirs ? opened(draft.theirs) : draft);

export const discarded = (draft: Draft): Draft => opened(draft.theirs ?? draft.base);

export interface Differing {
  /** The number of equal lines at the beginning and at the end. */
  head: number;
  tail: number;
  mine: string[];
  theirs: string[];
}

/** The lines in which two texts differ, without the equal beginning and end. */
export function differing(mine: string, theirs: string): Differing {
  const [a, b] = [mine.split("\n"), theirs.split("\n")];
  const least = Math.min(a.length, b.length);
  let head = 0;
  while (head < least && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < least - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  return { head, tail, mine: a.slice(head, a.length - tail), theirs: b.slice(head, b.length - tail) };
}
