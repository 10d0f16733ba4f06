import { useEffect, useMemo, useRef } from "react";
import type { Finding } from "../api/types";
import { cx } from "./basics";

interface EditorProps {
  value: string;
  onChange: (text: string) => void;
  findings?: Finding[];
  readOnly?: boolean;
  label: string;
  rows?: number;
  placeholder?: string;
}

/** A text editor with line numbers and marks for lint findings. */
export function Editor({ value, onChange, findings = [], readOnly, label, rows = 24, placeholder }: EditorProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => value.split("\n").length, [value]);
  const marks = useMemo(() => {
    const out = new Map<number, Finding>();
    for (const one of findings) if (one.line && (!out.has(one.line) || one.severity === "error")) out.set(one.line, one);
    return out;
  }, [findings]);
  useEffect(() => {
    if (gutter.current && area.current) gutter.current.scrollTop = area.current.scrollTop;
  }, [lines]);
  const jump = (line: number) => {
    const box = area.current;
    if (!box) return;
    const start = value.split("\n").slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    box.focus();
    box.setSelectionRange(start, start);
    box.scrollTop = Math.max(0, (line - 4) * 20);
  };
  return (
    <div className="editor-box">
      <div className="editor">
        <div className="editor-gutter mono" ref={gutter} aria-hidden>
          {Array.from({ length: lines }, (_, n) => {
            const mark = marks.get(n + 1);
            return <span key={n} className={cx(mark && (mark.severity === "error" ? "tone-bad" : "tone-attention"))} title={mark?.message}>{mark ? "●" : ""}{n + 1}</span>;
          })}
        </div>
        <textarea
          ref={area}
          className="editor-text mono"
          aria-label={label}
          value={value}
          rows={rows}
          readOnly={readOnly}
          spellCheck={false}
          wrap="off"
          placeholder={placeholder}
          onChange={(e) => onChange(e.target.value)}
          onScroll={(e) => {
            if (gutter.current) gutter.current.scrollTop = e.currentTarget.scrollTop;
          }}
        />
      </div>
      <Findings findings={findings} onLine={jump} />
    </div>
  );
}

/** Lint findings, each with its fix. */
export function Findings({ findings, onLine }: { findings: Finding[]; onLine?: (line: number) => void }) {
  if (findings.length === 0) return null;
  return (
    <ul className="findings" aria-label="Lint findings">
      {findings.map((one, n) => (
        <li key={n}>
          <span className={`sign tone-${one.severity === "error" ? "bad" : "attention"}`} aria-hidden>{one.severity === "error" ? "✗" : "!"}</span>
          <span className="sr-only">{one.severity}: </span>
          {one.line ? (onLine ? <button type="button" className="link num" onClick={() => onLine(one.line ?? 1)}>line {one.line}</button> : <span className="num muted">line {one.line}</span>) : null}{" "}
          <span>{one.message}</span>
          {one.fix && <span className="muted"> {one.fix}</span>}
        </li>
      ))}
    </ul>
  );
}
