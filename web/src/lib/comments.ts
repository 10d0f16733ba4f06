// Comments on lines of a diff. Each is a note of the run, in one form, so that agents and this page read the same text.

import { short } from "./clean";
import type { FileDiff, Row } from "./diff";

export interface DiffLine {
  path: string;
  /** The line in the file; of a removed line, its number before. */
  line: number;
  removed: boolean;
}

export interface Comment extends DiffLine {
  id: string;
  /** The last iteration whose result was shown. */
  iteration: number;
  code: string;
  text: string;
  /** Who wrote it. */
  from: string;
}

const CODE_MAX = 200;
const HEAD = /^Review comment on `(.+)`, (removed )?line (\d+), after iteration (\d+):$/;
const MARK = /^<!-- (\S+) (.*) -->$/;

/** The place of a row; null if it has none. */
export function diffLineOf(path: string, row: Row): DiffLine | null {
  const removed = row.kind === "removed";
  const line = removed ? row.old : row.new;
  return line === null ? null : { path, line, removed };
}

/** The note of a comment: file, line and quoted code, then the text. */
export function noteOf(place: DiffLine, iteration: number, code: string, text: string): string {
  return `Review comment on \`${place.path}\`, ${place.removed ? "removed " : ""}line ${place.line}, after iteration ${iteration}:\n> ${short(code, CODE_MAX)}\n${text.trim()}`;
}

/** The comments among the notes of a run, oldest first. */
export function commentsOf(notes: string): Comment[] {
  const found: Comment[] = [];
  let open: (Omit<Comment, "id" | "from" | "text"> & { lines: string[] }) | null = null;
  for (const line of notes.split("\n")) {
    const head = HEAD.exec(line);
    const mark = MARK.exec(line);
    if (head) open = { path: head[1] ?? "", removed: head[2] !== undefined, line: Number(head[3]), iteration: Number(head[4]), code: "", lines: [] };
    else if (mark && open) {
      const { lines, ...place } = open;
      found.push({ ...place, id: mark[1] ?? "", from: mark[2] ?? "", text: lines.join("\n").trim() });
      open = null;
    } else if (mark) open = null;
    else if (open && open.code === "" && open.lines.length === 0 && line.startsWith("> ")) open.code = line.slice(2);
    else open?.lines.push(line);
  }
  return found;
}

/** Where a comment's line is now; null once the line has changed. `since` is what changed after its iteration. */
export function lineNow(comment: Comment, since: FileDiff[]): number | null {
  const file = since.find((one) => (one.from ?? one.path) === comment.path);
  if (!file) return comment.line;
  const rows = file.hunks.flatMap((hunk) => hunk.rows);
  // A line that the work removed is back, or still gone.
  if (comment.removed) return rows.some((row) => row.kind === "added" && short(row.text, CODE_MAX) === comment.code) ? null : comment.line;
  if (file.status === "removed" || rows.some((row) => row.kind === "removed" && row.old === comment.line)) return null;
  const here = rows.find((row) => row.old === comment.line);
  if (here) return here.new;
  // Outside of the hunks, only the changes before it move it.
  let moved = 0;
  let old = 0;
  for (const row of rows) {
    old = row.old ?? old;
    if (old > comment.line) break;
    moved += row.kind === "added" ? 1 : row.kind === "removed" ? -1 : 0;
  }
  return comment.line + moved;
}
