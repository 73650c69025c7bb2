/* charts.js - curves of losses. A loss beyond the axis is not drawn at its edge: the curve ends there, and words say where it
 * goes. */
"use strict";

/* 1, 2 or 5 times a power of ten, so that at most `count` of them are needed to reach x. */
function tickFor(x, count) {
    const power = 10 ** Math.floor(Math.log10(x / count)), times = [1, 2, 5, 10].find(n => n * power * count >= x);
    return times * power;
}

/* Numbers for an axis, 0 among them: from low <= 0 or a little less, to high or a little more. */
function ticksFor(low, high, count) {
    const tick = tickFor(high - low || 1, count), first = Math.floor(low / tick + 1e-9), last = Math.ceil(high / tick - 1e-9);
    return Array.from({ length: last - first + 1 }, (_, n) => Number(((first + n) * tick).toPrecision(12)));
}

/* The y axis of a chart from low <= 0 to high: numbers with their labels, and a loss as a share of the height. */
function linearScale(low, high, count) {
    const ticks = ticksFor(low, high, count), bottom = ticks[0], top = ticks[ticks.length - 1];
    const share = loss => (Math.max(bottom, Math.min(loss, top)) - bottom) / (top - bottom || 1);
    return { ticks: ticks.map(loss => [loss, String(loss)]), share };
}

/* Pixels around the plot of a chart. */
const AROUND = { left: 44, right: 12, top: 18, bottom: 38 };

/* The pieces of a curve that lie between the losses low and high, cut where the curve crosses them. A loss that is not
 * finite has no point. */
function piecesOf(points, low, high) {
    const pieces = [], isIn = ({ loss }) => loss >= low && loss <= high;
    let piece = null, last = null;
    const cross = (a, b) => {
        const edge = (isIn(a) ? b : a).loss > high ? high : low, share = (edge - a.loss) / (b.loss - a.loss);
        return { step: a.step + share * (b.step - a.step), loss: edge };
    };
    for (const point of points) {
        const before = last, inside = isIn(point);
        last = Number.isFinite(point.loss) ? point : null;
        if (!last) {
            piece = null;
            continue;
        }
        if (inside && !piece) pieces.push(piece = before ? [cross(before, point)] : []);
        if (inside) piece.push(point);
        else if (piece) {
            piece.push(cross(before, point));
            piece = null;
        }
    }
    return pieces;
}

/* A chart of losses, width by height pixels. steps: the numbers of the x axis, from 0; ticks: [loss, label] of the y
 * axis; share: a loss as a share of the height; limits: the lowest and the highest loss that are drawn; curves: {name
 * (right or wrong), points: [{step, loss}]}. Also gives x and y, the place of a step and of a loss. */
function drawChart({ width, height, steps, ticks, share, limits = [-Infinity, Infinity], curves, label,
    xLabel = "step" }) {
    const { left, right, top, bottom } = AROUND, end = steps[steps.length - 1];
    const x = step => left + (width - left - right) * step / end;
    const y = loss => height - bottom - (height - top - bottom) * share(loss);
    const text = (words, x, y, anchor) => svg("text", { x, y, "text-anchor": anchor }, words);
    const line = (name, piece) => svg("polyline", { class: name,
        points: piece.map(({ step, loss }) => `${x(step).toFixed(1)},${y(loss).toFixed(1)}`).join(" ") });
    const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
        ...ticks.map(([loss]) => svg("path", { d: `M${left} ${y(loss)}H${width - right}` })),
        ...ticks.map(([loss, words]) => text(words, left - 6, y(loss) + 4, "end")),
        ...steps.map(n => text(String(n), x(n), height - bottom + 16, n === end ? "end" : "middle")),
        text("loss", left, 11, "start"), text(xLabel, width - right, height - 6, "end"),
        ...curves.flatMap(({ name, points }) => (points.length
            ? piecesOf(points, ...limits) : [[]]).map(piece => line(name, piece))));
    return { chart, x, y };
}

/* What a chart cannot show of losses: "goes on to 3.82", "NaN from step 37". */
function beyond(losses, highest) {
    const strange = losses.findIndex(loss => !Number.isFinite(loss)), last = losses[losses.length - 1];
    if (strange >= 0) return `${fix(losses[strange], { d: 0, e: 0 })} from step ${strange}`;
    if (last > highest) return `goes on to ${bare(last)}`;
    const most = Math.max(...losses);
    return most > highest ? `reaches ${bare(most)}` : "";
}

/* The losses of trainings, {name, losses}: losses[n] is the loss after n steps. Of several, the first is the right rule's:
 * the axis ends at twice its largest loss. */
function chartOfTrainings(trainings, label) {
    const largest = losses => Math.max(0, ...losses.filter(Number.isFinite)), first = trainings[0].losses;
    const highest = Math.min(2 * largest(first), Math.max(...trainings.map(({ losses }) => largest(losses))));
    const scale = linearScale(Math.min(0, ...first.filter(Number.isFinite)), highest, 4),
        ends = scale.ticks.map(([loss]) => loss);
    const limits = [ends[0], ends[ends.length - 1]];
    const curves = trainings.map(({ name, losses }) =>
        ({ name, points: losses.map((loss, step) => ({ step, loss })) }));
    return { ...drawChart({ width: 340, height: 180, label, curves, steps: ticksFor(0, first.length - 1, 5), limits,
        ...scale }), limits };
}

/* The losses of several trainings, {name, losses, says}, and what leaves the axis. */
function drawCurvesOfLosses(curves) {
    const end = ({ name, says = name, losses }) => `${says}: from ${bare(losses[0])} to ${bare(losses[losses.length - 1])}`;
    const { chart, limits } = chartOfTrainings(curves, "the losses, " + curves.map(end).join("; "));
    const words = ({ name, losses, says = `${name} rule` }) => [says, beyond(losses, limits[1])].filter(Boolean).join(", ");
    return el("figure", { class: "losses" }, chart, el("figcaption", {},
        curves.map(curve => el("span", { class: curve.name }, words(curve)))));
}

/* The losses of a training. */
const drawLosses = losses => el("figure", { class: "losses" }, chartOfTrainings([{ name: "right", losses }],
    `the loss goes from ${bare(losses[0])} to ${bare(losses[losses.length - 1])}`).chart);
