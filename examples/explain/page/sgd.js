/* sgd.js - the step that the gradients are for: each number that learns, minus a rate times its gradient, once, ten or a
 * hundred times. The library takes the steps, all from the lesson's first numbers, and says what the losses tell; here are the
 * buttons, the picture of the weights with what they were, and the curve of the losses. A choice of another rate takes the same
 * number of steps with it. */
"use strict";

const TIMES = [1, 10, 100];
const FEW_ARCS = 6, FEW_NUMBERS = 40; /* that leave room for the curve */

const isSgd = step => step.kind === "sgd";
const stepsTaken = ({ sgd }) => (sgd ? sgd.losses.length - 1 : 0); /* the tape of a program takes none */
const countOfSteps = n => (n === 1 ? "1 step" : `${n} steps`);

/* A change of the step or the rate: the button that was pressed keeps the focus, and the new loss is said. */
function changeSgd(wanted) {
    const sentence = Controls.change(wanted);
    if (sentence) byId("sgd-said").textContent = sentence;
    else byId("announce").textContent =
        `After ${countOfSteps(stepsTaken(state.lesson))} the loss is ${bare(lossOf(state.lesson))}.`;
}

/* A button that can do no more keeps the focus, too. */
const sgdButton = (text, wanted, more) => el("button", { disabled: !Controls.isLive(), "data-keep": "sgd " + text,
    onclick: () => wanted && changeSgd(wanted), "aria-disabled": !wanted && "true", ...more }, text);

/* Above the picture: how often, and at which rate. */
function drawTake() {
    const { lesson } = state, { rate, rates } = lesson.sgd, n = stepsTaken(lesson), most = Controls.mostSteps();
    const all = rates.includes(rate) ? rates : [...rates, rate];
    return el("div", { class: "take" }, TIMES.map(times => sgdButton(times === 1 ? "take the step" : `× ${times}`,
        n < most && { step: String(Math.min(most, n + times)) }, { class: times === 1 && "first" })),
    el("span", { class: "rates", role: "group", "aria-label": "learning rate" }, el("span", { class: "soft" }, "rate"),
        all.map(each => sgdButton(String(each), { rate: String(each) }, { "aria-pressed": String(each === rate) }))));
}

/* Above the tables: the weights or the answers, the loss, and the curve of all losses. */
function drawCourse() {
    const { lesson } = state, n = stepsTaken(lesson), first = Number(lesson.sgd.losses[0]);
    const isOff = !Controls.isLive() && !Controls.isLoading();
    const big = el("div", { class: "big" },
        el("span", {}, n ? `loss after ${countOfSteps(n)}` : "loss", el("b", {}, bare(lossOf(lesson)))),
        n > 0 && el("span", {}, "at first", el("b", { class: "then" }, bare(first))),
        sgdButton("start again", n > 0 && { step: "0" }, { class: "quiet" }));
    return el("div", { class: "course" }, el("div", {}, drawTake(), lesson.points ? drawPoints(lesson.points) : drawArcsWith(arcsAt(stepNow()), n)),
        el("div", { class: "side" }, big, drawCurve(),
            el("p", { id: "sgd-said", class: "said", role: "status" }, isOff && Live.refused)));
}

/* Without the library the recorded losses show how training goes on, if there are any. */
function lossesOfCourse({ sgd: { losses, next }, losses: recorded, training }) {
    if (Controls.isLive() || losses.length > 1) return losses.map(Number);
    return (recorded || training?.right || [...losses, ...next]).map(Number);
}

/* The chart ends at twice the first loss: words say where a curve goes that leaves it. */
function drawCurve() {
    const losses = lossesOfCourse(state.lesson), n = stepsTaken(state.lesson);
    const most = Math.min(Math.max(...losses.filter(Number.isFinite)), 2 * losses[0]), scale = linearScale(0, Number.isFinite(most) ? most : 1, 4);
    const highest = scale.ticks[scale.ticks.length - 1][0], limits = [0, highest], points = losses.map((loss, step) => ({ step, loss }));
    const label = `the loss goes from ${bare(losses[0])} to ${bare(losses[losses.length - 1])} in ${countOfSteps(losses.length - 1)}`;
    const { chart, x, y } = drawChart({ width: 420, height: 148, label, limits, ...scale,
        steps: ticksFor(0, Math.max(10, losses.length - 1), 5), curves: [{ name: "right", points }] });
    for (const { step, loss } of points) if (loss <= highest && (step === n || losses.length < 60))
        chart.append(svg("circle", { class: "dot", cx: x(step), cy: y(loss), r: step === n ? 5 : 2.5 }));
    const words = beyond(losses, highest);
    return el("figure", { class: "losses" }, chart, el("figcaption", {}, words));
}

/* The weights that the step shows as arcs, as the cover does; undefined if they are too many. */
function arcsAt(step) {
    const { tape: { tensors }, cover = {} } = state.lesson, t = isSgd(step) && tensors[cover.tensor ?? -1];
    return t && t.columns <= FEW_ARCS ? t : undefined;
}

/* The tables: all numbers that learn, unless they are many; on a projector the curve has the room. */
function pictureOfSgd(step) {
    const made = pictureOf(step), views = tablesIn(made), isMany = sum(views.map(({ numbers }) => numbers.length)) > FEW_NUMBERS;
    return isPresenting() || isMany ? { ...made, items: [] } : made;
}

/* The arcs of a row, as high as their scores where the first screen has them so, and what each weight was before the first step. */
function drawArcsWith(t, n) {
    if (!t) return "";
    const { lesson } = state, { pull, cover: { row = 0 } } = lesson, { low, high } = pull ? pulledOf(Controls.firstLesson() || lesson) : {};
    const riseOf = c => pull && 32 + 109 * Math.max(0, Math.min(1, (lesson.tape.tensors[pull.tensor].value[row * t.columns + c] - low) / (high - low)));
    const drawing = drawArcs(t, row, false, riseOf), was = n > 0 && Controls.firstLesson()?.tape.tensors[t.number].value, first = (panelShown(t) * t.rows + row) * t.columns;
    drawing.querySelectorAll(".weight").forEach((text, c) => was && text.after(svg("text", { class: "weight was",
        x: text.getAttribute("x"), y: Number(text.getAttribute("y")) - 20 }, `was ${fix(Number(was[first + c]), { d: 2, e: 0 })}`)));
    return drawing;
}
