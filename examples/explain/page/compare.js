/* compare.js - two states side by side: the numbers with the reader's changes, those without (or those of the right rule),
 * and their difference. Both losses stand below. */
"use strict";

/* The number table of a step, in the other state; null if it has none of that name and shape. */
function otherNumbers(step, other) {
    const { tensors, lines } = other.tape, t = resultOf(step);
    const same = tensors.find(each => each.name === t.name && String(each.shape) === String(t.shape));
    if (!same || !t.name) return null;
    if (step.kind === "forward") return same.value;
    if (step.kind !== "backward") return same.grad || null;
    const made = step.part.line.result.name,
        line = lines.find(each => each.result.name === made && each.inputs.includes(same));
    const k = line && (line.inputs[step.part.k] === same ? step.part.k : line.inputs.indexOf(same));
    return line?.parts.find(part => part.k === k)?.dx || null;
}

/* What the two states are called: [this one, the other]. */
const stateNames = () => (!hasRules(state.lesson) ? ["changed", "recorded"]
    : [isBroken(state.lesson) ? "wrong rule" : "your rule", "right rule"]);

/* A picture of the difference; null if the other state lacks this table. */
function comparison(step) {
    const other = Controls.otherState(), numbers = other && otherNumbers(step, other), own = pictureOf(step).main;
    if (!numbers) return null;
    const format = decimalsOf([...own.numbers, ...numbers], step.kind === "forward" ? own.t.type : ""),
        [mine, theirs] = stateNames();
    const difference = own.numbers.map((x, i) => x - numbers[i]);
    const a = { ...own, isMain: false, format, note: mine };
    const b = { ...own, isMain: false, format, note: theirs, numbers, key: i => `o${own.t.number}.${i}`, of: "o", reason: () => "" };
    const main = { ...own, format, numbers: difference, key: i => `d${own.t.number}.${i}`, of: "d", name: "difference",
        plainName: true, note: "", reason: () => "both are the same" };
    return { main, items: [{ table: main }, sign("="), { table: a }, sign("−"), { table: b }],
        rule: [nameEl(own.name), ": ", mine, " and ", theirs], terms: i => differenceOf(a, b, difference[i], format, i) };
}

/* a − b, with as many decimals as give the difference as it is printed. */
function differenceOf(a, b, x, format, i) {
    const rounded = (view, more) => Number((view.numbers[i] / 10 ** format.e).toFixed(format.d + more)) * 10 ** format.e;
    const more = range(5, n => n).find(n => written(rounded(a, n) - rounded(b, n), format) === written(x, format)) || 0;
    return [factorOf(a, i, more), " − ", factorOf(b, i, more)];
}

/* Both losses, under the comparison; or why there is none. */
function drawBothLosses() {
    const other = Controls.otherState();
    if (!other) return null;
    const [mine, theirs] = stateNames(), loss = lesson => bare(lossOf(lesson)),
        { right, wrong } = hasRules(state.lesson) ? Controls.training() : {};
    const last = list => bare(Number(list[list.length - 1]));
    return el("p", { class: "both" }, `The loss is ${loss(state.lesson)} (${mine}) and ${loss(other)} (${theirs}).`,
        wrong && ` After ${right.length} steps of SGD it is ${last(wrong)} and ${last(right)}.`,
        tablesIn(picture).some(view => view.of === "o") ? ""
            : " The other state has no such table here: only this one is shown.");
}

const lossOf = ({ tape: { lines } }) => lines[lines.length - 1].result.value[0];
