import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App, loadRunPage } from "./app";
import { asked } from "./live/start";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/pages.css";

// What the first page needs comes at the same time as what it shows.
if (location.pathname.startsWith("/runs/")) void loadRunPage();

const root = document.getElementById("root");
if (root) {
  void asked().then((start) =>
    createRoot(root).render(
      <StrictMode>
        <App start={start} />
      </StrictMode>,
    ),
  );
}
