/* cover.js - what a lesson opens on: a question in plain words, a picture, a bet, one button. */
"use strict";

function drawCover(box) {
    const { lesson } = state, { cover = {}, title, idea, text = [], formula = [], losses = [], source, command, back } = lesson;
    const go = button(["Run it forward", el("kbd", { "aria-hidden": "true" }, "→")], () => goTo(1), { class: "go" });
    const t = lesson.tape.tensors[cover.tensor ?? -1], isCurve = cover.losses || (!t && losses.length > 0);
    fill(box, el("div", { class: "cover" }, el("h1", {}, prose(cover.title || title || "Your tape")),
        el("p", { class: "lead" }, prose(cover.lead || idea)), back && el("p", {}, back), go,
        el("span", { class: "length" }, lengthOf(lesson)),
        !cover.lead && text.length > 0 && el("details", {}, el("summary", {}, "more about this lesson"),
            text.map(each => el("p", {}, prose(each)))),
        (source || command) && el("p", { class: "made" }, source && ["From ", prose(source), ". "],
            command && ["Made by ", el("code", {}, command)])),
    el("div", { class: "hook" }, t ? [t.panels > 1 && drawHeads(t),
        drawArcs(t, cover.row || 0, isTold(lesson, t) && state.bet === null)] : isCurve
        ? drawLosses(losses.map(Number)) : drawFormula(formula), drawBet(t)));
}

/* "15 steps, 3 questions, about 15 minutes": 40 seconds for a step, and a minute for a question. */
const minutesFor = (steps, questions) => Math.ceil(steps * 2 / 3 + questions);

function lengthOf(lesson) {
    const { steps, questions = [] } = lesson, all = steps.length - 1, some = keySteps(lesson).size - 1;
    if (!questions.length) return `${all} steps`;
    return `${all} steps, ${questions.length} questions, about ${minutesFor(all, questions.length)} minutes` +
        (isPresenting() ? `; the ${some} key steps alone, about ${minutesFor(some, questions.length)}` : "");
}

/* The lesson's formulas, their names in italics. */
const drawFormula = formula => formula.length > 0 && el("div", { class: "formula" },
    formula.map(line => el("p", {}, formulaLine(line))));

const wordsInFormulas = /^(softmax|sqrt|sum|dropout|relu|tanh|from|every|parameter|where|ignored|allowed|Concat)$/;
const formulaLine = line => line.replace(/<-/g, "←").replace(/sqrt\((\w+)\)/g, "√$1").replace(/ -/g, " −").replace(/\)\^2/g, ")²")
    .split(/([A-Za-z]\w*(?:\.\w+)?'?(?:\^2)?)/).map(piece =>
        (wordsInFormulas.test(piece) ? el("span", { class: "fn" }, piece)
        : /^[A-Za-z]/.test(piece) ? nameEl(piece) : piece));

/* What the arcs of a row of weights go from and to, in pixels. Words stand side by side, and one looks at all, itself too.
 * Without words keys and queries are numbers on a line, if the tape begins with them: a query (rows by 1) and keys (1 by
 * columns). */
function placesOf(t, row) {
    const { rows, columns } = t, labels = t.words || {}, words = labels.columns || range(columns, String);
    const from = labels.rows ? words.indexOf(labels.rows[row]) : -1, step = Math.min(150, 640 / columns);
    const isLine = (a, b) => a.columns === 1 && a.rows === rows && b.rows === 1 && b.columns === columns;
    const line = !labels.columns && state.lesson.tape.lines.find(({ inputs: [a, b] }) => a && b && isLine(a, b));
    const width = 180 + step * (columns - 1);
    if (!line) return { words, from, width, ends: range(columns, c => 90 + c * step),
        start: from < 0 ? width / 2 : 90 + from * step, own: "" };
    const [a, b] = line.inputs, query = a.value[row], all = [...b.value, query], least = Math.min(...all);
    const x = value => 90 + (value - least) / (Math.max(...all) - least || 1) * (width - 180);
    return { words: b.value.map(bare), from, width, ends: b.value.map(x), start: x(query), own: `query ${bare(query)}` };
}

/* A row of weights: arcs as thick as the weights. isHidden: the bet asks for them. */
function drawArcs(t, row, isHidden) {
    const { words, from, width, ends, start, own } = placesOf(t, row), y = 150, first = panelShown(t) * t.rows;
    const weights = words.map((_, c) => t.value[(first + row) * t.columns + c]),
        said = w => (isHidden ? "?" : fix(w, { d: 2, e: 0 })), who = own || (from < 0 ? `row ${row}` : words[from]);
    const drawing = svg("svg", { viewBox: `0 0 ${width} 225`, class: "arcs", role: "img",
        "aria-label": `“${who}” looks at ` + words.map((word, c) => `“${word}” with ${said(weights[c])}`).join(", ") });
    weights.forEach((w, c) => {
        const b = ends[c], side = own || from < 0 ? 0 : b > start ? 22 : -22, high = Math.min(105, 70 + Math.abs(b - start) / 4);
        const path = c === from
            ? `M${start - 14} ${y}C${start - 40} ${y - 62} ${start + 40} ${y - 62} ${start + 14} ${y}`
            : `M${start + side} ${y}C${start + (b - start) * 0.25} ${y - high} ${b - (b - start) * 0.25} ${y - high} ${b} ${y}`;
        if (w > 0) drawing.append(svg("path", { d: path, class: "arc",
            "stroke-width": isHidden ? 2 : (2 + 20 * w).toFixed(1) }));
        drawing.append(svg("text", { x: c === from ? start : (start + b) / 2,
            y: c === from ? 92 : y - high * 0.75 - 14, class: "weight" }, said(w)));
    });
    words.forEach((word, c) => drawing.append(svg("text", { x: ends[c], y: 188, class: c === from ? "word from" : "word" }, word)));
    if (own) drawing.append(svg("path", { d: `M${ends[0]} 156L${ends[ends.length - 1]} 156M${start} 150v12`,
        class: "axis" }), svg("text", { x: start, y: 218, class: "word own" }, own));
    return drawing;
}

/* Does the picture of the cover hold the answer to the bet? */
function isTold({ bet, steps }, t) {
    const step = bet && steps[stepOf(state.lesson, bet.at)];
    return !!step && step.kind === "forward" && resultOf(step) === t;
}

function drawBet(t) {
    const { bet } = state.lesson;
    if (!bet) return "";
    const choose = n => {
        state.bet = n;
        drawStep();
    };
    return el("div", { class: "bet" }, el("p", {}, prose(bet.ask)),
        drawChoice("choices", bet.options.map(prose), "A bet", state.bet, choose),
    el("p", { class: "said", role: "status" }, state.bet === null ? "" : isTold(state.lesson, t)
        ? "Noted. The picture has the weights now; the machine will tell why." : "Noted. The machine will tell."));
}

/* The opening of the first lesson that is shown: once through the tape, quickly. */
function runTrailer() {
    if (calm() || state.step !== 0 || location.hash) return;
    const { lesson } = state, n = lesson.steps.length, begin = performance.now(), LENGTH = 3600, PAUSE = 1200;
    state.trailer = 0;
    document.body.classList.add("trailing");
    (function frame() {
        const time = performance.now() - begin, at = Math.min(n - 1, Math.floor(time / LENGTH * n));
        if (state.trailer === null || state.step !== 0 || lesson !== state.lesson ||
            time > LENGTH + PAUSE) return stopTrailer();
        if (at !== state.trailer) {
            state.trailer = at;
            updateMachine();
        }
        setTimeout(frame, 40);
    })();
}

function stopTrailer() {
    if (state.trailer === null && !document.body.classList.contains("trailing")) return;
    state.trailer = null;
    document.body.classList.remove("trailing");
    updateMachine();
}
