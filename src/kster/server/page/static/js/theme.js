// Light or dark: as the system has it, unless chosen here.

import { byId } from "./dom.js";

const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () =>
  (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";

export function setUpTheme() {
  const toggle = byId("theme");
  const show = () => toggle.setAttribute("aria-pressed", isDark());
  toggle.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("kster-theme", theme);
    show();
  });
  system.addEventListener("change", show);
  show();
}
