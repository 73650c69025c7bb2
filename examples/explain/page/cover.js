/* cover.js - what a lesson opens on: a question in plain words, a picture, a bet, one button. */
"use strict";

function drawCover(box) {
    const { lesson } = state, { cover = {}, title, idea, text = [], formula = [], losses = [], source, command,
        back } = lesson;
    const go = el("button", { class: "go", onclick: () => goTo(1) }, "Run it forward",
        el("kbd", { "aria-hidden": "true" }, "→"));
    const t = lesson.tape.tensors[cover.tensor ?? -1], isCurve = cover.losses || (!t && losses.length > 0);
    fill(box, el("div", { class: "cover" }, el("h1", {}, prose(cover.title || title || "Your tape")),
        el("p", { class: "lead" }, prose(cover.lead || idea)), back && el("p", {}, back), go,
        !cover.lead && text.length > 0 && el("details", {}, el("summary", {}, "more about this lesson"),
            text.map(each => el("p", {}, prose(each)))),
        (source || command) && el("p", { class: "made" }, source && `From ${source}. `,
            command && ["Made by ", el("code", {}, command)])),
    el("div", { class: "hook" }, t ? drawArcs(t, cover.row || 0) : isCurve
        ? drawLosses(losses.map(Number)) : drawFormula(formula), drawBet()));
}

/* The lesson's formulas, their names in italics. */
const drawFormula = formula => formula.length > 0 && el("div", { class: "formula" },
    formula.map(line => el("p", {}, formulaLine(line))));

const wordsInFormulas = /^(softmax|sqrt|sum|dropout|relu|tanh|from|every|parameter|where|ignored|allowed|Concat)$/;
const formulaLine = line => line.replace(/<-/g, "←").replace(/sqrt\((\w+)\)/g, "√$1").replace(/ -/g,
    " −").replace(/\)\^2/g, ")²")
    .split(/([A-Za-z]\w*(?:\.\w+)?'?(?:\^2)?)/).map(piece =>
        (wordsInFormulas.test(piece) ? el("span", { class: "fn" }, piece)
        : /^[A-Za-z]/.test(piece) ? nameEl(piece) : piece));

/* A row of weights: arcs from its word to all words, as thick as the weights. */
function drawArcs(t, row) {
    const labels = t.words || {}, words = labels.columns || range(t.columns, String),
        own = labels.rows ? labels.rows[row] : String(row);
    const from = words.indexOf(own), n = words.length, step = Math.min(150, 640 / n), width = 90 + step * (n - 1) + 90,
        x = c => 90 + c * step;
    const weights = words.map((_, c) => t.value[row * t.columns + c]), start = from < 0 ? width / 2 : x(from), y = 150;
    const drawing = svg("svg", { viewBox: `0 0 ${width} 220`, class: "arcs", role: "img",
        "aria-label": `“${own}” looks at ` + words.map((word, c) =>
            `“${word}” with ${fix(weights[c], { d: 2, e: 0 })}`).join(", ") });
    weights.forEach((w, c) => {
        const b = x(c), side = b > start ? 22 : -22, high = Math.min(105, 70 + Math.abs(b - start) / 4);
        const path = c === from
            ? `M${start - 14} ${y}C${start - 40} ${y - 62} ${start + 40} ${y - 62} ${start + 14} ${y}`
            : `M${start + (from < 0 ? 0 : side)} ${y}C${start + (b - start) * 0.25} ${y - high} ${b - (b - start) * 0.25} ${y - high} ${b} ${y}`;
        if (w > 0) drawing.append(svg("path", { d: path, class: "arc", "stroke-width": (2 + 20 * w).toFixed(1) }));
        drawing.append(svg("text", { x: c === from ? start : (start + b) / 2,
            y: c === from ? 92 : y - high * 0.75 - 14, class: "weight" }, fix(w, { d: 2, e: 0 })));
    });
    words.forEach((word, c) => drawing.append(svg("text", { x: x(c), y: 188, class: c === from ? "word from"
        : "word" }, word)));
    return drawing;
}

function drawBet() {
    const { bet } = state.lesson;
    if (!bet) return "";
    const choose = n => {
        state.bet = n;
        drawStep();
        byId("step").querySelectorAll(".bet button")[n].focus();
    };
    return el("div", { class: "bet", role: "group", "aria-label": "A bet" }, el("p", {}, prose(bet.ask)),
        el("div", { class: "choices" }, bet.options.map((option, n) =>
        el("button", { "aria-pressed": String(state.bet === n), onclick: () => choose(n) }, prose(option)))),
    el("p", { class: "said", role: "status" }, state.bet !== null ? "Noted. The machine will tell." : ""));
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
