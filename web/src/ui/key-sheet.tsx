import { bindings, type KeyBinding } from "../lib/keys";
import { Dialog } from "./dialog";

const GROUPS: [KeyBinding["group"], string][] = [["everywhere", "Everywhere"], ["runs", "Runs"], ["run", "This run"], ["timeline", "Timeline"], ["diff", "Diff"], ["logs", "Logs"]];

/** The keys that work now. */
export default function KeySheet({ onClose }: { onClose: () => void }) {
  const all = bindings();
  return (
    <Dialog title="Keys" onClose={onClose} wide>
      <div className="key-sheet">
        {GROUPS.map(([group, label]) => {
          const keys = all.filter((one) => one.group === group);
          return keys.length === 0 ? null : (
            <section key={group}>
              <h3>{label}</h3>
              <dl>
                {group === "everywhere" && <div><dt><kbd>Ctrl</kbd> <kbd>K</kbd></dt><dd>Search and commands</dd></div>}
                {keys.map((one) => (
                  <div key={one.keys}><dt>{one.keys.split(" ").map((key) => <kbd key={key}>{key}</kbd>)}</dt><dd>{one.what}</dd></div>
                ))}
              </dl>
            </section>
          );
        })}
      </div>
    </Dialog>
  );
}
