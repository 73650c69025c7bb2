/* pull.js - the first screen: a row of attention whose arcs are pulled. An arc is as high as its score, and as thick as its
 * weight; its top is a handle, a slider. A handle stands at one of at most 121 places; for each of them the library runs the
 * lesson forward (probe, in live.h), and the page draws its answer. Before the first pull nothing here tells which way the
 * loss falls: the pull is the bet. */
"use strict";

const canPull = ({ pull }) => !!pull && (Controls.isLive() || Controls.isLoading());

/* What a reader has pulled: moved[c], by how many steps score c; own: the handle of the last pull; runs: how many places it
 * has had; from: where it began; said: what came of it, for the step that tells why. */
function pulledOf(lesson) {
    const { pull: { tensor, cell, answer, wanted }, cover, tape: { tensors } } = lesson, scores = tensors[tensor], { columns } = scores;
    const own = cell % columns, first = cell - own, row = scores.value.slice(first, first + columns);
    const low = Math.min(-3, Math.floor(Math.min(...row)) - 1), high = Math.max(3, Math.ceil(Math.max(...row)) + 1);
    return lesson.pulled ??= { scores, row, first, own, low, high, weights: tensors[cover.tensor], answer: tensors[answer], wanted: tensors[wanted], size: 0.05 * Math.ceil((high - low) / 6),
        words: scores.words?.columns || range(columns, String), who: scores.words?.rows[first / columns] || "", moved: row.map(() => 0), runs: 0,
        from: null, said: "", course: null };
}

const scoreAt = ({ row, size }, c, steps) => row[c] + size * steps;
const leastStep = ({ row, low, size }, c) => Math.ceil((low - row[c]) / size - 1e-9);
const mostStep = ({ row, high, size }, c) => Math.floor((high - row[c]) / size + 1e-9);

/* The numbers of the row that is pulled, of any tensor; of: which takes the place of one of its numbers. */
const rowOf = ({ row, first }, { value, columns }, of = i => value[i]) => range(columns, c => Number(of(first / row.length * columns + c)));

/* The library's answer for every place of the chosen handle, where the others stand as they do; null if it has none. */
function courseOf(p) {
    const { own, moved, size, first, scores } = p, least = leastStep(p, own), n = mostStep(p, own) - least + 1;
    const others = moved.map((steps, c) => (c === own ? "" : steps)).join();
    if (p.course?.others === others && p.course.own === own) return p.course;
    const line = (c, from, to) => `probe ${first + c} ${from} ${to} ${n} ${scores.name}`, rest = moved.map((_, c) => c).filter(c => c !== own && moved[c]);
    const found = Controls.forward([line(own, least * size, (least + n - 1) * size),
        ...rest.map(c => line(c, moved[c] * size, moved[c] * size)), ...[p.weights, p.answer].map(({ name }) => `show ${name}`)]);
    if (!found) return null;
    const { losses, slopes, shown } = found;
    const rowAt = (tensor, i) => {
        const { moved: cells, values } = shown.find(({ name }) => name === tensor.name);
        return rowOf(p, tensor, cell => (cells.includes(cell) ? values[cells.indexOf(cell)][i] : tensor.value[cell]));
    };
    return p.course = { own, others, least, losses: losses.map(Number), slopes: slopes.map(Number), rowAt };
}

/* What holds where the handles stand: the tape's numbers, or those of the library's answer. */
function pulledNow(lesson, p) {
    const { moved, own, first, scores, weights, answer } = p;
    if (moved.every(steps => steps === 0))
        return { loss: lossOf(lesson), slope: scores.grad[first + own], weights: rowOf(p, weights), answer: rowOf(p, answer) };
    const { losses, slopes, least, rowAt } = courseOf(p), i = moved[own] - least;
    return { loss: losses[i], slope: slopes[i], weights: rowAt(weights, i), answer: rowAt(answer, i) };
}

/* ---- the arcs ----------------------------------------------------------------------------------------------------- */

const PULL = { base: 210, least: 40, most: 136, width: 600, top: -26, height: 298 }; /* a weight stands above the highest handle */

/* The arc of a key, and the place of its top, for its score. */
function pullPath(p, c, score) {
    const { base, least, most } = PULL, { words, who, low, high } = p, from = words.indexOf(who), step = 420 / Math.max(2, words.length - 1);
    const place = n => PULL.width / 2 + (n - (words.length - 1) / 2) * step, rise = least + (score - low) / (high - low) * most, up = base - rise / 0.75;
    const b = place(c), side = from < 0 ? 0 : Math.sign(c - from) * 20, a = from < 0 ? PULL.width / 2 : place(from) + side;
    return { b, x: (a + b) / 2, y: base - rise, path: c === from ? `M${b - 12} ${base}C${b - 52} ${up} ${b + 52} ${up} ${b + 12} ${base}`
        : `M${a} ${base}C${a + (b - a) * 0.2} ${up} ${b - (b - a) * 0.2} ${up} ${b} ${base}` };
}

/* A handle: by pointer to where the pointer is, by key a step of 0.1 or 0.5. */
function drawGrip(p, c, choose, set) {
    const body = svg("g", { class: "body" }, svg("circle", { class: "ring", r: 19 }), svg("circle", { class: "knob", r: 14 }), svg("path", { d: "M-4 -3L0 -7L4 -3M-4 3L0 7L4 3" }));
    const grip = svg("g", { class: "grip", role: "slider", tabindex: "0", "aria-orientation": "vertical", "aria-valuemin": p.low, "aria-valuemax": p.high,
        "aria-label": `how much “${p.who}” looks at “${p.words[c]}”: the score` }, svg("g", { transform: `scale(${isNarrow() ? 1.5 : 1})` }, svg("circle", { class: "hit", r: isNarrow() ? 38 : 30 }), body));
    const keys = { ArrowUp: 0.1, ArrowRight: 0.1, ArrowDown: -0.1, ArrowLeft: -0.1, PageUp: 0.5, PageDown: -0.5, Home: -1e3, End: 1e3 };
    grip.addEventListener("pointerdown", event => {
        grip.setPointerCapture(event.pointerId);
        grip.focus({ preventScroll: true });
        choose(c);
        event.preventDefault();
    });
    grip.addEventListener("pointermove", event => {
        const { top, height } = grip.ownerSVGElement.getBoundingClientRect(), y = PULL.top + (event.clientY - top) * PULL.height / height;
        if (grip.hasPointerCapture(event.pointerId))
            set(c, Math.round((p.low + (PULL.base - y - PULL.least) / PULL.most * (p.high - p.low) - p.row[c]) / p.size));
    });
    grip.addEventListener("focus", () => choose(c));
    grip.addEventListener("keydown", event => {
        if (!(event.key in keys)) return;
        set(c, p.moved[c] + Math.round(keys[event.key] / 0.05));
        event.preventDefault();
    });
    return grip;
}

/* ---- the curve of the loss ---------------------------------------------------------------------------------------- */

/* Axes and a dot; after the first pull the curve of the chosen score, and its tangent. */
function drawPullPlot(plot, p, { loss, slope }) {
    const { own, words, low, high, runs } = p, course = Controls.isLive() ? courseOf(p) : { least: 0, losses: [loss] };
    const { ticks, share } = linearScale(0, Math.max(...course.losses.filter(Number.isFinite), loss || 0), 4);
    const x = score => 34 + (score - low) / (high - low) * 374, y = each => 160 - 150 * share(each), at = scoreAt(p, own, p.moved[own]);
    const point = (each, i) => `${x(scoreAt(p, own, course.least + i)).toFixed(1)} ${y(each).toFixed(1)}`, unit = 150 / (ticks[ticks.length - 1][0] || 1);
    const steep = slope * unit, run = 60 / Math.hypot(x(1) - x(0), steep), text = (words, x, y, anchor) => svg("text", { x, y, "text-anchor": anchor }, words);
    const end = (way, room) => { /* of the tangent: in the plot */
        const far = way * Math.min(run, room, steep ? (steep * way > 0 ? y(loss) - 10 : 160 - y(loss)) / Math.abs(steep) : run);
        return `${x(at + far)} ${y(loss) - steep * far}`;
    };
    const lowest = Math.min(...course.losses), isHigh = y(lowest) < 140;
    plot.setAttribute("aria-label", `The loss is ${bare(loss)}, the lowest of this arc ${bare(lowest)}${runs ? `, its slope for the score of “${words[own]}” ${bare(slope)}` : ""}`);
    fill(plot, ticks.map(([each, label]) => [svg("path", { class: "base", d: `M34 ${y(each)}H408` }), text(label, 26, y(each) + 4, "end")]),
        course.losses.length > 1 && [svg("path", { class: "lowest", d: `M34 ${y(lowest)}H408` }), text("the lowest loss of this arc", 221, y(lowest) + (isHigh ? 15 : -6), "middle")],
        runs > 0 && [svg("path", { class: "curve", d: "M" + course.losses.map(point).join("L") }),
            svg("path", { class: slope > 0 ? "slope pos" : "slope neg", d: `M${end(-1, at - low)}L${end(1, high - at)}` })],
        svg("circle", { class: "dot", cx: x(at), cy: y(loss), r: 6 }), text(`less at “${words[own]}”`, 34, 182, "start"), text(`more at “${words[own]}”`, 408, 182, "end"));
}

function sayPulled(p, { loss, slope }) {
    const { runs, own, words, who, moved } = p, arc = `the arc to “${words[own]}”`;
    if (!runs) return `Should “${who}” look more at “${words[own]}”, or less?`;
    const { losses, least } = courseOf(p), lowest = Math.min(...losses), isFlat = !(Math.abs(slope) >= 0.08), flat = "The slope is almost 0";
    if (isFlat && loss - lowest > 0.05 * Math.max(1, Math.max(...losses) - lowest))
        return `${flat}: it is flat here, and a small pull hardly changes the loss. Pull ${arc} far ${losses.indexOf(lowest) + least > moved[own] ? "up" : "down"}.`;
    if (bare(loss) === bare(lowest)) return `${isFlat ? `${flat}, and this` : "This"} is the lowest loss of ${arc}. Try another one.`;
    if (isFlat) return `${flat}: ${arc} has done what it can. Try another one.`;
    return ["The slope here is ", el("b", { class: slope > 0 ? "up" : "down" }, (slope > 0 ? "+" : "") + fix(slope, { d: 2, e: 0 })),
        `: if this score grows, the loss ${slope > 0 ? "grows" : "shrinks"}. So look ${slope > 0 ? "less" : "more"} at “${words[own]}”.`];
}

/* A row of numbers in their colours. */
const drawPulled = (name, numbers) => el("span", { class: "pulled" }, name, el("span", {}, numbers.map(x =>
    el("i", { class: x > 0 ? "c pos" : "c neg", "--a": strengthOf(x, 2).toFixed(3) }, fix(Math.round(10 * x) / 10, { d: 1, e: 0 })))));

/* ---- the screen --------------------------------------------------------------------------------------------------- */

function drawPull(box) {
    const { lesson } = state, p = pulledOf(lesson);
    if (Controls.isLive() && !courseOf(p)) {
        lesson.pull = null;
        return drawCover(box);
    }
    const { words, who, moved } = p, two = x => fix(x, { d: 2, e: 0 });
    const arcs = words.map(() => svg("path", { class: "arc" })), weights = words.map(() => svg("text", { class: "weight" })), scores = words.map(() => svg("text", { class: "score" }));
    const grips = words.map((_, c) => drawGrip(p, c, choose, set)), first = [grips[p.own], ...grips.filter((_, c) => c !== p.own)];
    const name = (word, c) => svg("text", { x: pullPath(p, c, 0).b, y: PULL.base + 38, class: word === who ? "word from" : "word" }, word);
    const picture = svg("svg", { class: "arcs pull", viewBox: `0 ${PULL.top} ${PULL.width} ${PULL.height}`, role: "group", "aria-label": `How much “${who}” looks at each word` },
        ...arcs, ...words.map(name), ...weights, ...scores, ...first);
    const loss = el("b"), answer = el("span"), then = el("span", {}, "at first", el("b", { class: "then" }, two(lossOf(lesson)))), plot = svg("svg", { class: "plot", viewBox: "0 0 420 190", role: "img" });
    const back = button("put back", () => {
        moved.fill(0);
        p.from = null;
        update();
    }, { class: "quiet" });
    const saying = el("p", { class: "saying" }), cost = el("p", { class: "length", role: "status" });
    fill(box, el("div", { class: "cover" }, drawTitle("Attention and backpropagation, by hand", "Pull an arc up or down, and make the loss small."), picture),
        el("div", { class: "hook side" }, el("div", { class: "big" }, el("span", {}, "loss", loss), answer, then, back), plot, saying,
            el("p", {}, button("How is the slope known without trying?", () => goTo(lesson.forward + 1), { class: "go" })), cost,
            el("p", {}, button(["First: where does the loss come from?", el("kbd", { "aria-hidden": "true" }, "→")], () => goTo(1), { class: "quiet" }))));
    /* A handle that is chosen: from here on it is pulled. */
    function choose(c) {
        if (p.own === c && p.from) return;
        Object.assign(p, { own: c, from: { steps: moved[c], loss: pulledNow(lesson, p).loss } });
        update();
    }
    function set(c, steps) {
        const to = Math.max(leastStep(p, c), Math.min(mostStep(p, c), steps));
        choose(c);
        if (to === moved[c] || !Controls.isLive()) return;
        moved[c] = to;
        p.runs++;
        const { from } = p, now = pulledNow(lesson, p).loss;
        if (to !== from.steps) p.said = `You pulled the arc to “${words[c]}” ${to > from.steps ? "up" : "down"}, and the loss ${now < from.loss ? "fell" : "grew"}: here is why.`;
        update();
    }
    function update() {
        const now = pulledNow(lesson, p), isMoved = moved.some(steps => steps !== 0);
        words.forEach((word, c) => {
            const score = scoreAt(p, c, moved[c]), { b, x, y, path } = pullPath(p, c, score), w = now.weights[c];
            const place = (each, attributes, text) => Object.entries(attributes).forEach(([name, value]) => each.setAttribute(name, value)) || text === undefined || (each.textContent = text);
            place(arcs[c], { d: path, "stroke-width": (1.5 + 24 * w).toFixed(1), class: c === p.own ? "arc on" : "arc" });
            place(grips[c], { transform: `translate(${x} ${y})`, class: c === p.own ? "grip on" : "grip", "aria-valuenow": two(score).replace("−", "-"),
                "aria-valuetext": `score ${two(score)}, weight ${two(w)}, loss ${two(now.loss)}` });
            place(weights[c], { x, y: y - (isNarrow() ? 32 : 26) }, two(w));
            place(scores[c], { x: b, y: PULL.base + 58 }, (words.length > 4 ? "" : "score ") + two(score));
        });
        picture.classList.toggle("untouched", p.runs === 0);
        loss.textContent = two(now.loss);
        fill(answer, drawPulled("its answer", now.answer), drawPulled("wanted", rowOf(p, p.wanted)));
        then.style.visibility = back.style.visibility = isMoved ? "" : "hidden";
        drawPullPlot(plot, p, now);
        fill(saying, sayPulled(p, now));
        cost.textContent = p.runs < 3 ? `One sweep back from the loss finds it. ${lengthOf(lesson)}.` : `You ran it ${p.runs} times, for one score at a time. One sweep back gives every slope at once.`;
    }
    update();
}
