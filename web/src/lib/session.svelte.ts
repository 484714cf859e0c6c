/** One session on screen: its head, the loaded rows, and the running turn. The journal is authoritative: streamed
 * content is replaced by rows as soon as they can be read. */

import { api, ApiError, ofSession, watch, wordsOf } from "./api";
import { apply, begin, closingWords, type LiveTurn } from "./live";
import type { EventStream, StreamState } from "./sse";
import { status } from "./status.svelte";
import type { Shapes } from "./types";

export type Row = Shapes["MessageRow"];
export type Head = Shapes["SessionHead"];
export type Decision = "allow_once" | "allow_session" | "deny";

const WINDOW = 60;

export interface Question {
  text: string;
  attach: readonly string[];
  essential: readonly string[];
  target?: string | null;
}

/** The first question of a new session, by its id, until the session is shown. */
export const asked = new Map<string, Question>();

export class SessionView {
  head = $state.raw<Head | undefined>();
  /** As long as the path, with holes for rows not loaded yet. */
  rows = $state.raw<readonly (Row | undefined)[]>([]);
  live = $state.raw<LiveTurn | null>(null);
  /** Counts frames, because `live` changes in place. */
  beat = $state(0);
  /** The question that was sent but is not in the journal yet. */
  sent = $state.raw<Question | null>(null);
  connection = $state<StreamState>("closed");
  error = $state.raw<unknown>();
  /** Why the last action was refused. */
  problem = $state.raw<unknown>();
  starting = $state(false);
  stopping = $state(false);
  turn = $state("");
  #stream: EventStream | null = null;
  #watched = "";
  #wanted = new Set<number>();
  #frame = 0;
  #loads = 0;
  #closed = false;

  constructor(
    readonly workspace: string,
    readonly session: string,
  ) {}

  // Text, so that frames without a new request change nothing downstream.
  #liveKey = $derived.by(() => {
    void this.beat;
    return this.live?.steps.map((step) => step.request).join("\n") ?? "";
  });
  // A turn may end between two frames: check in-place changes with every beat.
  #isOver = $derived.by(() => {
    void this.beat;
    return Boolean(this.live?.ending || this.live?.failed);
  });
  isRunning = $derived(this.live !== null && !this.#isOver);
  isBusy = $derived(this.isRunning || this.starting);
  /** Requests shown by the stream: their rows are not drawn twice. */
  liveRequests = $derived(new Set(this.#liveKey.split("\n").filter(Boolean)));

  url(...rest: string[]): string {
    return ofSession(this.workspace, this.session, ...rest);
  }

  async open(): Promise<void> {
    await this.reload();
    const turn = this.head?.turn;
    if (turn?.is_running) this.watch(turn.id);
  }

  close(): void {
    this.#closed = true;
    this.#stream?.close();
    cancelAnimationFrame(this.#frame);
  }

  /** Reloads the head and the end of the path; unchanged rows stay as they are. */
  async reload(): Promise<void> {
    const load = ++this.#loads;
    try {
      const [head, tail] = await Promise.all([
        api.get<Head>(this.url()),
        api.get<Shapes["MessageWindow"]>(this.url("messages"), { from: -WINDOW, limit: WINDOW }),
      ]);
      if (load !== this.#loads || this.#closed) return;
      const rows: (Row | undefined)[] = new Array(tail.total).fill(undefined);
      const overlap = this.rows[tail.first];
      // The path only grew: rows loaded further up are still valid.
      if (overlap && overlap.id === tail.rows[0]?.id) {
        for (let at = 0; at < tail.first; at++) rows[at] = this.rows[at];
      }
      tail.rows.forEach((row, place) => (rows[tail.first + place] = row));
      this.rows = rows;
      this.head = head;
      // A sent question stays visible until the journal has it.
      const question = tail.rows.findLast((row) => row.kind === "question");
      if (question?.text === this.sent?.text || (!this.isBusy && !head.turn?.is_running)) this.sent = null;
      this.#wanted.clear();
      this.error = undefined;
    } catch (error) {
      if (load === this.#loads && !this.#closed) this.error = error;
    }
  }

  /** Loads the rows around an index, once. */
  async need(index: number): Promise<void> {
    const first = Math.max(0, Math.floor(index / WINDOW) * WINDOW);
    if (this.#wanted.has(first)) return;
    this.#wanted.add(first);
    const load = this.#loads;
    try {
      const page = await api.get<Shapes["MessageWindow"]>(this.url("messages"), { from: first, limit: WINDOW });
      if (load !== this.#loads || this.#closed) return;
      const rows = this.rows.slice();
      page.rows.forEach((row, place) => (rows[page.first + place] = row));
      this.rows = rows;
    } catch (error) {
      this.#wanted.delete(first);
      this.problem = error;
    }
  }

  /** The index of an entry's row, loaded if necessary; -1 if it is not on this branch. */
  async locate(entry: string): Promise<number> {
    const known = this.rows.findIndex((row) => row?.id === entry);
    if (known >= 0) return known;
    const page = await api.get<Shapes["MessageWindow"]>(this.url("messages"), { around: entry, limit: WINDOW });
    const rows = this.rows.slice();
    page.rows.forEach((row, place) => (rows[page.first + place] = row));
    this.rows = rows;
    return page.rows.find((row) => row.id === entry)?.index ?? -1;
  }

  watch(turn: string): void {
    // Includes a finished turn: its events would be shown a second time.
    if (this.#watched === turn) return;
    this.#watched = turn;
    this.#stream?.close();
    const live = begin();
    this.turn = turn;
    this.live = live;
    this.stopping = false;
    status.say("answering");
    this.#stream = watch<Record<string, unknown>>(this.url("turns", turn, "events"), {
      last: ["end", "failed"],
      onstate: (state) => (this.connection = state),
      onevent: (event) => {
        apply(live, event);
        this.#draw();
        // From here on the journal has the question with its attachments.
        if (event.type === "request" && live.steps.length === 1) void this.reload();
        if (event.type === "approval") status.say("waiting for you");
        if (event.type === "end" || event.type === "failed") void this.#over(live);
      },
      // The server restarted, or forgot the turn: the journal has its result.
      ongone: () => void this.#gone(live),
    });
  }

  #draw(): void {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.beat++;
    });
  }

  async #over(live: LiveTurn): Promise<void> {
    status.say(closingWords(live));
    this.stopping = false;
    await this.reload();
    if (this.live !== live) return;
    // A failed turn stays visible until the next one: its text exists nowhere else.
    if (live.failed) this.beat++;
    else this.live = null;
    if (live.compaction) {
      status.toast(
        live.compaction.changed ? "History is summarised." : `Nothing was summarised: ${live.compaction.reason || live.compaction.problem}`,
      );
    }
  }

  async #gone(live: LiveTurn): Promise<void> {
    await this.reload();
    if (this.live === live) this.live = null;
    status.say(this.head?.interrupted ? "interrupted" : "done");
  }

  /** Reacts to changes by another tab or a decision. */
  heed(news: Shapes["SessionNews"]): void {
    if (news.session !== this.session) return;
    if (news.state === "working" && news.turn) {
      if (news.turn !== this.turn) void this.reload().then(() => news.turn && this.watch(news.turn));
    } else if (!this.isRunning && !this.starting && this.head) {
      // A short turn of another tab may end before its start is noticed.
      const missed = news.turn !== null && news.turn !== this.turn;
      if (!missed && news.state === this.head.state) return;
      if (news.turn) this.turn = news.turn;
      void this.reload();
    }
  }

  async #begin(act: string, body: Record<string, unknown>): Promise<boolean> {
    this.problem = undefined;
    this.starting = true;
    try {
      const { turn } = await api.post<Shapes["TurnBegun"]>(this.url(act), body, { once: crypto.randomUUID() });
      if (act !== "turns" && act !== "compact") await this.reload();
      this.watch(turn);
      return true;
    } catch (error) {
      this.problem = error;
      status.say(wordsOf(error));
      // Another tab started a turn: show it instead of only refusing.
      if (error instanceof ApiError && error.status === 409) await this.open();
      return false;
    } finally {
      this.starting = false;
    }
  }

  async ask(question: Question): Promise<boolean> {
    this.sent = question;
    this.live = null;
    const done = await this.#begin("turns", bodyOf(question));
    if (!done) this.sent = null;
    return done;
  }

  edit(question: string, text: string, target?: string | null): Promise<boolean> {
    return this.#begin("edit", { question, text, ...(target ? { target } : {}) });
  }

  regenerate(answer: string, target?: string | null): Promise<boolean> {
    return this.#begin("regenerate", { answer, ...(target ? { target } : {}) });
  }

  resume(target?: string | null): Promise<boolean> {
    return this.#begin("resume", target ? { target } : {});
  }

  compact(): Promise<boolean> {
    return this.#begin("compact", {});
  }

  async stop(): Promise<void> {
    if (!this.isRunning || !this.turn) return;
    this.stopping = true;
    try {
      await api.delete(this.url("turns", this.turn));
    } catch (error) {
      this.stopping = false;
      this.problem = error;
    }
  }

  /** Sends a message while a turn runs: with its next request, or after its answer. */
  async say(text: string, deliver: "steer" | "follow_up"): Promise<boolean> {
    return this.#act(async () => {
      const { running } = await api.post<Shapes["MessageTaken"]>(this.url("messages"), { text, deliver });
      status.toast(
        !running
          ? "Saved: it will be sent with the next question."
          : deliver === "steer"
            ? "It will be sent with the next request."
            : "It will be asked after this answer.",
      );
    });
  }

  async decide(call: string, decision: Decision): Promise<boolean> {
    return this.#act(async () => {
      const kept = await api.post<Shapes["DecisionKept"]>(this.url("calls", call, "decision"), { decision });
      if (kept.turn) {
        await this.reload();
        this.watch(kept.turn);
      } else if (!this.isRunning) {
        await this.reload();
      }
    }, true);
  }

  async navigate(entry: string, { end = false, summary = "" } = {}): Promise<string | null> {
    let text: string | null = null;
    await this.#act(async () => {
      const position = await api.post<Shapes["Position"]>(this.url("navigate"), { entry, end, summary });
      text = position.text;
      this.live = null;
      await this.reload();
    });
    return text;
  }

  async fork(at: string): Promise<string | null> {
    let session: string | null = null;
    await this.#act(async () => {
      session = (await api.post<Shapes["Forked"]>(this.url("fork"), { at })).session;
    });
    return session;
  }

  async label(entry: string, text: string): Promise<boolean> {
    return this.#act(async () => {
      await api.put(this.url("labels", entry), { text });
      this.rows = this.rows.map((row) => (row?.id === entry ? { ...row, label: text } : row));
    });
  }

  async #act(work: () => Promise<void>, reload = false): Promise<boolean> {
    this.problem = undefined;
    try {
      await work();
      return true;
    } catch (error) {
      this.problem = error;
      status.say(wordsOf(error));
      if (reload) await this.reload();
      return false;
    }
  }
}

export function bodyOf(question: Question): Record<string, unknown> {
  const { text, attach, essential, target } = question;
  return { text, attach, essential, ...(target ? { target } : {}) };
}

export interface FoldedRow {
  row: Row;
  /** The rows of a run of tools that starts with this one; empty otherwise. */
  run: readonly Row[];
  /** Drawn by the first row of its run. */
  hidden: boolean;
}

const isStep = (row: Row | undefined): row is Row =>
  row !== undefined && ((row.kind === "answer" && row.calls.length > 0) || row.kind === "results");

/** Groups runs of answers that only called tools into one line each. */
export function foldAt(rows: readonly (Row | undefined)[], index: number): FoldedRow | undefined {
  const row = rows[index];
  if (!row) return undefined;
  if (!isStep(row)) return { row, run: [], hidden: false };
  if (isStep(rows[index - 1])) return { row, run: [], hidden: true };
  const run: Row[] = [];
  for (let at = index; isStep(rows[at]); at++) run.push(rows[at] as Row);
  return { row, run, hidden: false };
}
