/* terms.js - the line under the tables: one number, and what it is made of. Hover changes it, a click keeps it, and each
 * factor leads to the step that it came from. */
"use strict";

const cellsAt = key => (key ? [...byId("step").querySelectorAll(`.c[data-key="${key}"]`)] : []);
const cellAt = key => cellsAt(key)[0];

/* The number that is worked out if none is chosen: the one that the text is about, or the largest. */
function defaultKey() {
    const { main } = picture, { unit, look, most } = stepNow(), panel = main.t.rows * main.t.columns;
    const here = main.numbers.map((x, i) => i).filter(i => picture.moves || main.panels === 1 ||
        Math.floor(i / panel) === state.panel);
    const counted = state.asked === "terms" ? questionsNow().find(({ question }) => question.kind === "count").question.index : -1;
    const asked = here.find(i => main.key(i) === state.asked || i === counted),
        i = [asked, look, most ?? picture.most, here[0]].find(each => here.includes(each));
    return i === undefined || !(unit || picture.most) ? null : main.key(i);
}

const viewAt = (key, i) => tablesIn(picture).find(view => view.key(i) === key) || picture.main;

function showTerms() {
    const box = byId("terms");
    if (!box || !picture) return;
    const first = byId("step").querySelector(".tab.main .c"),
        key = [state.hover, state.chosen, defaultKey(), first?.dataset.key].find(cellAt);
    const cell = cellAt(key);
    if (!cell) {
        fill(box);
        return mark(null, null, []);
    }
    const i = Number(cell.dataset.i), view = viewAt(key, i), isHidden = isSecret(view, i),
        isCounted = view.isMain && state.asked === "terms",
        isOpen = !isCounted && (!isHidden || (state.hint && !isAskedFor(key)));
    const terms = view.isMain ? picture.terms(i) : picture.sums.find(sum => sum.view === view)?.terms(i);
    fill(box, el("span", { class: "what" }, view.plainName ? prose(view.name) : view.isFrom
        ? ["from ", nameEl(view.name)] : nameEl(view.name),
        el("small", {}, placeWords(view, i)), " = "), terms
            ? drawTerms(view, i, terms, isHidden, isOpen) : drawInput(view, i, key, isHidden),
    view.isMain && isOpen && drawSums(view, i));
    mark(cell, key, isOpen && terms ? terms.map(term => term.key) : terms ? [] : dependents(key));
    if (key !== state.hover) bringAllIntoView(cell);
    drawCurves();
}

/* A number that the step computes: its terms and their sum. */
function drawTerms(view, i, terms, isHidden, isOpen) {
    const x = view.numbers[i], reason = x === 0 && !isHidden ? view.reason(i) : "",
        output = el("output", { class: "sum" }, written(x, view.format));
    const isAlone = terms.filter(term => term.key).length === 1 && terms.every(term => term.key || term.note) &&
        !terms.some(term => term.isOf);
    const drawTerm = (term, n) => (typeof term === "string" ? el("span", { class: "sign" }, term)
        : term.note ? el("span", { class: "note" }, term.note) : drawFactor(term, term.x < 0 &&
        (/[×+−]\s?$/.test(terms[n - 1] || "") || /^[⁰¹²³⁴⁵⁶⁷⁸⁹]/.test(terms[n + 1] || ""))));
    const nodes = isOpen ? terms.map(drawTerm) : [];
    const equals = el("span", { class: "sign" }, terms.some(term => term.isOf) ? " → " : " = ");
    if (isHidden && isAskedFor(view.key(i))) return [...nodes,
        el("span", { class: "note" }, "? The question asks for it.")];
    if (!isHidden && !isOpen) return [el("span", { class: "held" }, output, el("span", { class: "note" }, ",")),
        el("span", { class: "note rest" }, "a sum: the question asks for its terms.")];
    if (isHidden) return [...nodes, isOpen && equals, guessField(view, i)];
    /* A line does not end in a product, nor in exp(−2.35), nor does it begin with ", moved". */
    const hold = (n, size) =>
        nodes.splice(n, size, el("span", { class: "held" }, nodes.slice(n, n + size)), ...Array(size - 1).fill(""));
    terms.forEach((term, n) => {
        const size = terms.indexOf(")", n) + 1 - n;
        if (term === " × " && nodes[n - 1] && nodes[n + 1]) hold(n - 1, 3);
        else if (/(exp|cos|sin)\($/.test(term) && size > 0) hold(n, size);
        else if (n && /^,/.test(term.note)) hold(n - 1, 2);
    });
    return [nodes, terms.length === 0 ? output : !isAlone && el("span", { class: "held" }, equals, output),
        reason && el("span", { class: "why" }, "because " + reason),
            view.off?.has(i) && el("span", { class: "why" }, wrongWords(view, i)),
            gapOf(view, i) && el("span", { class: "why" }, gapOf(view, i))];
}

/* A line for each table of sums or of a part that the first line reads; a sum of columns has no such row. */
const drawSums = ({ t }, i) => picture.sums.filter(({ view }) => view.isMean || view.numbers.length > i).map(({ view, terms }) => {
    const r = view.isMean ? Math.floor(i / t.columns) : i;
    return r < view.numbers.length && el("div", { class: "mean" }, prose(view.name), " = ", drawTerms(view, r, terms(r), false, true));
});

function drawFactor({ key, x, text }, isBracketed) {
    if (!key) return el("span", { class: "sign" }, isBracketed ? `(${text})` : text);
    const shown = isAskedFor(key) && !isShown(key) ? "?" : isBracketed ? `(${text})` : text, target = whereFrom(key);
    return target ? el("a", { class: "fac", href: addressOf(target.step, target.key), "data-key": key, title: target.words }, shown)
        : el("span", { class: "fac", "data-key": key, title: x === undefined ? "" : null }, shown);
}

/* A number that the step reads: where it came from, and what it goes into. */
function drawInput(view, i, key, isHidden) {
    const x = view.numbers[i], reason = x === 0 && !isHidden ? view.reason(i) : "", target = whereFrom(key);
    const isGiven = view.of === "v" && !view.t.producer, into = dependents(key), read = readKey(key);
    const leads = target && el("a", { class: "goto", href: addressOf(target.step, target.key) },
        view.of === "g" ? "where this gradient came from" : view.of === "p"
            ? "where this part came from" : "where it was computed");
    const given = isGiven && el("span", { class: "note" }, view.t.parts.length ? "given: one of the numbers that learn" : "given");
    return [el("span", { class: "sum" }, isHidden ? "?" : written(x, view.format)),
        leads || given ? el("span", {}, "  ") : "", leads, given,
        reason && el("span", { class: "why" }, `0, because ${reason}`), read && into.length > 0 && drawInto(into),
            isGiven && Controls.field(view.t, i)];
}

/* The numbers that this step makes from the number with this key. */
function dependents(key) {
    const { main, terms } = picture;
    return main.numbers.map((_, i) => main.key(i)).filter((_, i) => terms(i).some(term => term.key === key));
}

function drawInto(keys) {
    const { main } = picture, place = key => placeWords(main, Number(/\d+$/.exec(key)[0])) || "it";
    const link = key => el("a", { class: "goto", href: addressOf(stepNow(), key) }, place(key)), most = 4;
    return el("span", { class: "note" }, "  goes into ", keys.length > most && `${keys.length} numbers of `, nameEl(main.name),
        keys.length <= most && listed(keys.map(link)));
}

/* The cell, and in each other table the first cell that it is made from. */
function bringAllIntoView(cell) {
    const others = [...byId("step").querySelectorAll(".grid")].filter(grid => !grid.contains(cell));
    for (const each of [cell, ...others.map(grid => grid.querySelector(".source")).filter(Boolean)]) bringIntoView(each);
}

/* A table that scrolls in itself shows the cell. */
function bringIntoView(cell) {
    for (const box of [cell.closest(".grid"), cell.closest(".panels")]) {
        const a = cell.getBoundingClientRect(), b = box.getBoundingClientRect();
        if (a.left < b.left || a.right > b.right) box.scrollLeft += a.left - b.left - (b.width - a.width) / 2;
        if (a.top < b.top || a.bottom > b.bottom) box.scrollTop += a.top - b.top - (b.height - a.height) / 2;
    }
}

/* Outlines the chosen cell, and those that belong to it. Tab reaches one cell of each grid. */
function mark(cell, key, sources) {
    const used = new Set(sources);
    for (const each of byId("step").querySelectorAll(".c")) {
        each.classList.toggle("chosen", each === cell);
        each.classList.toggle("source", each !== cell && used.has(each.dataset.key));
        each.setAttribute("aria-selected", String(each === cell));
    }
    for (const grid of byId("step").querySelectorAll(".grid")) {
        const cells = [...grid.querySelectorAll(".c")], stop = cells.find(each => each === cell) || cells[0];
        for (const each of cells) each.tabIndex = each === stop ? 0 : -1;
    }
}

/* The step that a number came from, and the number's key there; null if it was given, or is made here. */
function whereFrom(key) {
    const { steps } = state.lesson, [, line, k, index] = /^p(\d+)\.(\d+)\.(\d+)$/.exec(key || "") || [];
    if (line) {
        const step = steps[stepOf(state.lesson, `b${line}.${k}`)];
        return step ? { step, key: `g${step.part.tensor.number}.${index}`, words: "to the step that found this part" } : null;
    }
    const { of, t } = readKey(key) || {}, n = !t ? -1 : of === "g" ? t.gradStep : t.producer ? t.valueStep : -1;
    if (n < 0 || n === state.step || !steps[n]) return null;
    return { step: steps[n], key, words: of === "g" ? "to the step that found this gradient"
        : "to the step that computed this number" };
}

/* Thin curves from the cells to their numbers in the line below: only to its first line, since others would cross it, and not
 * through another row of tables. */
function drawCurves() {
    const lines = byId("curves"), box = byId("step");
    if (!lines) return;
    const frame = box.getBoundingClientRect(), paths = [], factors = [...byId("terms").querySelectorAll(".fac")];
    const tops = [...byId("step").querySelectorAll(".grid")].map(grid => grid.getBoundingClientRect().top);
    const first = factors.length > 0 && factors[0].getBoundingClientRect().top;
    lines.setAttribute("width", frame.width);
    lines.setAttribute("height", 0); /* it is no reason to be high */
    lines.setAttribute("height", box.scrollHeight);
    for (const each of factors.filter(fac => fac.getBoundingClientRect().top < first + 12).slice(0, 14)) {
        const cell = cellAt(each.dataset.key);
        if (!cell) continue;
        const a = cell.getBoundingClientRect(), b = each.getBoundingClientRect(),
            grid = cell.closest(".grid").getBoundingClientRect();
        const panels = cell.closest(".panels").getBoundingClientRect();
        const y0 = a.bottom - frame.y - a.height / 2, x0 = a.right - frame.x + 1, x1 = b.x + b.width / 2 - frame.x, y1 = b.top - frame.y - 1;
        const y = Math.max(a.bottom - frame.y - 2, Math.min(grid.bottom, panels.bottom) - frame.y + 2),
            bend = Math.max(14, (y1 - y) * 0.55);
        if (y1 < y || tops.some(top => top > a.bottom && top < b.top) || a.x < panels.x - 1 || a.right > panels.right + 1 || a.bottom > panels.bottom + 1 ||
            a.x < grid.x - 1 || a.right > grid.right + 1) continue;
        paths.push(svg("path",
            { d: `M${x0} ${y0}L${x0} ${y}C${x0} ${y + bend} ${x1} ${y1 - bend} ${x1} ${y1}`,
            class: calm() ? "" : "grow", pathLength: 1 }));
    }
    lines.replaceChildren(...paths);
}
