// The live log as lines: what the agent says, the tools it uses, checks, errors, and the events between them.

import type { EventLine, LiveRecord } from "../api/types";
import { bytes } from "./format";
import { entriesOf } from "./transcript";

export type LineKind = "say" | "tool" | "result" | "check" | "error" | "event" | "note";

export interface LogLine {
  key: string;
  kind: LineKind;
  at: string;
  text: string;
  tone?: string | null;
  /** The name of a tool or a check. */
  name?: string;
  /** Inside a fence of code. */
  code?: boolean;
  iteration: number;
  /** The first byte of its line in the log of an iteration. */
  offset?: number;
}

/** Whether a line has these words, in lower case. */
export function hasWords(line: LogLine, words: string): boolean {
  return `${line.name ?? ""} ${line.text}`.toLowerCase().includes(words);
}

export type LogFilter = "all" | "agent" | "tools" | "checks" | "errors";

/** Records and events in one order, as lines. Pieces of one text are joined before they are cut into lines. */
export function logLines(live: LiveRecord[], events: EventLine[]): LogLine[] {
  const out: LogLine[] = [];
  let at = 0;
  const first = live[0]?.after ?? 0;
  // Skip events long before the oldest kept output.
  while (at < events.length && (events[at]?.seq ?? 0) < first - 200) at++;
  let open: { record: LiveRecord; text: string; kind: LineKind } | null = null;
  let fence = false;
  const close = () => {
    if (!open) return;
    const { record, text, kind } = open;
    const lines = text.replace(/\n$/, "").split("\n");
    lines.forEach((line, n) => {
      const mark = kind === "say" && /^\s*(```|~~~)/.test(line);
      out.push({ key: `l${record.n}.${n}`, kind, at: record.at, text: line, iteration: record.iteration, ...(record.check ? { name: record.check } : {}), ...(fence || mark ? { code: true } : {}) });
      if (mark) fence = !fence;
    });
    open = null;
  };
  const event = (one: EventLine) => {
    close();
    fence = false;
    if (one.text) out.push({ key: `e${one.seq}`, kind: one.tone === "bad" ? "error" : "event", at: one.at, text: one.text, tone: one.tone ?? null, iteration: Number(one.iteration ?? 0) });
  };
  for (const record of live) {
    while (at < events.length && (events[at]?.seq ?? 0) <= record.after) event(events[at++] as EventLine);
    const flows = record.kind === "text" ? "say" : record.kind === "stderr" ? "error" : record.kind === "check_output" ? "check" : null;
    if (flows) {
      if (open && open.kind === flows && open.record.check === record.check && open.record.after === record.after) open.text += record.text ?? "";
      else {
        close();
        open = { record, text: record.text ?? "", kind: flows };
      }
      continue;
    }
    close();
    const base = { key: `l${record.n}`, at: record.at, iteration: record.iteration };
    if (record.kind === "tool_call") out.push({ ...base, kind: "tool", text: record.what ?? "", name: record.name ?? "tool" });
    else if (record.kind === "tool_result") out.push({ ...base, kind: record.ok === false ? "error" : "result", text: record.text ?? "" });
    else if (record.kind === "activity") out.push({ ...base, kind: "note", text: record.text ?? "" });
    else if (record.kind === "left_out") out.push({ ...base, kind: "note", text: `${bytes(record.bytes ?? 0)} skipped in the live view; the full log has it` });
  }
  while (at < events.length) event(events[at++] as EventLine);
  close();
  return out;
}

export function passes(line: LogLine, filter: LogFilter): boolean {
  switch (filter) {
    case "all":
      return true;
    case "agent":
      return line.kind === "say";
    case "tools":
      return line.kind === "tool" || line.kind === "result" || line.kind === "note";
    case "checks":
      return line.kind === "check";
    case "errors":
      return line.kind === "error" || line.tone === "bad";
  }
}

/** Lines of a result that show at first. */
const FOLDED = 5;

/** Characters of a line that show at first. */
const LONG = 4000;

/** The beginning of a long line. */
export function cut(text: string): { shown: string; hidden: number } {
  return text.length <= LONG ? { shown: text, hidden: 0 } : { shown: text.slice(0, LONG), hidden: text.length - LONG };
}

/** A result folded to its first lines, or a failure to its last. */
export function fold(text: string, ok: boolean): { shown: string; hidden: number } {
  const lines = text.replace(/\n$/, "").split("\n");
  const shown = ok ? lines.slice(0, FOLDED) : lines.slice(-FOLDED);
  return { shown: shown.join("\n"), hidden: lines.length - shown.length };
}

const ENCODER = new TextEncoder();

/**
 * A part of the log of an iteration as lines; `offset` is its first byte in the log, and each key begins with that of its line.
 * Without the end of the log, the last line may be cut and is left out, unless it is the only one.
 */
export function rawLines(text: string, iteration: number, whole: boolean, offset = 0): LogLine[] {
  const lines = text.split("\n");
  if (!whole && lines.length > 1) lines.pop();
  let next = offset;
  return lines.flatMap((line): LogLine[] => {
    const base = { at: "", iteration, offset: next };
    const first = next;
    next += ENCODER.encode(line).length + 1;
    const entries = entriesOf(line);
    if (entries === null) return [{ ...base, key: `r${first}`, kind: "say", text: line }];
    return entries.flatMap((entry, at): LogLine[] => {
      const key = `r${first}.${at}`;
      if (entry.kind === "tool") return [{ ...base, key, kind: "tool", name: entry.name, text: entry.text }];
      if (entry.kind === "result") return [{ ...base, key, kind: entry.ok ? "result" : "error", text: entry.text }];
      return entry.text.split("\n").map((one, part) => ({ ...base, key: `${key}.${part}`, kind: "say", text: one }));
    });
  });
}
