/* pull.js - the first screen: a row of attention whose arcs are pulled. An arc is as high as its score, and as thick as its
 * weight; its top is a handle, a slider. A handle stands at one of at most 121 places; at each the library runs the lesson
 * forward (probe, in live.h). At rest the tangent stands there; the curve comes with the
 * first pull. Where an arc ends, the loss far beyond its end says how the curve goes on. After the first pull the row of the
 * steps (door.js) stands in a third panel: a rule for all slopes is written and judged there, and plants nothing. */
"use strict";

const canPull = ({ pull }) => !!pull && (Controls.isLive() || Controls.isLoading());

/* What a reader has pulled: moved[c], by how many steps score c; own: the handle of the last pull; runs: how many places it
 * has had; squares: what the loss is the sum of; values: what the words say. */
function pulledOf(lesson) {
    const { pull: { tensor, cell, answer, wanted }, cover, tape: { tensors } } = lesson, scores = tensors[tensor], { columns } = scores;
    const own = cell % columns, first = cell - own, row = scores.value.slice(first, first + columns);
    const low = Math.min(-3, Math.floor(Math.min(...row)) - 1), high = Math.max(3, Math.ceil(Math.max(...row)) + 1);
    return lesson.pulled ??= { scores, row, first, own, low, high, weights: tensors[cover.tensor], answer: tensors[answer], wanted: tensors[wanted], squares: tensors[lesson.tape.lines.at(-1).in[0]], values: tensors[answer].producer.inputs[1], size: 0.05 * Math.ceil((high - low) / 6),
        words: scores.words?.columns || range(columns, String), who: scores.words?.rows[first / columns] || "", moved: row.map(() => 0), runs: 0,
        course: null };
}

const scoreAt = ({ row, size }, c, steps) => row[c] + size * steps;
const leastStep = ({ row, low, size }, c) => Math.ceil((low - row[c]) / size - 1e-9);
const mostStep = ({ row, high, size }, c) => Math.floor((high - row[c]) / size + 1e-9);

/* The numbers of the row that is pulled, of any tensor; of: which takes the place of one of its numbers. */
const rowOf = ({ row, first }, { value, columns }, of = i => value[i]) => range(columns, c => Number(of(first / row.length * columns + c)));

const FAR = 40; /* a score so far away takes all of the weight, or none */

/* The library's answer for every place of the chosen handle, where the others stand as they do; null if it has none. */
function courseOf(p) {
    const { own, moved, size, first, scores } = p, least = leastStep(p, own), n = mostStep(p, own) - least + 1;
    const others = moved.map((steps, c) => (c === own ? "" : steps)).join();
    if (p.course?.others === others && p.course.own === own) return p.course;
    const line = (c, from, to) => `probe ${first + c} ${from} ${to} ${n} ${scores.name}`, rest = moved.map((_, c) => c).filter(c => c !== own && moved[c]);
    const found = Controls.forward([line(own, least * size, (least + n - 1) * size),
        ...rest.map(c => line(c, moved[c] * size, moved[c] * size)), ...[p.weights, p.answer, p.squares].map(({ name }) => `show ${name}`)]);
    if (!found) return null;
    const { losses, slopes, shown } = found, far = Controls.forward([`probe ${first + own} ${-FAR} ${FAR} 2 ${scores.name}`, ...rest.map(c => `probe ${first + c} ${moved[c] * size} ${moved[c] * size} 2 ${scores.name}`)]);
    const rowAt = (tensor, i) => {
        const { moved: cells, values } = shown.find(({ name }) => name === tensor.name);
        return rowOf(p, tensor, cell => (cells.includes(cell) ? values[cells.indexOf(cell)][i] : tensor.value[cell]));
    };
    return p.course = { own, others, least, losses: losses.map(Number), slopes: slopes.map(Number), limits: far.losses.map(Number), rowAt };
}

/* What holds where the handles stand: the tape's numbers, or those of the library's answer. */
function pulledNow(lesson, p) {
    const { moved, own, first, scores, weights, answer, squares } = p;
    if (moved.every(steps => steps === 0))
        return { loss: lossOf(lesson), slope: scores.grad[first + own], weights: rowOf(p, weights), answer: rowOf(p, answer), squares: rowOf(p, squares) };
    const { losses, slopes, least, rowAt } = courseOf(p), i = moved[own] - least;
    return { loss: losses[i], slope: slopes[i], weights: rowAt(weights, i), answer: rowAt(answer, i), squares: rowAt(squares, i) };
}

/* ---- the arcs ----------------------------------------------------------------------------------------------------- */

const PULL = { base: 210, least: 40, most: 136, width: 600, top: -26, height: 320 }; /* a weight stands above the highest handle */

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

/* Pixels of the plot: the arc ends at its walls, and the curve goes on a little. */
const PLOT = { left: 58, width: 326, wall: 30, top: 10, base: 160 };

/* Axes, a dot and its tangent; after the first pull the curve of the chosen score, and where it goes beyond the ends. */
function drawPullPlot(plot, p, { loss, slope }) {
    const { own, words, low, high, runs } = p, course = Controls.isLive() ? courseOf(p) : { least: 0, losses: [loss], limits: [] }, { losses, limits } = course;
    const { left, width, wall, top, base } = PLOT, { ticks, share } = linearScale(0, Math.max(...[...losses, ...limits].filter(Number.isFinite), loss || 0), 4);
    const x = score => left + (score - low) / (high - low) * width, y = each => base - (base - top) * share(each), at = scoreAt(p, own, p.moved[own]);
    const point = (each, i) => `${x(scoreAt(p, own, course.least + i)).toFixed(1)} ${y(each).toFixed(1)}`, unit = (base - top) / (ticks[ticks.length - 1][0] || 1);
    const steep = slope * unit, run = 60 / Math.hypot(x(1) - x(0), steep), text = (words, x, y, anchor) => svg("text", { x, y, "text-anchor": anchor }, words);
    const end = (way, room) => { /* of the tangent: in the plot */
        const far = way * Math.min(run, room, steep ? (steep * way > 0 ? y(loss) - top : base - y(loss)) / Math.abs(steep) : run);
        return `${x(at + far)} ${y(loss) - steep * far}`;
    };
    const beyond = n => svg("path", { class: "beyond", d: `M${point(losses.at(-n), n ? losses.length - 1 : 0)}L${n ? left + width + wall : left - wall} ${y(limits[n])}` });
    plot.setAttribute("aria-label", `The loss is ${bare(loss)}, its slope for the score of “${words[own]}” ${bare(slope)}`);
    fill(plot, ticks.map(([each, label]) => [svg("path", { class: "base", d: `M34 ${y(each)}H408` }), text(label, 26, y(each) + 4, "end")]),
        runs > 0 && losses.length > 1 && [svg("path", { class: "curve", d: "M" + losses.map(point).join("L") }), beyond(0), beyond(1),
            [left, left + width].map(each => svg("path", { class: "wall", d: `M${each} ${top}V${base}` }))],
        svg("path", { class: slope > 0 ? "slope pos" : "slope neg", d: `M${end(-1, at - low)}L${end(1, high - at)}` }),
        svg("circle", { class: "dot", cx: x(at), cy: y(loss), r: 6 }), text(`less at “${words[own]}”`, 34, 182, "start"), text(`more at “${words[own]}”`, 408, 182, "end"));
}

const drawSlope = slope => el("b", { class: slope > 0 ? "up" : "down" }, withSign(slope, 2));

/* At an end of an arc: how the loss would go on. */
function sayEnd(p, loss, isMost) {
    const { own, words, who, moved } = p, { limits } = courseOf(p), limit = limits[isMost ? 1 : 0], goes = Math.abs(limit - loss) < 0.01 ? "stay" : limit < loss ? "still sink, to " : "grow on, to ";
    return `The arc ends here, at score ${fix(scoreAt(p, own, moved[own]), { d: 2, e: 0 })}. The loss would ${goes}${goes === "stay" ? "" : bare(limit)}: “${who}” would ${isMost
        ? `look at “${words[own]}” alone` : `not look at “${words[own]}” at all`}.`;
}

function sayPulled(p, { loss, slope }) {
    const { runs, own, words, moved } = p, arc = `the arc to “${words[own]}”`;
    if (!runs) return ["The line is the slope of the loss here: ", drawSlope(slope), " for each 1 of the score. Which way is down? Pull, and see."];
    if (moved[own] === mostStep(p, own) || moved[own] === leastStep(p, own)) return sayEnd(p, loss, moved[own] > leastStep(p, own));
    const { losses, limits, least } = courseOf(p), lowest = Math.min(...losses), isFlat = !(Math.abs(slope) >= 0.08), flat = "The slope is almost 0";
    if (isFlat && loss - lowest > 0.05 * Math.max(1, Math.max(...losses) - lowest))
        return `${flat}: it is flat here, and a small pull hardly changes the loss. Pull ${arc} far ${losses.indexOf(lowest) + least > moved[own] ? "up" : "down"}.`;
    if (isFlat) return bare(loss) === bare(Math.min(lowest, ...limits)) ? `${flat}, and this is the lowest loss of ${arc}. Try another one.`
        : `${flat}: ${arc} has done what it can. Try another one.`;
    return ["The slope here is ", drawSlope(slope), `: if this score grows, the loss ${slope > 0 ? "grows" : "shrinks"}. So look ${slope > 0 ? "less" : "more"} at “${words[own]}”.`];
}

/* "0.31 + 3.89 + 0.42 for “the” = 4.62": the squares of this row, and the sums of the others. It adds up as it is printed. */
function sayLoss(p, { loss, squares: own }) {
    const { squares: { value, rows, columns }, first, row, scores } = p, r = first / row.length, words = scores.words?.rows || range(rows, n => `row ${n}`);
    const others = range(rows, n => n).filter(n => n !== r).map(n => [sum(value.slice(n * columns, (n + 1) * columns)), `“${words[n]}”`]);
    const all = [...own.map(x => [x]), ...(others.length > 2 ? [[sum(others.map(([x]) => x)), "the other words"]] : others)];
    const d = [2, 3, 4].find(d => sum(all.map(([x]) => Math.round(x * 10 ** d))) === Math.round(loss * 10 ** d)) || 2, said = x => fix(x, { d, e: 0 });
    return `${all.map(([x, word]) => said(x) + (word ? ` for ${word}` : "")).join(" + ")} = ${said(loss)}`;
}

/* A row of numbers in their colours. */
const drawPulled = (name, numbers) => el("span", { class: "pulled" }, name, el("span", {}, numbers.map(x =>
    el("i", { class: x > 0 ? "c pos" : "c neg", "--a": strengthOf(x, 2).toFixed(3) }, fix(x, { d: 2, e: 0 })))));

/* ---- the rule ----------------------------------------------------------------------------------------------------- */

/* The slopes of all scores as they were at first, and what a rule gives for them. */
function compareSlopes(box, p, yours) {
    const row = grad => rowOf(p, { value: grad, columns: p.row.length });
    fill(box, el("span", { class: "pulled" }, "", el("span", {}, p.words.map(word => el("i", { class: "h word" }, word)))),
        drawPulled("slope at first", row(p.scores.grad)), drawPulled("your rule", row(yours)));
}

function judgePulled(p, place, formula, slopes, go) {
    fill(slopes); /* an error leaves no numbers of another formula */
    const request = [Controls.requestOf({ rules: false }), `rule ${place.name}: ${formula}`].join("\n");
    const { error, lessons: [judged] = [] } = Controls.ask(request);
    if (error) return sayError(error);
    const [{ verdict, why, question }] = judged.planted, name = verdict === "right" && !why ? "right" : "wrong";
    p.rule = formula;
    p.isFound ||= name === "right";
    nameGo(go, p);
    compareSlopes(slopes, p, judged.tape.tensors[p.scores.number].grad);
    sayWords({ loud: true, words: [verdictWord(name, name), " ", el("b", {}, ruleWords(why || HOLDS)), " ",
        name === "right" && goOn(), ruleWords(question)] });
}

/* The button of the first screen. */
const nameGo = (go, { isFound }) => fill(go, isFound ? "See why, step by step" : "Find the rule, step by step", el("kbd", { "aria-hidden": "true" }, "→"));

/* The box is that of softmax, whose rule gives the slopes of all scores. */
function drawPullRule(p, panel, go) {
    const { weights, scores, rule = "" } = p, slopes = el("div", { class: "slopes" });
    const place = Controls.box().places.find(({ line, input }) => line === weights.producer.line && input === 0);
    drawField(nameEl(scores.gradient), { place, line: null, judge: formula => judgePulled(p, place, formula, slopes, go) });
    fillNew("pull", rule);
    sayWords({ words: [el("span", { class: "by-key" }, "Enter judges. "), hintOfSum(place)] });
    fill(panel, el("p", { class: "saying" }, "Softmax made the weights ", nameEl(weights.symbol), " of the scores ", nameEl(scores.symbol), ". ",
        nameEl(weights.gradient), " says how fast the loss follows each weight. How fast does it follow each score?"), doorParts.row, slopes);
}

/* ---- the screen --------------------------------------------------------------------------------------------------- */

function drawPull(box) {
    const { lesson } = state, p = pulledOf(lesson);
    if (Controls.isLive() && !courseOf(p)) {
        lesson.pull = null;
        return drawCover(box);
    }
    const { words, who, moved } = p, two = x => fix(x, { d: 2, e: 0 });
    const arcs = words.map(() => svg("path", { class: "arc" })), weights = words.map(() => svg("text", { class: "weight" })), scores = words.map(() => svg("text", { class: "score" }));
    const says = words.map((_, c) => svg("text", { class: "score", x: pullPath(p, c, 0).b, y: PULL.base + 80 }, range(p.values.columns, k => bare(p.values.value[c * p.values.columns + k])).join(", ")));
    const grips = words.map((_, c) => drawGrip(p, c, choose, set)), first = [grips[p.own], ...grips.filter((_, c) => c !== p.own)];
    const name = (word, c) => svg("text", { x: pullPath(p, c, 0).b, y: PULL.base + 38, class: word === who ? "word from" : "word" }, word);
    const picture = svg("svg", { class: "arcs pull", viewBox: `0 ${PULL.top} ${PULL.width} ${PULL.height}`, role: "group", "aria-label": `How much “${who}” looks at each word` },
        ...arcs, ...words.map(name), ...weights, ...scores, ...says, ...first);
    const loss = el("b"), answer = el("span"), squares = el("p", { class: "squares" }), then = el("span", {}, "at first", el("b", { class: "then" }, two(lossOf(lesson)))), plot = svg("svg", { class: "plot", viewBox: "0 0 420 190", role: "img" });
    const back = button("put back", () => {
        moved.fill(0);
        update();
    }, { class: "quiet" });
    const go = button("", () => goTo(1), { class: "go" });
    nameGo(go, p);
    const saying = el("p", { class: "saying" }), third = el("div", {}, el("p", { class: "saying" }, "Pull an arc first."), el("p", { class: "waits", "aria-hidden": "true" }, nameEl(p.scores.gradient), " = ", el("span"))), cost = el("p", { class: "length", role: "status" }), head = (n, text) => el("h2", { class: "panel" }, el("span", { "aria-hidden": "true" }, n), text);
    fill(box, el("div", { class: "cover" }, drawTitle("Attention and backpropagation, by hand", "Pull an arc, see the slope of its loss; then find the rule that gives every slope at once."), head("1", "Pull an arc"), picture,
        el("p", { class: "cap" }, `An arc is as high as its score and as thick as its weight. Each word says ${p.values.columns === 2 ? "two" : p.values.columns} numbers; “${who}” answers with their mean, each word counted with its weight.`)),
        el("div", { class: "hook side" }, head("2", "See the slope"), el("div", { class: "big" }, el("span", {}, "loss", loss), answer, then, back), squares, plot, saying,
            el("p", {}, go), cost),
        el("div", { class: "hook side third" }, head("3", "Write the rule"), third));
    function choose(c) {
        if (p.own === c) return;
        p.own = c;
        update();
    }
    function set(c, steps) {
        const to = Math.max(leastStep(p, c), Math.min(mostStep(p, c), steps));
        choose(c);
        if (to === moved[c] || !Controls.isLive()) return;
        moved[c] = to;
        p.runs++;
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
        squares.textContent = "squared errors: " + sayLoss(p, now);
        fill(answer, drawPulled("its answer", now.answer), drawPulled("wanted", rowOf(p, p.wanted)));
        then.style.visibility = back.style.visibility = isMoved ? "" : "hidden";
        drawPullPlot(plot, p, now);
        fill(saying, sayPulled(p, now));
        if (p.runs && !third.contains(doorParts.row)) drawPullRule(p, third, go);
        cost.textContent = p.runs < 3 ? lengthOf(lesson) + "." : `You ran it ${p.runs} times, for one score at a time. One sweep back gives every slope at once.`;
    }
    update();
}
