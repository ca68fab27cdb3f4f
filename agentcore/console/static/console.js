// Behavior of the console that HTML and htmx lack: theme, copy buttons, outputs of sliders, and hidden parts.
"use strict";

const root = document.documentElement;
const THEMES = ["auto", "light", "dark"];

function applyTheme(theme) {
  root.dataset.theme = theme;
  for (const button of document.querySelectorAll("[data-theme-toggle]")) button.textContent = `Theme: ${theme}`;
}

applyTheme(localStorage.getItem("theme") ?? "auto");

document.addEventListener("click", async (event) => {
  const toggle = event.target.closest("[data-theme-toggle]");
  if (toggle) {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length];
    localStorage.setItem("theme", next);
    applyTheme(next);
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const name = copy.textContent;
    try {
      await navigator.clipboard.writeText(copy.dataset.copy);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Not allowed by the browser";
    }
    setTimeout(() => (copy.textContent = name), 1500);
  }
});

document.addEventListener("input", (event) => {
  const field = event.target;
  if (field.dataset.output) document.getElementById(field.dataset.output).textContent = field.value;
  if (field.dataset.shows) document.getElementById(field.dataset.shows).hidden = !field.checked;
});
