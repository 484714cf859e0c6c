/** A fetched value with its three states. The latest call wins: later results of older calls are dropped. */

import { isAbort } from "./api";

export class Resource<T> {
  value = $state.raw<T | undefined>();
  error = $state.raw<unknown>();
  loading = $state(false);
  #turn = 0;
  #abort: AbortController | null = null;

  /** Fetches; the old value stays visible until the new one arrives. */
  async load(fetcher: (signal: AbortSignal) => Promise<T>): Promise<void> {
    const turn = ++this.#turn;
    this.#abort?.abort();
    const abort = new AbortController();
    this.#abort = abort;
    this.loading = true;
    try {
      const value = await fetcher(abort.signal);
      if (turn !== this.#turn) return;
      this.value = value;
      this.error = undefined;
    } catch (error) {
      if (turn !== this.#turn || isAbort(error)) return;
      this.error = error;
    } finally {
      if (turn === this.#turn) this.loading = false;
    }
  }

  clear(): void {
    this.#turn++;
    this.#abort?.abort();
    this.value = undefined;
    this.error = undefined;
    this.loading = false;
  }
}
