/** Model downloads. They continue while other screens are shown, and are found again after a reload. */

import { api, follow, isAbort, path, wordsOf } from "./api";
import { status } from "./status.svelte";
import type { Shapes } from "./types";

export interface Fetch {
  text: string;
  done: number;
  total: number;
  stop: AbortController;
}

class Fetches {
  all = $state.raw<Readonly<Record<string, Fetch>>>({});
  /** Counts finished downloads, so that lists of models refresh. */
  over = $state(0);

  /** Downloads a model, or watches the job that is already doing so. */
  async begin(name: string, title: string): Promise<void> {
    if (this.all[name]) return;
    const stop = new AbortController();
    const tell = (text = "", done = 0, total = 0): void => {
      this.all = { ...this.all, [name]: { text, done, total, stop } };
    };
    tell("Starting…");
    try {
      const { job } = await api.post<Shapes["JobStarted"]>(path("models", name, "fetch"));
      const end = await follow(job, (event) => tell(event.text, event.done ?? 0, event.total ?? 0), stop.signal);
      if (end.state === "done") status.toast(`${title} is downloaded.`, { tone: "good" });
    } catch (error) {
      if (isAbort(error)) status.toast("Stopped. The next download resumes from here.");
      else status.toast(wordsOf(error), { tone: "bad" });
    } finally {
      this.all = Object.fromEntries(Object.entries(this.all).filter(([each]) => each !== name));
      this.over++;
    }
  }

  /** Finds running downloads on the server, such as after a reload. */
  async find(models: readonly Shapes["LocalModelRow"][]): Promise<void> {
    const { jobs } = await api.get<Shapes["JobRows"]>(path("jobs"));
    for (const model of models) {
      if (jobs.some((job) => job.state === "working" && job.name === `fetch ${model.name}`)) void this.begin(model.name, model.title);
    }
  }
}

export const fetches = new Fetches();
