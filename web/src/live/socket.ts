// One WebSocket that reconnects and reports its state.

export type LinkState = "connecting" | "live" | "offline";

/** Waits between tries in milliseconds, with some randomness to spread the load on a restarted server. */
const WAITS = [300, 800, 2000, 4000, 8000, 15000];

export function waitFor(tries: number, random: () => number = Math.random): number {
  const base = WAITS[Math.min(tries, WAITS.length - 1)] ?? 15000;
  return Math.round(base * (0.7 + random() * 0.6));
}

export interface LinkOptions {
  /** The address for the next connection: it may ask for what was missed. */
  path: () => string;
  onFrame: (frame: unknown) => void;
  onState: (state: LinkState, retryAt: number | null) => void;
}

export class Link {
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private tries = 0;
  private closed = false;

  constructor(private readonly options: LinkOptions) {
    window.addEventListener("online", this.retry);
    this.connect();
  }

  private connect(): void {
    if (this.closed) return;
    this.options.onState("connecting", null);
    const origin = location.origin.replace(/^http/, "ws");
    const socket = new WebSocket(`${origin}/api/v1${this.options.path()}`);
    this.socket = socket;
    socket.onmessage = (message) => {
      if (socket !== this.socket) return;
      if (this.tries !== 0 || socket.readyState === WebSocket.OPEN) this.tries = 0;
      try {
        this.options.onFrame(JSON.parse(String(message.data)));
      } catch {
        // Ignore frames that aren't JSON; the next connection starts after the last event.
      }
    };
    socket.onopen = () => {
      if (socket === this.socket) this.options.onState("live", null);
    };
    socket.onclose = () => {
      if (socket === this.socket) this.later();
    };
  }

  private later(): void {
    this.socket = null;
    if (this.closed) return;
    const wait = waitFor(this.tries++);
    this.options.onState("offline", Date.now() + wait);
    this.timer = setTimeout(() => this.connect(), wait);
  }

  /** Reconnects after a short wait, from the last event, because one is missing. */
  reread(): void {
    if (this.closed || this.socket === null) return;
    const old = this.socket;
    this.later();
    old.close();
  }

  /** Reconnects at once, on the user's request. */
  readonly retry = (): void => {
    if (this.closed) return;
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    const old = this.socket;
    this.socket = null;
    old?.close();
    this.connect();
  };

  close(): void {
    this.closed = true;
    window.removeEventListener("online", this.retry);
    if (this.timer) clearTimeout(this.timer);
    this.socket?.close();
    this.socket = null;
  }
}
