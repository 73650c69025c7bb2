/* panels.js - the panels under the header. One is open at a time; it moves the page down and covers nothing. */
"use strict";

const panelKinds = { example: drawChange, share: drawShare };

const closer = () => button(icon("wrong"), () => closePanel(true), { class: "close", "aria-label": "Close" });

function openPanel(name) {
    const box = byId("panel"), wasOpen = box.dataset.by === name && !box.hidden;
    closePanel();
    if (wasOpen) return;
    box.dataset.by = name;
    box.hidden = false;
    box.setAttribute("aria-label", byId("b-" + name).getAttribute("aria-label"));
    byId("b-" + name).setAttribute("aria-expanded", "true");
    fill(box, closer(), panelKinds[name]());
    updatePanel();
    drawAgain();
    (box.querySelector("input:enabled") || box.querySelector("button")).focus({ preventScroll: true });
    if (scrollY > box.offsetTop) scrollTo(0, 0);
}

/* back: the focus returns to the button that opened it. */
function closePanel(back) {
    const box = byId("panel"), { by } = box.dataset;
    if (box.hidden) return;
    const button = byId("b-" + by);
    button.setAttribute("aria-expanded", "false");
    box.hidden = true;
    box.dataset.by = "";
    box.replaceChildren();
    inputs = new Map();
    if (back) button.focus();
    if (state.lesson && !isPlaying()) drawAgain();
}

function setPresent(on) {
    document.documentElement.classList.toggle("present", on);
    if (on) byId("exit").before(byId("b-help")); /* the header is hidden */
    else byId("b-share").after(byId("b-help"));
    if (on) state.hide = true;
}

function present(on = !isPresenting()) {
    setPresent(on);
    if (on) closePanel();
    rebuild();
}

function openHelp() {
    fill(byId("language"), drawLanguage());
    fill(byId("letters"), drawLetters(state.lesson));
    byId("help").showModal();
}

function beginPanels() {
    for (const name of Object.keys(panelKinds)) byId("b-" + name).addEventListener("click", () => openPanel(name));
    byId("exit").addEventListener("click", () => present(false));
    byId("b-help").addEventListener("click", openHelp);
}
