import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef } from "react";
import { block } from "../lib/clean";
import { sideBySide, type FileDiff, type Pair, type Row } from "../lib/diff";
import { cx } from "./basics";

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

function UnifiedRow({ row }: { row: Row }) {
  return (
    <div className={`diff-row diff-${row.kind}`}>
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

type Item = { what: "file"; file: FileDiff } | { what: "hunk"; header: string } | { what: "row"; row: Row } | { what: "pair"; pair: Pair } | { what: "note"; text: string };

function itemsOf(files: FileDiff[], split: boolean, closed: ReadonlySet<string>): Item[] {
  const items: Item[] = [];
  for (const file of files) {
    items.push({ what: "file", file });
    if (closed.has(file.path)) continue;
    if (file.binary) items.push({ what: "note", text: "binary file" });
    else if (file.hunks.length === 0) items.push({ what: "note", text: file.from ? `renamed from ${file.from}` : "no text changes" });
    for (const hunk of file.hunks) {
      items.push({ what: "hunk", header: hunk.header });
      if (split) sideBySide(hunk.rows).forEach((pair) => items.push({ what: "pair", pair }));
      else hunk.rows.forEach((row) => items.push({ what: "row", row }));
    }
  }
  return items;
}

/** Files and their lines; draws only the visible ones. */
export function DiffView({ files, split, closed, onToggle, jump }: { files: FileDiff[]; split: boolean; closed: ReadonlySet<string>; onToggle: (path: string) => void; jump: (call: (path: string) => void) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const items = useMemo(() => itemsOf(files, split, closed), [files, split, closed]);
  const virtual = useVirtualizer({ count: items.length, getScrollElement: () => box.current, estimateSize: (at) => (items[at]?.what === "file" ? 37 : 20), overscan: 40 });
  jump((path) => {
    const at = items.findIndex((item) => item.what === "file" && item.file.path === path);
    if (at >= 0) virtual.scrollToIndex(at, { align: "start" });
  });
  return (
    <div className={cx("diff-view mono", split && "diff-split")} ref={box} tabIndex={0} role="region" aria-label="Diff">
      <div className="log-inner" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((at) => {
          const item = items[at.index];
          return item && (
            <div key={at.key} data-index={at.index} ref={virtual.measureElement} className="diff-item" style={{ transform: `translateY(${at.start}px)` }}>
              {item.what === "file" && <FileHead file={item.file} open={!closed.has(item.file.path)} onToggle={() => onToggle(item.file.path)} />}
              {item.what === "hunk" && <div className="diff-hunk">⋯ {block(item.header)}</div>}
              {item.what === "note" && <div className="diff-note muted">{item.text}</div>}
              {item.what === "row" && <UnifiedRow row={item.row} />}
              {item.what === "pair" && <div className="diff-pair"><Side row={item.pair.left} which="old" /><Side row={item.pair.right} which="new" /></div>}
            </div>
          );
        })}
      </div>
    </div>
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
