/* cover.js - what a lesson opens on: a question in plain words, a picture, a bet, one button. */
"use strict";

function drawCover(box) {
    const { lesson } = state, { title, text = [], formula = [], losses = [], cover = {}, points, back, number } = lesson;
    if (canPull(lesson)) return drawPull(box);
    const t = lesson.tape.tensors[cover.tensor ?? -1], isCurve = cover.losses || (!t && losses.length > 0);
    fill(box, el("div", { class: "cover" }, drawTitle(!!number && `Lesson ${lesson.name}${cover.title === title ? "" : ": " + title}`),
        !cover.lead && text.map(each => el("p", {}, prose(each))), back && el("p", {}, back),
        button(["Step through it", el("kbd", { "aria-hidden": "true" }, "→")], () => goTo(1), { class: "go" }),
        el("span", { class: "length" }, lengthOf(lesson))),
    el("div", { class: "hook" }, t ? [t.panels > 1 && drawHeads(t), drawArcs(t, cover.row || 0, isTold(lesson, t) && betNow() === null)]
        : points ? drawPoints(points) : isCurve ? drawLosses(losses.map(Number)) : drawFormula(formula), drawBet()));
}

/* above: a line over the title; more: a sentence after the lead. */
function drawTitle(above, more) {
    const { cover = {}, title, idea } = state.lesson;
    return [above && el("p", { class: "above" }, above), el("h1", {}, prose(cover.title || title || "Your tape")),
        el("p", { class: "lead" }, more ? el("span", {}, prose(cover.lead || idea), " ") : prose(cover.lead || idea), more)];
}

/* "15 steps, 3 questions, about 15 minutes": 40 seconds for a step, and a minute for a question. */
const minutesFor = (steps, questions) => Math.ceil(steps * 2 / 3 + questions);

function lengthOf(lesson) {
    const { steps, questions = [] } = lesson, all = steps.length - 1, some = keySteps(lesson).size - 1;
    const asks = questions.length, rest = state.keys ? `; all ${all}` : isPresenting() ? `; ${some} key steps` : "", n = state.keys ? some : all;
    return `${n} steps${asks ? `, ${asks} questions, about ${minutesFor(n, asks)} minutes` : ""}${rest}`;
}

/* The lesson's formulas, their names in italics. */
const drawFormula = formula => formula.length > 0 && el("div", { class: "formula" },
    formula.map(line => el("p", {}, formulaLine(line))));

const wordsInFormulas = /^(softmax|sqrt|sum0?|dropout|relu|tanh|from|every|parameter|where|ignored|allowed|Concat)$/;
const formulaLine = line => line.replace(/<-/g, "←").replace(/sqrt\((\w+)\)/g, "√$1").replace(/ -/g, " −").replace(/\)\^2/g, ")²")
    .split(/([A-Za-z]\w*(?:\.\w+)?'?(?:\^2)?)/).map(piece =>
        (wordsInFormulas.test(piece) ? el("span", { class: "fn" }, piece)
        : /^[A-Za-z]/.test(piece) ? nameEl(piece) : piece));

/* What was measured at the keys, what the queries get, and what they should get. */
function drawPoints(points) {
    const [queries, keys, values, Y, T] = Object.values(points).map(t => state.lesson.tape.tensors[t].value), all = [...values, ...Y, ...T];
    const low = Math.min(0, ...all), high = Math.max(...all), end = Math.max(...keys, ...queries) || 1, x = each => 30 + 380 * each / end, y = each => 190 - 160 * (each - low) / (high - low || 1);
    const mark = (name, shape) => (place, i, list) => svg("path", { class: name, transform: `translate(${x(place)} ${y((list === keys ? values : name === "ring" ? Y : T)[i])})`, d: shape });
    const gap = (place, i) => svg("path", { class: "gap", d: `M${x(place)} ${y(Y[i])}V${y(T[i])}` });
    const says = queries.map((place, i) => `at ${bare(place)} it is ${bare(Y[i])} and should be ${bare(T[i])}`).join("; ");
    return el("figure", { class: "points" }, svg("svg", { viewBox: "0 0 440 230", role: "img", "aria-label": "The answer " + says }, svg("path", { class: "axis", d: "M20 200H420" }),
        ...[...new Set(keys)].map(each => svg("text", { x: x(each), y: 220, "text-anchor": "middle" }, bare(each))), ...queries.map(gap), ...keys.map(mark("dot", "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z")),
        ...queries.map(mark("ring", "M-7 0a7 7 0 1 0 14 0a7 7 0 1 0 -14 0z")), ...queries.map(mark("cross", "M-6 -6L6 6M-6 6L6 -6"))),
    el("figcaption", {}, "● measured at a key   ○ the answer   × what it should be"));
}

/* A row of weights: arcs as thick as the weights. Words stand side by side, and one looks at all, itself too. isHidden: the
 * bet asks for them; riseOf(c): how high an arc is, if that has a meaning. */
function drawArcs(t, row, isHidden, riseOf = () => null) {
    const { columns, words: { rows, columns: words = range(columns, String) } = {} } = t, from = rows ? words.indexOf(rows[row]) : -1, step = Math.min(150, 640 / columns);
    const width = 180 + step * (columns - 1), start = from < 0 ? width / 2 : 90 + from * step, y = 150, first = panelShown(t) * t.rows;
    const weights = words.map((_, c) => t.value[(first + row) * columns + c]), said = w => (isHidden ? "?" : fix(w, { d: 2, e: 0 }));
    const drawing = svg("svg", { viewBox: `0 0 ${width} 200`, class: "arcs", role: "img",
        "aria-label": `“${from < 0 ? `row ${row}` : words[from]}” looks at ` + words.map((word, c) => `“${word}” with ${said(weights[c])}`).join(", ") });
    weights.forEach((w, c) => {
        const b = 90 + c * step, side = from < 0 ? 0 : b > start ? 22 : -22, high = riseOf(c) ?? (c === from ? 62 : Math.min(105, 70 + Math.abs(b - start) / 4));
        const path = c === from
            ? `M${start - 14} ${y}C${start - 40} ${y - high} ${start + 40} ${y - high} ${start + 14} ${y}`
            : `M${start + side} ${y}C${start + (b - start) * 0.25} ${y - high} ${b - (b - start) * 0.25} ${y - high} ${b} ${y}`;
        if (w > 0) drawing.append(svg("path", { d: path, class: "arc",
            "stroke-width": isHidden ? 2 : (2 + 20 * w).toFixed(1) }));
        drawing.append(svg("text", { x: c === from ? start : (start + b) / 2,
            y: y - high * 0.75 - 14, class: "weight" }, said(w)));
    });
    words.forEach((word, c) => drawing.append(svg("text", { x: 90 + c * step, y: 188, class: c === from ? "word from" : "word" }, word)));
    return drawing;
}

/* Does the picture of the cover hold the answer to the bet? */
function isTold({ bet, steps }, t) {
    const step = bet && steps[stepOf(state.lesson, bet.at)];
    return !!step && step.kind === "forward" && resultOf(step) === t;
}

/* The option that the reader chose; null: none yet. */
function betNow() {
    const text = keptIn(state.lesson).get("bet");
    return text === undefined ? null : Number(text);
}

function drawBet() {
    const { bet } = state.lesson;
    if (!bet) return "";
    const choose = n => {
        keep(state.lesson, [["bet", String(n)]]);
        drawStep();
    };
    return el("div", { class: "bet" }, el("p", {}, prose(bet.ask)), drawChoice("choices", bet.options.map(prose), "A bet", betNow(), choose));
}
