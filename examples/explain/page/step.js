/* step.js - draws the step: its row (door.js), its rule as tables, and the program that computed it. */
"use strict";

let picture = null; /* of the step that is shown; null: the cover is */

function drawStep() {
    const box = byId("step"), step = stepNow(), below = byId("below");
    state.asked = askedKey();
    below.classList.remove("full");
    if (!doorParts.row.nextElementSibling?.matches("main")) below.before(doorParts.row); /* the first screen had it */
    if (step.kind === "cover" || isCard(step)) {
        picture = null;
        if (isCard(step)) return drawCard(box, step);
        drawPlainRow("");
        drawCover(box);
        return addAgain(box);
    }
    if (isLoop(step)) return drawLoop(box, step);
    if (isTrying()) {
        picture = null;
        return drawExperiment(box);
    }
    picture = { unit: step.unit, sums: [], ...(hiddenPicture(step) || (state.compare && step.unit && !isRuleHidden(step) && comparison(step)) || plantedPicture(step) ||
        (isSgd(step) ? pictureOfSgd(step) : pictureOf(step))) };
    const all = !!picture.moves, turns = [...tablesIn(picture), arcsAt(step)].filter(Boolean), panels = Math.max(1, ...turns.map(view => view.panels)), isOne = panels > 1 && !all;
    const draw = wraps => {
        state.layout = fitLayout(box, all, wraps);
        drawTables(box, step, isOne && turns.find(view => view.panels === panels));
    };
    state.panel = Math.min(state.panel, panels - 1);
    if (isOne) turnToChosen();
    chooseRow();
    drawDoor(step, isNudging() && isOfWeights(step) ? [nameEl(picture.main.name), " = ?"] : picture.rule);
    if (isNudging()) return drawNudge(box, step);
    draw();
    if (!narrowTables()) draw(true);
    fitCaptions();
    showTerms();
}

/* A name may be wider than its table; where it would cover the name of the next one, it loses its note, then its end. */
function fitCaptions() {
    const captions = [...byId("step").querySelectorAll("figcaption")], box = each => each.getBoundingClientRect();
    captions.forEach((caption, n) => {
        const next = captions[n + 1], limit = next && Math.abs(box(next).top - box(caption).top) < 60
            ? box(next).left - 8 : box(byId("step")).right;
        const end = () => Math.max(...[...caption.children].map(child => (child.offsetWidth ? box(child).right : 0)));
        if (end() > limit) caption.classList.add("noteless");
        if (end() > limit) caption.firstChild.style.maxWidth = Math.max(30, limit - box(caption).left) + "px";
    });
}

/* turns: a view, or a tensor, of whose panels one is shown; false: all are. */
function drawTables(box, step, turns) {
    const choices = [drawLooks(step), turns && drawHeads(turns.t || turns), picture.row !== undefined && drawRows()].filter(Boolean);
    fill(box, el("div", { class: "upper" }, choices.length > 0 && el("div", { class: "rule" }, choices),
        isSgd(step) ? drawCourse() : drawItems(picture, state.layout)),
    el("div", { class: "lower" }, isSgd(step) && drawItems(picture, state.layout), el("div", { class: "terms", id: "terms" }), !isOfWeights(step) && step.algebra && !isRuleHidden(step) && !state.hide && drawAlgebra(step.algebra),
        state.compare && step.unit && drawBothLosses()),
    svg("svg", { class: "curves", id: "curves", "aria-hidden": "true" }));
}

/* The width of signs and words is only estimated before it is drawn: cells that reach over the edge become narrower.
 * False if they would be too narrow for their digits. */
function narrowTables() {
    const items = byId("step").querySelector(".items"), { layout } = state,
        right = each => each.getBoundingClientRect().right;
    const over = Math.max(0, ...[...items.querySelectorAll(".grid, .op")].map(right)) - right(items);
    if (layout.wraps || over <= 0) return true;
    layout.cell -= Math.ceil(over / Math.max(1, layout.columns));
    items.style.setProperty("--cw", layout.cell + "px");
    return layout.cell >= layout.least;
}

const lowest = list => Math.max(0, ...list.filter(each => each.getClientRects().length).map(each =>
    each.getBoundingClientRect().bottom)) + scrollY;

/* Where the step ends, with its words and the open question. */
const endOfAll = () => lowest([...byId("step").querySelectorAll(".items, .nudged > *, .legend, #terms > *"),
    ...byId("below").querySelectorAll("#words > .text, .verdict, #questions > .question")]);

const LEAST_ROW = 21; /* pixels */

/* On a wide window the step ends above its lower edge: with smaller words, with lower rows, and, of large tables,
 * fewer rows in view at a time, unless all are wanted. Returns how many pixels are cut off nevertheless. */
function settle(isWhole = false) {
    const items = byId("step").querySelector(".items"), below = byId("below"),
        limit = innerHeight - 6;
    below.classList.remove("small");
    if (isCard(stepNow())) below.classList.toggle("small", isWide() && lowest([...byId("words").children]) > limit);
    if (isCard(stepNow()) && isWide()) return Math.max(0, lowest([byId("step").lastChild]) - limit);
    if (!picture || !isWide()) return 0;
    if (isNudging()) {
        below.classList.toggle("small", endOfAll() > limit);
        if (items) nudged.height = lowerRows(items, () => endOfAll() - limit);
        return Math.max(0, endOfAll() - limit);
    }
    if (!items) return 0;
    const step = () => lowest([items, ...byId("terms").children]);
    if (endOfAll() > limit) below.classList.add("small");
    if (endOfAll() > limit && byId("questions")) moveQuestions();
    const isUnder = below.classList.contains("full") || (byId("questions") && byId("step").contains(byId("questions"))),
        over = () => (isUnder ? endOfAll() : step()) - limit;
    lowerRows(items, over);
    if (over() > 0 && !isWhole) cutTables(items, over());
    showTerms();
    return Math.max(0, endOfAll() - limit);
}

/* Lower rows, until nothing is over. Returns their height. */
function lowerRows(items, over) {
    const { layout } = state, low = LEAST_ROW * enlarged();
    let { height } = layout;
    for (let n = 0; n < 8 && over() > 0 && height > low; n++) {
        height = Math.max(low, height - Math.max(0.5, over() * (height + 2) / items.clientHeight));
        items.style.setProperty("--ch", height + "px");
        items.style.setProperty("--font", Math.min(layout.font, height * 0.58) + "px");
    }
    return height;
}

/* The questions stand under the line of terms, if they end higher there. */
function moveQuestions() {
    const questions = byId("questions"), words = questions.parentElement, next = questions.nextSibling,
        before = endOfAll();
    byId("terms").after(questions);
    if (endOfAll() >= before) words.insertBefore(questions, next);
}

const FEW_ROWS = 8;

/* Large tables that stand in lines lose so many pixels of height: the highest ones first. What is cut off scrolls, and the
 * tables with as many rows scroll along. A table of few rows is never cut, but where a lecturer presents: there nobody scrolls
 * the page, and the words of the step have to stand on the screen. */
function cutTables(items, over) {
    const rowsIn = panels => panels.querySelector(".grid")?.querySelectorAll('[role="row"]').length || 0;
    const LEAST = (isPresenting() ? 84 : 132) * enlarged(), few = isPresenting() ? 0 : FEW_ROWS, lines = new Map(),
        panels = [...items.querySelectorAll(".panels")].filter(each => rowsIn(each) > few);
    if (!panels.length) return;
    for (const each of panels) {
        const { top } = each.closest(".item").getBoundingClientRect();
        lines.set(top, Math.max(lines.get(top) || 0, each.clientHeight));
    }
    const heights = [...lines.values()], room = sum(heights) - over;
    let cap = Math.max(...heights);
    while (cap > LEAST && sum(heights.map(h => Math.min(h, cap))) > room) cap -= 4;
    const cut = panels.filter(each => each.clientHeight > cap), wholeRows = each => { /* no row is cut in half */
        const { top } = each.getBoundingClientRect(), ends = [...each.querySelectorAll(".c")].map(cell =>
            cell.getBoundingClientRect().bottom - top + 2);
        return Math.max(...ends.filter(end => end <= cap), Math.min(...ends));
    };
    for (const [each, height] of cut.map(each => [each, wholeRows(each)])) {
        each.style.maxHeight = height + "px";
        each.classList.add("cut");
        each.onscroll = () => {
            for (const other of cut) if (rowsIn(other) === rowsIn(each) && other.scrollTop !== each.scrollTop) other.scrollTop = each.scrollTop;
            drawCurves();
        };
    }
}

const tablesIn = ({ items }) => items.filter(item => item.table).map(item => item.table);

/* The layout of the tables. A wide formula gets the whole width, and the words go under it. */
function fitLayout(box, all, wraps) {
    const { items } = picture, below = byId("below"), k = enlarged();
    const top = below.getBoundingClientRect().top + scrollY, H = Math.max(200, innerHeight - top - 40);
    const fit = () => layoutOf(items, box.clientWidth - 20, H, all, wraps), layout = fit(),
        free = H - 180 * k - layout.rows * (layout.height + 2);
    const isSmall = layout.wraps || layout.font < 14 * k || (layout.isTight && free > 150 * k);
    if (!isWide() || !isSmall) return layout;
    below.classList.add("full");
    return fit();
}

/* A row of buttons, of which one is pressed. choose() draws the step again, and the button keeps the focus. */
function drawChoice(name, words, label, pressed, choose) {
    const press = n => {
        choose(n);
        byId("step").querySelectorAll(`.${name.replaceAll(" ", ".")} button`)[n].focus();
    };
    return el("div", { class: name, role: "group", "aria-label": label }, words.map((word, n) =>
        el("button", { "aria-pressed": String(n === pressed), onclick: () => press(n) }, word)));
}

/* The panels of a tensor, where one is shown at a time. Of many heads only the first says that it is one. */
const drawHeads = t => drawChoice("heads", range(t.panels, p => panelName(t, p).replace(p && t.panels > 6 ? /^\w+ / : "", "")), "which part", panelShown(t), p => {
    Object.assign(state, { panel: p, chosen: null, turned: stepNow() });
    drawStep();
    settle();
});

const panelShown = t => Math.min(state.panel, t.panels - 1);

/* Brings the panel of the chosen cell into view; if none is chosen, that of the cell which the question or the words of the
 * step are about, until the reader turns to another one. */
function turnToChosen() {
    const { main } = picture, { look } = stepNow(), isTurned = state.turned === stepNow();
    const key = state.chosen || (isTurned ? null : readKey(state.asked) ? state.asked
        : look === undefined ? null : main.key(look));
    const i = Number((/\.(\d+)$/.exec(key) || [])[1] ?? NaN);
    if (main.panels > 1 && main.key(i) === key) state.panel = Math.floor(i / (main.t.rows * main.t.columns));
}

/* On a phone a row-wise rule shows one row of its tables: that of the number that is worked out. */
function chooseRow() {
    const { main, rowOf } = picture;
    if (!isNarrow() || !rowOf || tablesIn(picture).length < 3) return;
    const [, of, index = "0"] = /^([a-z]).*\.(\d+)$/.exec(state.chosen || defaultKey()) || [], i = Number(index);
    picture.row = of === "m" ? i % main.rows : rowOf(Math.min(i, main.numbers.length - 1));
    for (const view of tablesIn(picture)) if (view.rows > 1) view.onlyRow = picture.row;
}

function drawRows() {
    const { main, row } = picture, C = main.t.columns, first = state.panel * main.t.rows * C;
    const words = range(main.rows, r => (main.rowWords ? main.rowWords[r] : `row ${r}`));
    return drawChoice("heads rows", words, "which row", row, r => {
        state.chosen = main.key(first + r * C);
        drawStep();
    });
}

/* ---- the program ----------------------------------------------------------------------- */

/* The lines of C that computed the step, if the page has them; what the tape says of the op. The button stands with the
 * words; lines of C need the whole width, under the step. */
function drawProgram(step) {
    const isHidden = !step.unit || isRuleHidden(step);
    byId("program").hidden = isHidden || !state.program;
    if (isHidden) return "";
    fillProgram(step);
    const toggle = event => {
        state.program = !state.program;
        event.currentTarget.setAttribute("aria-expanded", String(state.program));
        byId("program").hidden = !state.program;
        if (state.program) byId("program").scrollIntoView({ block: "nearest", behavior: calm() ? "auto" : "smooth" });
    };
    return el("button", { class: "opens", "aria-expanded": String(state.program), "aria-controls": "program",
        onclick: toggle }, "the program");
}

function fillProgram(step) {
    const row = (name, text) => text && [el("dt", {}, name), el("dd", {}, text)];
    const pieces = step.unit.lines.flatMap(line => sourcesOf(line, step.kind === "forward"));
    const shapes = line => `${line.inputs.filter(Boolean).map(t => shapeText(t.shape)).join(", ")} → ${shapeText(line.result.shape)}`;
    fill(byId("program"),
        pieces.filter((piece, n) => pieces.indexOf(piece) === n).map(({ file, line, title, text }) => el("figure", {},
            el("figcaption", {}, el("b", {}, title), ` ${file}:${line}`), el("pre", { tabindex: "0" }, text))),
        step.unit.lines.map(line => el("dl", {}, row("line", `%${line.line} ${plain(line.result.name)} = ${line.op}`),
            row("call", line.call),
            row("y", line.formula), row("gradient", line.gradient), row("shapes", shapes(line)), row("in general", line.shapes),
            row("memory", step.unit.moves && (line.view ? "a view: it shares the numbers of its input" : "a copy")),
                row("source", line.source))));
}

const shapeText = shape => "(" + shape.join(", ") + ")";

function sourcesOf({ line }, isForward) {
    const { forward = [], backward = [], model } = (state.lesson.program || []).find(each => each.line === line) || {};
    return [...(isForward ? forward : backward), model].map(n => sources[n]).filter(Boolean);
}

/* ---- motion ------------------------------------------------------------------------------------------------------- */

/* After all is placed: the curves end at cells that do not move. What is computed fades in, what arrives comes from the right, and what moves slides. */
function animateStep() {
    if (calm() || !state.moved || !picture) return;
    state.moved = false;
    const { moves } = picture, box = byId("step");
    if (moves && moves.length <= 400) return slide(moves);
    const cells = [...box.querySelectorAll(".tab.main .c")], wait = Math.min(60, 600 / cells.length);
    if (cells.length <= 400) cells.forEach((cell, n) =>
        cell.animate([{ opacity: 0, transform: "scale(.7)" }, { opacity: 1, transform: "none" }],
        { duration: 260, delay: 250 + n * wait, easing: "ease-out", fill: "backwards" }));
    for (const tab of box.querySelectorAll('.tab[data-of="g"]:not(.main)'))
        tab.animate([{ opacity: 0.2, transform: "translateX(28px)" }, { opacity: 1, transform: "none" }],
            { duration: 320, easing: "ease-out" });
}

function slide(moves) {
    const places = new Map([...byId("step").querySelectorAll(".c")].map(cell =>
        [cell.dataset.key, [cell, cell.getBoundingClientRect()]]));
    for (const [from, to] of moves) {
        const [, a] = places.get(from) || [], [cell, b] = places.get(to) || [];
        if (a && b) cell.animate([{ transform: `translate(${a.x - b.x}px,${a.y - b.y}px)`, zIndex: 3 },
            { transform: "none", zIndex: 3 }],
            { duration: 800, easing: "cubic-bezier(.5,0,.2,1)", fill: "backwards" });
    }
}
