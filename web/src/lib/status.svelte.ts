/** The text of the page's one `role="status"`, and the notices that come and go. Answers are never announced
 * here. */

export interface Toast {
  id: number;
  text: string;
  tone: "plain" | "good" | "bad";
  action?: { label: string; run: () => void };
}

class Status {
  text = $state("");
  toasts = $state.raw<readonly Toast[]>([]);
  #next = 1;

  /** For screen readers: "answering", "done, 88 words", "waiting for you". */
  say(text: string): void {
    this.text = text;
  }

  /** For everyone: shown for a while and read aloud. An error stays until it is closed. */
  toast(text: string, { tone = "plain", action }: Partial<Pick<Toast, "tone" | "action">> = {}): void {
    const toast: Toast = { id: this.#next++, text, tone, ...(action ? { action } : {}) };
    this.toasts = [...this.toasts.slice(-2), toast];
    this.say(text);
    if (tone !== "bad") setTimeout(() => this.dismiss(toast.id), action ? 12_000 : 5_000);
  }

  dismiss(id: number): void {
    this.toasts = this.toasts.filter((toast) => toast.id !== id);
  }
}

export const status = new Status();
