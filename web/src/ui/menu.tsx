import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { cx } from "./basics";

export interface MenuItem {
  label: ReactNode;
  hint?: string;
  danger?: boolean;
  disabled?: string | false;
  run: () => void;
}

/** A button that opens a list of actions; arrows move, Escape closes. */
export function Menu({ label, name, items, className, align = "right" }: { label: ReactNode; name: string; items: (MenuItem | "line")[]; className?: string; align?: "left" | "right" }) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return;
    box.current?.querySelector<HTMLElement>('[role="menuitem"]:not([aria-disabled="true"])')?.focus();
    const outside = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);
  const move = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      setOpen(false);
      button.current?.focus();
      return;
    }
    if (event.key === "Tab") setOpen(false);
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const all = [...(box.current?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    all[(at + step + all.length) % all.length]?.focus();
  };
  return (
    <div className="menu" ref={box} onKeyDown={open ? move : undefined}>
      <button
        ref={button}
        type="button"
        className={cx("button button-plain", className)}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={name}
        title={name}
        onClick={() => setOpen(!open)}
      >
        {label}
      </button>
      {open && (
        <div className={cx("menu-list", align === "left" && "menu-left")} role="menu" aria-label={name}>
          {items.map((item, at) =>
            item === "line" ? (
              <div key={at} className="menu-line" role="separator" />
            ) : (
              <button
                key={at}
                type="button"
                role="menuitem"
                tabIndex={-1}
                className={cx("menu-item", item.danger && "tone-bad")}
                aria-disabled={Boolean(item.disabled)}
                title={item.disabled || undefined}
                onClick={() => {
                  if (item.disabled) return;
                  setOpen(false);
                  button.current?.focus();
                  item.run();
                }}
              >
                <span>{item.label}</span>
                {(item.hint || item.disabled) && <span className="menu-hint">{item.disabled || item.hint}</span>}
              </button>
            ),
          )}
        </div>
      )}
    </div>
  );
}
