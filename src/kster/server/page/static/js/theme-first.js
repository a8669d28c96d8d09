// Runs before the page is painted, so that a chosen theme does not flash. The toggle is in theme.js.
const chosenTheme = localStorage.getItem("kster-theme");
if (chosenTheme) document.documentElement.dataset.theme = chosenTheme;
