/* experiment.js - an experiment of a lesson, in the place of its step: a slider, and a table of numbers that the library has
 * computed at each position. See experiments.h for the data. state.trying: the position, -1: the first one that is shown; null:
 * the step is shown. */
"use strict";

/* A table with hidden numbers or a hidden rule could be read off an experiment, so there is none at such a step. */
const experimentAt = step => !state.hide && (state.lesson.experiments || []).find(({ at }) => isAt(at, step));
const isTrying = () => state.trying !== null && !!experimentAt(stepNow());

function tryOut(isOn) {
    state.trying = isOn ? -1 : null;
    isNewEntry = isOn; /* Back leads back to the step */
    drawAgain();
    isNewEntry = false;
    (isOn ? byId("try-at") : byId("words").querySelector(".try"))?.focus();
}

/* The button beside a step, and what stands in its place during the experiment. */
function drawTry(step) {
    const experiment = experimentAt(step);
    return experiment && button(["Try it: ", prose(experiment.title)], () => tryOut(true), { class: "try" });
}

const drawWordsOfTry = ({ lead }) => [el("p", { class: "text" }, prose(lead)),
    button("back to the step", () => tryOut(false), { class: "try" })];

function drawExperiment(box) {
    const { title, knob, start, positions, algebra } = experimentAt(stepNow()), table = el("div", { class: "tried" }),
        says = el("p", { class: "text", role: "status" }), label = el("output");
    const slider = el("input", { type: "range", id: "try-at", min: "0", max: String(positions.length - 1),
        value: String(state.trying < 0 ? start : state.trying), oninput: () => show(Number(slider.value)) });
    function show(n) {
        state.trying = n;
        label.textContent = typeset(positions[n].label);
        slider.setAttribute("aria-valuetext", label.textContent);
        fill(table, drawTried(experimentAt(stepNow()), positions[n].cells));
        fill(says, prose(positions.slice(0, n + 1).findLast(each => each.says)?.says));
    }
    drawPlainRow(prose(title));
    fill(box, el("label", { class: "slides" }, prose(knob), slider, label), table, algebra ? drawAlgebra(algebra) : says);
    show(Number(slider.value));
}

/* A column without a name belongs to the one before it. */
function drawTried({ rows, columns, kinds }, cells) {
    const ends = n => columns.findIndex((name, m) => m > n && name), span = n => (ends(n) < 0 ? columns.length : ends(n)) - n;
    const head = columns.map((name, n) => name && el("th", { scope: "col", colspan: String(span(n)) }, prose(name)));
    return el("table", {}, el("thead", {}, el("tr", {}, el("td"), head)), el("tbody", {}, rows.map((row, r) =>
        el("tr", {}, el("th", { scope: "row" }, prose(row)), columns.map((_, c) =>
            drawTriedCell(cells[r * columns.length + c], kinds[c], rows))))));
}

/* A share is a bar behind its number; the places of one word have one shade. */
function drawTriedCell(text, kind, rows) {
    const share = kind === "s" ? Number(text) || 0 : kind === "w" ? rows.indexOf(text.replace(/ \d+$/, "")) / rows.length : 0;
    return el("td", { class: { s: "share", w: "place" }[kind], "--share": share.toFixed(3) }, typeset(text));
}
