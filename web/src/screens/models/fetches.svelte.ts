/** Models on their way: fetching goes on while one looks at other screens. */

export interface Fetch {
  text: string;
  done: number;
  total: number;
  stop: AbortController;
}

class Fetches {
  all = $state.raw<Readonly<Record<string, Fetch>>>({});

  set(name: string, fetch: Fetch): void {
    this.all = { ...this.all, [name]: fetch };
  }

  drop(name: string): void {
    this.all = Object.fromEntries(Object.entries(this.all).filter(([each]) => each !== name));
  }
}

export const fetches = new Fetches();
