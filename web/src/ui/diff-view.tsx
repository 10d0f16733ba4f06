import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState, type FormEvent, type ReactNode } from "react";
import { block } from "../lib/clean";
import { diffLineOf, type Comment, type DiffLine } from "../lib/comments";
import { sideBySide, type FileDiff, type Pair, type Row } from "../lib/diff";
import { useKeys } from "../lib/keys";
import { Button, cx } from "./basics";

/** A few changed lines, shown before saving. */
export function DiffRows({ rows, label }: { rows: (Row | null)[]; label: string }) {
  return (
    <div className="diff-rows mono" role="region" aria-label={label} tabIndex={0}>
      {rows.map((row, at) => (row === null ? <div key={at} className="diff-gap">⋯</div> : <UnifiedRow key={at} row={row} />))}
    </div>
  );
}

function sign(kind: Row["kind"]): string {
  return kind === "added" ? "+" : kind === "removed" ? "−" : " ";
}

function UnifiedRow({ row, at, children }: { row: Row; at?: boolean; children?: ReactNode }) {
  return (
    <div className={cx(`diff-row diff-${row.kind}`, at && "diff-at")}>
      {children}
      <span className="diff-num">{row.old ?? ""}</span>
      <span className="diff-num">{row.new ?? ""}</span>
      <span className="diff-sign">{sign(row.kind)}</span>
      <span className="diff-text">{block(row.text) || " "}</span>
    </div>
  );
}

function Side({ row, which }: { row: Row | null; which: "old" | "new" }) {
  const kind = row === null ? "none" : row.kind;
  return (
    <>
      <span className={`diff-num diff-${kind}`}>{row?.[which] ?? ""}</span>
      <span className={`diff-text diff-${kind}`}>{row ? block(row.text) || " " : ""}</span>
    </>
  );
}

type Item =
  | { what: "file"; file: FileDiff }
  | { what: "hunk"; header: string }
  | { what: "row"; row: Row; path: string }
  | { what: "pair"; pair: Pair; path: string }
  | { what: "note"; text: string }
  | { what: "comments"; all: Comment[] }
  | { what: "draft"; place: DiffLine; code: string };

/** Exact heights, so that thousands of files aren't measured again; other lines have 20 pixels. */
const HEIGHTS: Partial<Record<Item["what"], number>> = { file: 36, note: 28 };

/** Comments of a diff, and how one is written. */
export interface Commenting {
  at: (place: DiffLine) => Comment[];
  /** Null where comments are read-only. */
  send: ((place: DiffLine, code: string, text: string) => Promise<boolean>) | null;
}

const same = (a: DiffLine, b: DiffLine | null) => b !== null && a.path === b.path && a.line === b.line && a.removed === b.removed;

/** The row of a line that can be commented; of a pair, the new one. */
function rowOf(item: Item | undefined): { row: Row; path: string } | null {
  if (item?.what === "row") return item;
  const row = item?.what === "pair" ? (item.pair.right ?? item.pair.left) : null;
  return row && item?.what === "pair" ? { row, path: item.path } : null;
}

function itemsOf(files: FileDiff[], split: boolean, closed: ReadonlySet<string>, commenting: Commenting | undefined, draft: DiffLine | null): Item[] {
  const items: Item[] = [];
  const add = (item: Item) => {
    items.push(item);
    const line = commenting && rowOf(item);
    const place = line ? diffLineOf(line.path, line.row) : null;
    if (!line || !place) return;
    const all = commenting.at(place);
    if (all.length > 0) items.push({ what: "comments", all });
    if (same(place, draft)) items.push({ what: "draft", place, code: line.row.text });
  };
  for (const file of files) {
    items.push({ what: "file", file });
    if (closed.has(file.path)) continue;
    if (file.binary) items.push({ what: "note", text: "binary file" });
    else if (file.hunks.length === 0) items.push({ what: "note", text: file.from ? `renamed from ${file.from}` : "no text changes" });
    for (const hunk of file.hunks) {
      items.push({ what: "hunk", header: hunk.header });
      if (split) sideBySide(hunk.rows).forEach((pair) => add({ what: "pair", pair, path: file.path }));
      else hunk.rows.forEach((row) => add({ what: "row", row, path: file.path }));
    }
  }
  return items;
}

interface DiffViewProps {
  files: FileDiff[];
  split: boolean;
  closed: ReadonlySet<string>;
  onToggle: (path: string) => void;
  jump: (call: (path: string, place?: DiffLine) => void) => void;
  commenting?: Commenting;
}

/** Files and their lines; draws only the visible ones. */
export function DiffView({ files, split, closed, onToggle, jump, commenting }: DiffViewProps) {
  const box = useRef<HTMLDivElement>(null);
  const [draft, setDraft] = useState<DiffLine | null>(null);
  const [cursor, setCursor] = useState<DiffLine | null>(null);
  const items = useMemo(() => itemsOf(files, split, closed, commenting, draft), [files, split, closed, commenting, draft]);
  const virtual = useVirtualizer({ count: items.length, getScrollElement: () => box.current, estimateSize: (at) => HEIGHTS[items[at]?.what ?? "row"] ?? 20, overscan: 40 });
  const indexOf = (place: DiffLine | null) =>
    items.findIndex((item) => {
      const line = rowOf(item);
      const here = line && diffLineOf(line.path, line.row);
      return here !== null && same(here, place);
    });
  jump((path, place) => {
    const line = place ? indexOf(place) : -1;
    const at = line >= 0 ? line : items.findIndex((item) => item.what === "file" && item.file.path === path);
    if (at >= 0) virtual.scrollToIndex(at, { align: line >= 0 ? "center" : "start" });
  });
  const step = (by: 1 | -1) => {
    const from = indexOf(cursor);
    for (let at = from < 0 ? (by > 0 ? 0 : items.length - 1) : from + by; at >= 0 && at < items.length; at += by) {
      const line = rowOf(items[at]);
      if (!line || line.row.kind === "context") continue;
      setCursor(diffLineOf(line.path, line.row));
      return virtual.scrollToIndex(at, { align: "auto" });
    }
  };
  useKeys(
    commenting?.send
      ? [
          { keys: "J", what: "Next changed line", group: "diff" },
          { keys: "K", what: "Previous changed line", group: "diff" },
          { keys: "m", what: "Comment on the line", group: "diff" },
        ]
      : [],
    (keys) => (keys === "m" ? cursor && setDraft(cursor) : step(keys === "J" ? 1 : -1)),
  );
  const opener = (path: string, row: Row | null) => {
    const place = row && commenting?.send ? diffLineOf(path, row) : null;
    return place && <button type="button" className="diff-comment" tabIndex={-1} aria-label={`Comment on line ${place.line} of ${path}`} title="Comment (m)" onClick={() => (setCursor(place), setDraft(place))}>+</button>;
  };
  return (
    <div className={cx("diff-view mono", split && "diff-split")} ref={box} tabIndex={0} role="region" aria-label="Diff">
      <div className="log-inner" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((at) => {
          const item = items[at.index];
          const line = rowOf(item);
          const here = line && diffLineOf(line.path, line.row);
          const atCursor = here !== null && same(here, cursor);
          return item && (
            <div key={at.key} data-index={at.index} ref={virtual.measureElement} className="diff-item" style={{ transform: `translateY(${at.start}px)` }}>
              {item.what === "file" && <FileHead file={item.file} open={!closed.has(item.file.path)} onToggle={() => onToggle(item.file.path)} />}
              {item.what === "hunk" && <div className="diff-hunk">⋯ {block(item.header)}</div>}
              {item.what === "note" && <div className="diff-note muted">{item.text}</div>}
              {item.what === "row" && <UnifiedRow row={item.row} at={atCursor}>{opener(item.path, item.row)}</UnifiedRow>}
              {item.what === "pair" && <div className={cx("diff-pair", atCursor && "diff-at")}>{opener(item.path, item.pair.right ?? item.pair.left)}<Side row={item.pair.left} which="old" /><Side row={item.pair.right} which="new" /></div>}
              {item.what === "comments" && <div className="diff-said">{item.all.map((one) => <p key={one.id}><span className="muted small">{one.from}</span> {one.text}</p>)}</div>}
              {item.what === "draft" && commenting?.send && <Draft onClose={() => setDraft(null)} onSend={(text) => commenting.send?.(item.place, item.code, text) ?? Promise.resolve(false)} />}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** A comment as it is written; Ctrl Enter sends it. */
function Draft({ onClose, onSend }: { onClose: () => void; onSend: (text: string) => Promise<boolean> }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => area.current?.focus({ preventScroll: true }), []);
  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (busy || text.trim() === "") return;
    setBusy(true);
    if (await onSend(text)) onClose();
    else setBusy(false);
  };
  return (
    <form className="diff-draft" onSubmit={(event) => void send(event)}>
      <textarea
        ref={area} rows={2} aria-label="Comment" value={text} placeholder="Goes to the next session, with the file and this line."
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send(event);
        }}
      />
      <div className="row">
        <Button type="submit" small look="primary" disabled={busy || text.trim() === ""} title="Ctrl Enter">{busy ? "Sending …" : "Comment"}</Button>
        <Button small onClick={onClose}>Cancel</Button>
      </div>
    </form>
  );
}

function FileHead({ file, open, onToggle }: { file: FileDiff; open: boolean; onToggle: () => void }) {
  return (
    <button type="button" className="diff-file" aria-expanded={open} onClick={onToggle}>
      <span aria-hidden>{open ? "▾" : "▸"}</span>
      <span className="diff-path">{block(file.path)}</span>
      {file.status !== "modified" && <span className="tag">{file.status}</span>}
      <span className="num"><span className="tone-good">+{file.added}</span> <span className="tone-bad">−{file.removed}</span></span>
    </button>
  );
}
