/** Server-sent events over fetch: a reader that can be cut anywhere and resumes after the last event it
 * delivered. EventSource does not reveal when the last byte arrived, and trusts dead sockets. */

export interface ServerEvent {
  id: string;
  type: string;
  data: string;
}

/** Parses lines to events, as the standard defines; text may be cut anywhere. */
export class EventParser {
  #rest = "";
  #id = "";
  #type = "";
  #data: string[] = [];

  feed(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    this.#rest += text;
    // A carriage return at the end may be the first half of one line break.
    const held = this.#rest.endsWith("\r") ? "\r" : "";
    const lines = this.#rest.slice(0, this.#rest.length - held.length).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + held;
    for (const line of lines) this.#take(line, events);
    return events;
  }

  #take(line: string, events: ServerEvent[]): void {
    if (line === "") {
      if (this.#data.length) events.push({ id: this.#id, type: this.#type || "message", data: this.#data.join("\n") });
      this.#type = "";
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#type = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
  }
}

export interface StreamOptions {
  url: string;
  onevent: (event: ServerEvent) => void;
  /** Whether an event is the last one: no reconnection after it. */
  isLast?: (event: ServerEvent) => boolean;
  /** The state of the stream, shown below the growing answer. */
  onstate?: (state: StreamState) => void;
  /** The server no longer knows this stream: load the session instead. */
  ongone?: () => void;
  lastId?: string;
}

export type StreamState = "open" | "waiting" | "hidden" | "closed";

const SILENCE = 20_000;
const SHORT_HIDE = 10_000;
const PAUSES = [250, 500, 1000, 2000, 4000, 8000];

/** Keeps a stream open while the tab is visible. Reconnects after 20 seconds without a byte, when the
 * tab is seen again, and when the connection ends before the last event. */
export class EventStream {
  #options: StreamOptions;
  #lastId: string;
  #abort: AbortController | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #hide: ReturnType<typeof setTimeout> | undefined;
  #heard = 0;
  #failures = 0;
  #done = false;
  #visibility = () => this.#seen();

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#lastId = options.lastId ?? "";
    document.addEventListener("visibilitychange", this.#visibility);
    if (document.visibilityState === "hidden") this.#say("hidden");
    else void this.#connect();
  }

  close(): void {
    if (this.#done) return;
    this.#done = true;
    this.#stop();
    clearTimeout(this.#hide);
    document.removeEventListener("visibilitychange", this.#visibility);
    this.#say("closed");
  }

  #say(state: StreamState): void {
    this.#options.onstate?.(state);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#abort = null;
  }

  #seen(): void {
    clearTimeout(this.#hide);
    if (this.#done) return;
    if (document.visibilityState === "hidden") {
      // Briefly switching tabs does not need a new connection; a locked phone does.
      this.#hide = setTimeout(() => {
        this.#stop();
        this.#say("hidden");
      }, SHORT_HIDE);
    } else if (!this.#abort || Date.now() - this.#heard > SILENCE) {
      this.#failures = 0;
      void this.#connect();
    }
  }

  #listen(): void {
    this.#heard = Date.now();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#connect(), SILENCE);
  }

  #later(): void {
    if (this.#done) return;
    const pause = PAUSES[Math.min(this.#failures++, PAUSES.length - 1)];
    this.#say("waiting");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#connect(), pause);
  }

  async #connect(): Promise<void> {
    this.#stop();
    const abort = new AbortController();
    this.#abort = abort;
    this.#listen();
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (this.#lastId) headers["last-event-id"] = this.#lastId;
      const answer = await fetch(this.#options.url, { headers, signal: abort.signal, credentials: "same-origin" });
      if (answer.status === 404 || answer.status === 410 || answer.status === 401) {
        this.close();
        this.#options.ongone?.();
        return;
      }
      if (!answer.ok || !answer.body) throw new Error(`status ${answer.status}`);
      this.#say("open");
      await this.#read(answer.body, abort);
      if (!this.#done && this.#abort === abort) this.#later();
    } catch {
      if (!this.#done && this.#abort === abort) this.#later();
    }
  }

  async #read(body: ReadableStream<Uint8Array>, abort: AbortController): Promise<void> {
    const parser = new EventParser();
    const decoder = new TextDecoder();
    const reader = body.getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done || this.#abort !== abort || this.#done) return;
      this.#listen();
      this.#failures = 0;
      for (const event of parser.feed(decoder.decode(value, { stream: true }))) {
        if (event.id) this.#lastId = event.id;
        if (event.type !== "ping") this.#options.onevent(event);
        if (this.#done) return;
        if (this.#options.isLast?.(event)) {
          this.close();
          return;
        }
      }
    }
  }
}
