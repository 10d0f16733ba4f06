// Text of agents, repos and remotes, made safe to show. It is only ever shown as text, never as HTML; here what is not
// seen, or makes text read otherwise than it is, is taken out: control characters, escape sequences, turns of the reading
// direction, characters without width, tags. The same rules as `sanitize` of the engine.

const ESCAPES =
  // CSI, OSC (ended by BEL or ST), other strings, single characters.
  // eslint-disable-next-line no-control-regex
  /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[PX^_][^\u001b]*\u001b\\|\u001b[ -/]*[0-~]|\u009b[0-?]*[ -/]*[@-~]/g;
const SEPARATORS = /\r\n|[\r\u000b\u000c\u0085\u2028\u2029]/g;
const CONTROLS = /[\u0000-\u0008\u000e-\u001f\u007f-\u009f]/g;
const HIDDEN =
  /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\uffff\u{e0000}-\u{e007f}]/gu;
/** Joiners and selectors stay only where they belong to something visible. */
const LONELY_JOINERS = /(^|[\s\u0021-\u007e])[\u200c\u200d\ufe00-\ufe0f\u{e0100}-\u{e01ef}]+/gu;
const MANY_MARKS = /(\p{M}{8})\p{M}+/gu;

/** Several lines: line feeds and tabs stay, colors do not. */
export function block(text: string): string {
  return text
    .replace(ESCAPES, "")
    .replace(SEPARATORS, "\n")
    .replace(CONTROLS, "")
    .replace(HIDDEN, "")
    .replace(LONELY_JOINERS, "$1")
    .replace(MANY_MARKS, "$1");
}

/** Several lines that keep only colors (SGR), for components that draw them. */
export function colored(text: string): string {
  // eslint-disable-next-line no-control-regex
  const kept = text.split(/(\u001b\[[0-9;]*m)/);
  return kept.map((part, at) => (at % 2 === 1 ? part : block(part))).join("");
}

/** One line: ends of lines and tabs become spaces. */
export function line(text: string): string {
  return block(text).replace(/[\n\t]+/g, " ").trim();
}

/** Paths below the workspace, or below a clean checkout of it, without the folders above. */
export function shortPaths(text: string, workspace: string): string {
  const own = workspace.length > 1 ? text.replaceAll(`${workspace.replace(/\/$/, "")}/`, "") : text;
  return own.replace(/\/[^\s"':]*\/proofs\/[^\s"'/]+\/[^\s"'/]+\/[^\s"'/]+\//g, "");
}

/** One line of at most so many characters. */
export function short(text: string, most: number): string {
  const clean = line(text);
  const letters = Array.from(clean);
  return letters.length <= most ? clean : `${letters.slice(0, most - 1).join("").trimEnd()}…`;
}

/** An address that may be a link: web addresses only, whatever a forge or an agent calls one. */
export function webAddress(text: string | null | undefined): string | null {
  if (!text) return null;
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}

// eslint-disable-next-line no-control-regex
const SUSPECT = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\uffff\u{e0000}-\u{e01ef}]|\p{M}{8}/u;

/** Every text of an answer, cleaned as it comes in, so that no page can forget it. */
export function cleanDeep<T>(value: T): T {
  if (typeof value === "string") return (SUSPECT.test(value) ? block(value) : value) as T;
  if (Array.isArray(value)) return value.map(cleanDeep) as T;
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cleanDeep(inner)])) as T;
  }
  return value;
}
