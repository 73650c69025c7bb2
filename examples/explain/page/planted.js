/* planted.js - rules of backward that a reader, or the menu "break it", has put in the place of the right ones. The library
 * says of each whether it is right ("planted", see live.h). Here: which step has one, which numbers differ from the right
 * gradient, and what the step shows. */
"use strict";

const hasRules = ({ rule, planted = [] }) => !!rule || planted.length > 0;
const isWrong = planted => !!planted && planted.verdict === "wrong";
const isBroken = ({ rule, planted = [] }) => !!rule || planted.some(isWrong);

/* The planted rule of a part of a gradient; undefined if it has the line's own backward. */
const plantedFor = ({ planted = [] }, { line, k, from }) =>
    planted.find(each => each.line === (from || line).line && each.input === k);
const plantedAt = step =>
    (step.kind === "backward" && !step.unit.group ? plantedFor(state.lesson, step.part) : undefined);

/* The menu's rule that this formula is. */
const dense = text => text.replace(/\s/g, "");
const menuRuleOf = ({ rules = [] }, { rule }) =>
    rules.find(({ formulas = [] }) => formulas.some(each => dense(each) === dense(rule)));

/* ---- what is right ------------------------------------------------------------------------------------------------ */

/* A lesson with a planted rule keeps the structure of its lines: what is a product stays one. */
function keepStructure(lesson) {
    const { rightOne, tape: { lines, tensors }, planted } = lesson;
    if (!rightOne || rightOne === lesson) return;
    if (!rightOne.units || [...rightOne.open].join() !== [...lesson.open].join()) {
        rightOne.open = new Set(lesson.open);
        plan(rightOne);
    }
    for (const { line: number } of planted) {
        const [own, { product }] = [lines, rightOne.tape.lines].map(list => list.find(({ line }) => line === number));
        own.product = product && { ...product, a: tensors[product.a.number], b: tensors[product.b.number] };
    }
}

/* The kind of a part that has a planted rule: its own, since a wrong rule is no product of these factors. If the rule is not
 * linear in dy, its derivatives say nothing about its numbers. */
function kindOfPlanted(part, unit) {
    const isOdd = !part.dx.every((x, i) => isNear(x, sum(termsOf(part, i).map(term => term.product))) || x !== x);
    return isOdd ? "odd" : kindOf(part, { ...unit, product: null });
}

/* The right gradient for the dy that arrives here: its sum of dy J, with the right J. */
function rightNumbers({ line, k, dx }) {
    const { rightOne } = state.lesson, other = rightOne && rightOne.tape.lines.find(each => each.line === line.line);
    const part = other && other.parts.find(each => each.k === k), dy = line.result.grad;
    return part ? part.columns.map(column => sum(column.map(([j, J]) => dy[j] * J))) : dx;
}

/* The elements that differ from the right ones. */
function differing(numbers, right, type) {
    const most = (type === "float32" ? 2e-5 : 1e-9) * Math.max(1, largestOf(right));
    return new Set(numbers.map((x, i) => i).filter(i => !(Math.abs(numbers[i] - right[i]) <= most) &&
        !Object.is(numbers[i], right[i])));
}

/* A wrong rule may give the right numbers here: one that forgets dy does where dy is 1. Then no table, check or loss shows the
 * mistake; the library, which tries other numbers, says it. */
const isSeenHere = step => differing(step.part.dx, rightNumbers(step.part), step.part.tensor.type).size > 0;

/* The element that is farthest from its right number; -1 if all are right. */
function worstOf({ numbers, right, off }) {
    const far = i => { const d = Math.abs(numbers[i] - right[i]); return d === d ? d : Infinity; };
    return [...off].reduce((a, i) => (a < 0 || far(i) > far(a) ? i : a), -1);
}

/* ---- what the step shows ------------------------------------------------------------------------------------------ */

/* A formula as it was written, in the signs of the page. */
const formulaEl = text => el("code", { class: "formula-text" }, text);

/* Where a rule of the menu was planted, and can be written in the symbols of the lesson. */
const symbolsPlace = (step, planted) => {
    const place = menuRuleOf(state.lesson, planted) && placeAt(step);
    return place && canTypeset(place) ? place : null;
};

/* What the reader wrote stands there as it was written. */
function shownFormula(step, planted) {
    const place = symbolsPlace(step, planted);
    return place ? el("span", {}, typesetFormula(place, planted.formula)) : formulaEl(planted.formula);
}

/* The picture of a step that has a planted rule; null for others. */
function plantedPicture(step) {
    const planted = plantedAt(step);
    if (!planted) return null;
    const { part } = step, made = pictureOf(step), { main } = made;
    const right = isWrong(planted) ? rightNumbers(part) : null;
    if (right) Object.assign(main, { right, off: differing(main.numbers, right, main.t.type) });
    return { ...made, rule: [nameEl(main.name), " = ", shownFormula(step, planted)], planted };
}

/* A rule that is not linear in dy: what it made, and what it got. */
const oddBack = (unit, part, main, dy) =>
    ({ items: [{ table: main }, sign("←", "your rule"), { table: dy }], rule: "your rule", terms: () => [] });

/* Forward is as it was: it is drawn from the right lesson, whose derivatives explain it. */
function forwardOfPlanted(step) {
    const { rightOne, planted = [] } = state.lesson, isHere = rightOne && step.kind === "forward" &&
        planted.some(({ line }) => step.unit.lines.some(each => each.line === line));
    const unit = isHere && rightOne.units.find(each => each.line === step.unit.line && !each.group === !step.unit.group);
    return unit ? { unit, ...forwardPicture(unit) } : null;
}

/* "dS[the, cat] is 0.36; the right number is 0.07." */
function worstWords({ main }) {
    const i = main.off ? worstOf(main) : -1;
    if (i < 0) return [];
    const place = placeWords(main, i), count = main.off.size, all = main.numbers.length;
    return [nameEl(main.name), place && el("span", { class: "at" }, place),
        ` is ${bare(main.numbers[i])}; the right number is ${bare(main.right[i])}. `,
        all > 1 && (count === all ? `All ${all} numbers differ.` : `${count} of ${all} numbers differ.`)];
}

const LATER = 150; /* milliseconds, in which the reader may already step on */

/* The leaves that a step of training changes. */
const learningLeaves = ({ tensors }) => tensors.filter(t => !t.producer && t.check);

/* Losses that end as low as those of the right rule do not show the mistake; leaves whose gradients are right learn. */
const lastOf = losses => Number(losses[losses.length - 1]);
function wordsOfLosses({ right, wrong }) {
    if (!(lastOf(wrong) < 2 * lastOf(right))) return "";
    const learning = learningLeaves(state.lesson.tape).filter(t => !Controls.changedByRule(t));
    return [" A step against the wrong gradient still lowers the loss: only the check shows the mistake.",
        learning.length > 0 && [" ", listed(learning.map(t => nameEl(gradName(symbolOf(t))))), learning.length > 1
            ? " are still right, and lower it." : " is still right, and lowers it."]];
}

/* How far training gets with the wrong rule. The losses take a moment: the step is drawn first. */
function drawTraining() {
    const box = el("div", { class: "training" }), { lesson } = state;
    if (Controls.isTrained()) fill(box, drawTrained(Controls.training()));
    else setTimeout(() => box.isConnected && state.lesson === lesson && fill(box, drawTrained(Controls.training())), LATER);
    return box;
}

function drawTrained({ right, wrong }) {
    const last = losses => bare(lastOf(losses));
    const curves = [["right", right], ["wrong", wrong]].map(([name, losses]) => ({ name, losses: (losses || []).map(Number) }));
    return wrong ? [el("p", {}, `After ${right.length} steps of SGD the loss is ${last(wrong)} with this rule, and ${last(right)} with the right one.`,
        wordsOfLosses({ right, wrong })), drawCurvesOfLosses(curves)] : [];
}
