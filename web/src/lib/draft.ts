/** A file that somebody edits while others may write it, too.
 *
 * The law: nothing that was typed is lost, and nothing that another wrote is overwritten unseen. */

export interface FileText {
  text: string;
  /** Of the bytes on disk; empty if there is no file yet. */
  etag: string;
}

export interface Draft {
  /** As it is typed. */
  text: string;
  /** As it was read or written last. */
  base: FileText;
  /** What another wrote meanwhile; set while somebody has to choose. */
  theirs: FileText | null;
}

export const opened = (file: FileText): Draft => ({ text: file.text, base: file, theirs: null });

export const edited = (draft: Draft, text: string): Draft => ({ ...draft, text });

export const isChanged = (draft: Draft): boolean => draft.text !== draft.base.text;

/** It was written; what was typed since stays typed. */
export const saved = (draft: Draft, file: FileText): Draft => ({ text: draft.text, base: file, theirs: null });

/** The file was read again: what was not touched follows it, what was typed is asked about. */
export function reread(draft: Draft, file: FileText): Draft {
  if (file.etag === draft.base.etag || draft.text === file.text) return { ...draft, base: file, theirs: null };
  return isChanged(draft) ? { ...draft, theirs: file } : opened(file);
}

/** Of a conflict: what was typed goes over what is there, which was seen. */
export const keepMine = (draft: Draft): Draft =>
  draft.theirs ? { text: draft.text, base: draft.theirs, theirs: null } : draft;

/** Of a conflict: what is there counts. */
export const takeTheirs = (draft: Draft): Draft => (draft.theirs ? opened(draft.theirs) : draft);

export const discarded = (draft: Draft): Draft => opened(draft.theirs ?? draft.base);

export interface Differing {
  /** Lines that are the same at the beginning and at the end. */
  head: number;
  tail: number;
  mine: string[];
  theirs: string[];
}

/** Where two texts begin and end to differ, in lines. */
export function differing(mine: string, theirs: string): Differing {
  const [a, b] = [mine.split("\n"), theirs.split("\n")];
  const least = Math.min(a.length, b.length);
  let head = 0;
  while (head < least && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < least - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  return { head, tail, mine: a.slice(head, a.length - tail), theirs: b.slice(head, b.length - tail) };
}
