/** Files being edited. Switching screens or reloading loses nothing: unsaved text is kept here, and the browser
 * asks before the tab is closed. */

import { ApiError } from "./api";
import { type Draft, type FileText, discarded, edited, isChanged, keepMine, opened, reread, saved, takeTheirs } from "./draft";

const STORED = "lamina.drafts";

export interface Door {
  read: () => Promise<FileText>;
  write: (text: string, etag: string) => Promise<FileText>;
}

class Drafts {
  all = $state.raw<Readonly<Record<string, Draft>>>(stored());
  unsaved = $derived(Object.keys(this.all).filter((key) => isChanged(this.all[key]!)));

  constructor() {
    if (typeof window === "undefined") return;
    window.addEventListener("beforeunload", (event) => {
      if (this.unsaved.length) event.preventDefault();
    });
  }

  set(key: string, draft: Draft): void {
    this.all = { ...this.all, [key]: draft };
    this.#keep();
  }

  drop(key: string): void {
    this.all = Object.fromEntries(Object.entries(this.all).filter(([name]) => name !== key));
    this.#keep();
  }

  #keep(): void {
    try {
      const kept = Object.fromEntries(Object.entries(this.all).filter(([, draft]) => isChanged(draft)));
      sessionStorage.setItem(STORED, JSON.stringify(kept));
    } catch {
      // Too large, or without browser storage, drafts last as long as the page.
    }
  }
}

function stored(): Record<string, Draft> {
  try {
    return JSON.parse(sessionStorage.getItem(STORED) ?? "{}") as Record<string, Draft>;
  } catch {
    return {};
  }
}

export const drafts = new Drafts();

/** One file in an editor, read and written through the API. */
export class OpenFile {
  error = $state.raw<unknown>();
  loading = $state(false);
  saving = $state(false);

  constructor(
    readonly key: string,
    readonly door: Door,
  ) {}

  get draft(): Draft | undefined {
    return drafts.all[this.key];
  }

  get changed(): boolean {
    return this.draft !== undefined && isChanged(this.draft);
  }

  async load(): Promise<void> {
    this.loading = true;
    try {
      const file = await this.door.read();
      const { text, etag } = file;
      const before = drafts.all[this.key];
      drafts.set(this.key, before ? reread(before, { text, etag }) : opened({ text, etag }));
      this.error = undefined;
    } catch (error) {
      this.error = error;
    } finally {
      this.loading = false;
    }
  }

  edit(text: string): void {
    if (this.draft) drafts.set(this.key, edited(this.draft, text));
  }

  /** Saves it; returns true if that worked. A file that has changed is shown beside the draft. */
  async save(): Promise<boolean> {
    const draft = this.draft;
    if (!draft || this.saving || draft.theirs) return false;
    this.saving = true;
    try {
      const { text, etag } = await this.door.write(draft.text, draft.base.etag);
      drafts.set(this.key, saved(drafts.all[this.key] ?? draft, { text, etag }));
      this.error = undefined;
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) await this.load();
      else this.error = error;
      return false;
    } finally {
      this.saving = false;
    }
  }

  async keepMine(): Promise<boolean> {
    if (this.draft) drafts.set(this.key, keepMine(this.draft));
    return this.save();
  }

  takeTheirs(): void {
    if (this.draft) drafts.set(this.key, takeTheirs(this.draft));
  }

  discard(): void {
    if (this.draft) drafts.set(this.key, discarded(this.draft));
  }
}
