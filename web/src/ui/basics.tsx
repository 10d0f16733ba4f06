import { useState, type AnchorHTMLAttributes, type ButtonHTMLAttributes, type ReactNode } from "react";
import type { Problem } from "../api/client";
import { webAddress } from "../lib/clean";
import { age, ago, exact, timeOfDay } from "../lib/format";
import { useTimeWords } from "../lib/hooks";
import { go } from "../router";
import { toast } from "./toast";

export function cx(...names: (string | false | null | undefined)[]): string {
  return names.filter(Boolean).join(" ");
}

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { look?: "plain" | "primary" | "danger" | "quiet"; small?: boolean };

export function Button({ look = "plain", small, className, type = "button", ...rest }: ButtonProps) {
  return <button type={type} className={cx("button", `button-${look}`, small && "button-small", className)} {...rest} />;
}

/** A link within the page. */
export function A({ href, onClick, ...rest }: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string }) {
  return (
    <a
      href={href}
      onClick={(event) => {
        onClick?.(event);
        if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        go(href);
      }}
      {...rest}
    />
  );
}

/** An external link; unsafe URLs show as text. */
export function Out({ href, children }: { href: string; children: ReactNode }) {
  const safe = webAddress(href);
  if (!safe) return <span>{children}</span>;
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer">
      {children} <span aria-hidden>↗</span>
    </a>
  );
}

/** A time as an age, the exact one on hover. */
export function Ago({ at, narrow }: { at: string | null | undefined; narrow?: boolean }) {
  const words = useTimeWords((now) => (at ? (narrow ? age(at, now) : ago(at, now)) : "–"));
  if (!at) return <span className="muted">–</span>;
  return (
    <time dateTime={at} onPointerEnter={(event) => (event.currentTarget.title = exact(at))} className="num">
      {words}
    </time>
  );
}

/** `19:06 (in 15 min)`. */
export function Until({ at }: { at: string }) {
  const words = useTimeWords((now) => `${timeOfDay(at, now)} (${ago(at, now)})`);
  return (
    <time dateTime={at} title={exact(at)} className="num">
      {words}
    </time>
  );
}

export function Copy({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      toast("The browser blocks copying here.", "attention");
    }
  };
  return (
    <button type="button" className="copy" onClick={copy} aria-label={`Copy ${label}`} title={`Copy ${label}`}>
      {done ? "✓" : <CopyIcon />}
      <span className="sr-only" role="status">{done ? "copied" : ""}</span>
    </button>
  );
}

function CopyIcon() {
  return (
    <svg viewBox="0 0 16 16" width="13" height="13" aria-hidden fill="none" stroke="currentColor" strokeWidth="1.4">
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M10.5 3.5v-.2A.8.8 0 0 0 9.7 2.500H3.3a.8.8 0 0 0-.8.8v6.400a.8.8 0 0 0 .8.8h.2" />
    </svg>
  );
}

/** An error in three lines: what failed, the cause, the fix. */
export function ProblemNote({ problem, retry }: { problem: Problem; retry?: () => void }) {
  return (
    <div className="note note-bad" role="alert">
      <strong>{problem.title}</strong>
      {problem.detail && <p>{problem.detail}</p>}
      {problem.hint && <p className="muted">{problem.hint}</p>}
      {retry && (
        <Button small onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Holds the space while data loads, so that nothing jumps. */
export function Skeleton({ lines = 3, label = "Loading" }: { lines?: number; label?: string }) {
  return (
    <div className="skeleton" role="status" aria-label={label}>
      {Array.from({ length: lines }, (_, at) => (
        <span key={at} className={`skeleton-line skeleton-${at % 3}`} />
      ))}
    </div>
  );
}

export function Field({ label, hint, children }: { label: string; hint?: ReactNode; children: ReactNode }) {
  return (
    <label className="field">
      <span className="field-label">{label}</span>
      {children}
      {hint && <span className="field-hint">{hint}</span>}
    </label>
  );
}

export function Section({ title, aside, children, className }: { title: ReactNode; aside?: ReactNode; children: ReactNode; className?: string }) {
  return (
    <section className={cx("section", className)}>
      <header className="section-head">
        <h2>{title}</h2>
        {aside && <div className="section-aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}
