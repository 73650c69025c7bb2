/* keys.js - the keyboard. Arrows step, unless the focus stands in a table, where they move, or in a field that needs them. */
"use strict";

/* A box or a button needs no arrows; a field of text, a slider and a choice do. (A click on a choice leaves the focus where
 * it was, so that the arrows go on stepping.) */
const needsKeys = target => target.closest("select, textarea, dialog, [role='slider'], input:not([type='checkbox'])");

/* A slider that a pointer has moved lets the arrows go: they step again. */
const letGo = ({ target }) => target.closest?.("#step :is([role='slider'], input[type='range'])")?.blur();

function onKey(event) {
    const { key, target } = event, cell = target.closest?.("#step .c"), node = target.closest?.(".node");
    if (event.ctrlKey || event.altKey || event.metaKey || !target.closest) return;
    if (event.repeat && key === "ArrowRight" && state.lesson && isLastStep()) return; /* a key held down leaves no lesson */
    if (key === "Escape" && !target.closest("dialog")) escape(cell);
    else if (needsKeys(target) && !leavesRight(event)) return;
    else if (key === "?") openHelp();
    else if (isPlaying()) return;
    else if (cell && (Controls.typeIn(key) || moveInGrid(cell, key))) event.preventDefault();
    else if (node && /^Arrow(Up|Down)$/.test(key)) moveInMachine(node, key);
    else if (!stepByKey(key, target) && !otherKey(key)) return;
    event.preventDefault();
}

const isLastStep = () => state.step === state.lesson.steps.length - 1;

/* The next look at the step, then a step on; where answers are hidden from a class, the first press shows them, another one answers what the class was
 * asked, and the next one leads on. */
function stepOn() {
    if (lookOn()) return;
    if (isPresenting() && state.hide && (revealStep() || revealAnswers())) return;
    if (isLastStep()) reachEnd();
    else goTo(nextStep(1));
}

const stepBack = () => lookBack() || goTo(nextStep(-1));

/* The step that a key leads to. A clicker presses the page keys, and some the space bar. */
function stepByKey(key, target) {
    const keys = { ArrowLeft: -1, ArrowRight: 1, ...(isPresenting() && { PageUp: -1, PageDown: 1 }) };
    const isSpace = isPresenting() && key === " " && !target.closest("button, a, summary, input");
    if (key === "Home" || key === "End") goTo(key === "Home" ? 0 : Infinity);
    else if (isSpace || keys[key] > 0) stepOn();
    else if (key in keys) stepBack();
    else return false;
    return true;
}

function otherKey(key) {
    const { unit } = stepNow(), group = unit && state.lesson.groups.find(each => unit.lines.some(line => each.lines.includes(line)));
    if (key === "p") present();
    else if (key === "h" || key === "e") toggleHide();
    else if (key === "t" && canFold()) toggleTape();
    else if (key === "k") toggleKeys();
    else if (key === "w") return writeHere();
    else if (key === "o" && group) toggleGroup(group);
    else return false;
    return true;
}

/* Closes what is open: a panel, the stay in a table, the choice of a number, present mode. */
function escape(cell) {
    if (byId("door").contains(document.activeElement)) leaveDoor();
    else if (!byId("panel").hidden) closePanel(true);
    else if (isPlaying()) setPresent(false);
    else if (isTrying()) tryOut(false);
    else if (cell) {
        byId("step").focus({ preventScroll: true });
        choose(null);
    } else if (byId("words").contains(document.activeElement) || byId("step").contains(document.activeElement)) {
        byId("step").focus({ preventScroll: true });
        if (state.chosen) choose(null);
    } else if (state.chosen) choose(null);
    else if (isPresenting()) present(false);
}

/* The arrows move in the rows and columns of a table. */
function moveInGrid(cell, key) {
    const grid = cell.closest(".grid"), cells = [...grid.querySelectorAll(".c")], n = cells.indexOf(cell);
    const C = Number(grid.style.getPropertyValue("--cols")), to = {
        ArrowLeft: n % C ? n - 1 : n, ArrowRight: n % C < C - 1 ? n + 1 : n, ArrowUp: n - C, ArrowDown: n + C,
        Home: n - n % C, End: n - n % C + C - 1, Enter: n, " ": n }[key];
    if (to === undefined) return false;
    const next = cells[to];
    if (next) {
        if (/^(Enter| )$/.test(key) && canPick(next)) togglePick(next);
        else choose(next.dataset.key);
        (cellAt(next.dataset.key) || next).focus();
        if (grid.isConnected) next.focus();
    }
    return true;
}
