// Before anything is painted: the theme that this browser chose last.
try {
  var chosen = localStorage.getItem("ralph.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch (_) {
  // Storage may be forbidden; the system's theme is used then.
}
