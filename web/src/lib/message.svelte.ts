/** The message that is being written, per session; it outlives a reload. */

interface Kept {
  text: string;
  attach: string[];
  essential: string[];
}

export class MessageDraft {
  text = $state("");
  attach = $state.raw<readonly string[]>([]);
  essential = $state.raw<readonly string[]>([]);
  target = $state("");
  readonly #key: string;

  constructor(workspace: string, session: string) {
    this.#key = `lamina.draft.${workspace}.${session}`;
    try {
      const kept = JSON.parse(localStorage.getItem(this.#key) ?? "null") as Kept | null;
      if (kept) [this.text, this.attach, this.essential] = [kept.text, kept.attach, kept.essential];
    } catch {
      // Nothing was kept, or nothing that can be read.
    }
  }

  /** Keeps it; call it when it changes. */
  keep(): void {
    const { text, attach, essential } = this;
    try {
      if (text || attach.length || essential.length) localStorage.setItem(this.#key, JSON.stringify({ text, attach, essential }));
      else localStorage.removeItem(this.#key);
    } catch {
      // A full or closed store: the draft lives as long as the page.
    }
  }

  essentialToggle(what: string): void {
    if (this.essential.includes(what)) this.essential = this.essential.filter((one) => one !== what);
    else {
      this.attach = this.attach.filter((one) => one !== what);
      this.essential = [...this.essential, what];
    }
  }
}
