/* loop.js - backward twice, and zeroing: the lines of a training loop are buttons, pressed in any order. The library runs each
 * line and says what came of it (loop.h); without it the lines that the page was made with can be pressed in their order.
 * lesson.pressed: the lines that were pressed; lesson.looped: the state after them. */
"use strict";

const isLoop = step => step.kind === "twice";

/* The state after these presses: {state}, or the library's sentence. */
function stateAfter(lesson, presses) {
    const { states } = lesson.loop, made = states.slice(1).map(({ press }) => press).join("");
    if (made.startsWith(presses)) return { state: states[presses.length] };
    if (!Controls.isLive()) return { sentence: Live.refused };
    const { states: answered, error } = Controls.ask(Controls.requestOf({ loop: presses }));
    return error ? { sentence: error + "." } : { state: answered[presses.length] };
}

function pressLine(line) {
    const { lesson } = state, presses = (lesson.pressed || "") + line, { state: after, sentence } = stateAfter(lesson, presses);
    if (after) Object.assign(lesson, { pressed: presses, looped: after });
    drawStep();
    byId("step").querySelector(`[data-press="${line}"]`).focus({ preventScroll: true });
    if (sentence) byId("loop-said").textContent = sentence;
}

/* The numbers of the leaf that the lesson shows, and its gradient as it stands: as many times that of one backward. */
function pictureOfLoop(step, now) {
    const { lesson } = state, t = lesson.tape.tensors[lesson.loop.leaf], { value, grad } = now.leaves.find(({ tensor }) => tensor === t.number);
    const one = viewOf(t, "g"), { backwards: n, mixed } = now;
    const main = viewOf(t, "g", { numbers: grad.map(Number), name: "grad", isMain: true, note: state.printing ? "after a second ag_backward" : n === 0 ? "empty" : mixed ? `a sum of ${n}` : [n > 1 && `${n} × `, nameEl(one.name)] });
    const most = one.numbers.reduce((a, x, i) => (Math.abs(x) > Math.abs(one.numbers[a]) ? i : a), 0);
    return { unit: null, most, sums: [], moves: null, rowOf: null, rule: titleOf(step), main, items: [{ table: viewOf(t, "v", { numbers: value.map(Number) }) }, { table: main }],
        terms: i => (n > 1 && !mixed ? [`${n} × `, factorOf(one, i, 2)] : n === 1 && !mixed ? [factorOf(one, i)] : [{ note: n ? `the sum of ${n} backwards` : "zero_grad has let it go" }]) };
}

const drawLoopCurves = ({ losses, loop: { unzeroed } }) => drawCurvesOfLosses([
    { name: "right", says: "with zero_grad", losses: losses.slice(0, unzeroed.length).map(Number) },
    { name: "wrong", says: "without", losses: unzeroed.map(Number) }]);

function drawLoop(box, step) {
    const { lesson } = state, { lines, states: [first], course } = lesson.loop, now = lesson.looped || first, last = (lesson.pressed || "").slice(-1);
    const line = ({ press, code, does }, n) => el("button", { "data-press": press, class: press === last && "last", onclick: () => pressLine(press) },
        el("span", { class: "soft" }, String(n + 1)), el("code", {}, code), el("small", {}, signsIn(does)));
    picture = pictureOfLoop(step, now);
    state.layout = layoutOf(picture.items, box.clientWidth - (innerWidth < 900 ? 84 : 360 * enlarged()), 300, false, innerWidth < 900);
    drawPlainRow(picture.rule);
    fill(box, el("div", { class: "loop" },
        el("div", {}, el("div", { class: "code" }, lines.map(line)),
            el("p", { id: "loop-said", class: "text", role: "status" }, now.says ? prose(now.says) : "One backward has run. Press the lines, in any order.")),
        el("div", {}, drawItems(picture, state.layout), el("div", { class: "terms", id: "terms" }),
            el("div", { class: "course" }, drawLoopCurves(lesson), el("p", { class: "text" }, prose(course))))));
    showTerms();
}

/* On paper the loop is as it is after a second backward. */
const loopOnPaper = ({ loop: { states } }) => states[1];
