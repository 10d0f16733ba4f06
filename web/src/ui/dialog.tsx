import { useEffect, useRef, useState, type FormEvent, type ReactNode } from "react";
import { asProblem } from "../api/client";
import { Button, cx } from "./basics";

/** A modal dialog of the browser: focus stays in it, Escape closes it. */
export function Dialog({ title, onClose, children, wide, className }: { title: string; onClose: () => void; children: ReactNode; wide?: boolean; className?: string }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog?.showModal();
    // Focus the input first, never a destructive button.
    const first = ["textarea, input", ".dialog-foot .button-primary", ".dialog-foot .button"].map((what) => dialog?.querySelector<HTMLElement>(what));
    first.find(Boolean)?.focus();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      className={cx("dialog", wide && "dialog-wide", className)}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === ref.current && onClose()}
    >
      <header className="dialog-head">
        <h2>{title}</h2>
        <button type="button" className="icon" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}

export interface Ask {
  title: string;
  /** What will happen. */
  consequence: ReactNode;
  confirm: string;
  danger?: boolean;
  /** Something that must be typed. */
  input?: { label: string; placeholder?: string; lines?: number; value?: string; optional?: boolean };
  run: (text: string) => Promise<unknown>;
}

/** Asks once, names the consequence, shows errors. */
export function AskDialog({ ask, onClose }: { ask: Ask; onClose: () => void }) {
  const [text, setText] = useState(ask.input?.value ?? "");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const missing = ask.input && !ask.input.optional && text.trim() === "";
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (missing || busy) return;
    setBusy(true);
    setProblem(null);
    try {
      await ask.run(text.trim());
      onClose();
    } catch (error) {
      const said = asProblem(error);
      setProblem([said.title, said.detail, said.hint].filter(Boolean).join(". "));
      setBusy(false);
    }
  };
  return (
    <Dialog title={ask.title} onClose={onClose}>
      <form onSubmit={submit} className="dialog-body">
        <div className="dialog-text">{ask.consequence}</div>
        {ask.input && (
          <label className="field">
            <span className="field-label">{ask.input.label}</span>
            {(ask.input.lines ?? 1) > 1 ? (
              <textarea
                rows={ask.input.lines}
                value={text}
                placeholder={ask.input.placeholder}
                onChange={(e) => setText(e.target.value)}
                onKeyDown={(e) => {
                  if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) e.currentTarget.form?.requestSubmit();
                }}
              />
            ) : (
              <input value={text} placeholder={ask.input.placeholder} onChange={(e) => setText(e.target.value)} />
            )}
          </label>
        )}
        {problem && (
          <p className="note note-bad" role="alert">
            {problem}
          </p>
        )}
        <footer className="dialog-foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look={ask.danger ? "danger" : "primary"} disabled={busy || Boolean(missing)}>
            {busy ? "Sending …" : ask.confirm}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
