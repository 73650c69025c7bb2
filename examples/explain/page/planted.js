/* planted.js - rules of backward that a reader, or the menu "break it", has put in the place of the right ones. The library
 * says of each whether it is right ("planted", see live.h). Here: which step has one, which numbers differ from the right
 * gradient, and what the step shows. */
"use strict";

const hasRules = ({ rule, planted = [] }) => !!rule || planted.length > 0;
const isWrong = planted => !!planted && planted.verdict === "wrong";
const isBroken = ({ rule, planted = [] }) => !!rule || planted.some(isWrong);

/* The planted rule of a part of a gradient; undefined if it has the line's own backward. */
const plantedFor = ({ planted = [] }, { line, k }) => planted.find(each => each.line === line.line && each.input === k);
const plantedAt = step =>
    (step.kind === "backward" && !step.unit.isFold ? plantedFor(state.lesson, step.part) : undefined);

/* The menu's rule that this formula is. */
const dense = text => text.replace(/\s/g, "");
const menuRuleOf = ({ rules = [] }, { rule }) =>
    rules.find(({ formulas = [] }) => formulas.some(each => dense(each) === dense(rule)));

/* ---- what is right ------------------------------------------------------------------------------------------------ */

/* The elements that differ from the right ones. */
function differing(numbers, right, type) {
    const most = (type === "float32" ? 2e-5 : 1e-9) * Math.max(1, largestOf(right));
    return new Set(numbers.map((x, i) => i).filter(i => !(Math.abs(numbers[i] - right[i]) <= most) &&
        !Object.is(numbers[i], right[i])));
}

/* A wrong rule may give the right numbers here: one that forgets dy does where dy is 1. Then no table, check or loss shows the
 * mistake; the library, which tries other numbers, says it. */
const rightNumbers = step => (step.right || step.part.dx).map(Number);
const isSeenHere = step => differing(step.part.dx, rightNumbers(step), step.part.tensor.type).size > 0;

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
    const made = pictureOf(step), { main } = made, right = isWrong(planted) ? rightNumbers(step) : null;
    if (right) Object.assign(main, { right, off: differing(main.numbers, right, main.t.type) });
    return { ...made, rule: [nameEl(main.name), " = ", shownFormula(step, planted)], planted };
}

/* "dS[the, cat] is 0.36; the right number is 0.07.": of the number that is farthest from the right one. */
function worstWords({ main }) {
    const far = i => { const d = Math.abs(main.numbers[i] - main.right[i]); return d === d ? d : Infinity; };
    const [i] = [...main.off || []].sort((a, b) => far(b) - far(a) || a - b);
    if (i === undefined) return [];
    const place = placeWords(main, i), count = main.off.size, all = main.numbers.length;
    return [nameEl(main.name), place && el("span", { class: "at" }, place),
        ` is ${bare(main.numbers[i])}; the right number is ${bare(main.right[i])}. `,
        all > 1 && (count === all ? `All ${all} numbers differ.` : `${count} of ${all} numbers differ.`)];
}

const LATER = 150; /* milliseconds, in which the reader may already step on */

/* The leaves that a step of training changes. */
const learningLeaves = ({ tensors }) => tensors.filter(t => !t.producer && t.grad);

/* Losses that end as low as those of the right rule do not show the mistake; leaves whose gradients are right learn. */
const lastOf = losses => Number(losses[losses.length - 1]);
function wordsOfLosses({ right, wrong }) {
    if (!(lastOf(wrong) < 2 * lastOf(right))) return "";
    const learning = learningLeaves(state.lesson.tape).filter(t => !Controls.changedByRule(t));
    return [" A step against the wrong gradient still lowers the loss: only the check shows the mistake.",
        learning.length > 0 && [" ", listed(learning.map(t => nameEl(t.gradient))), learning.length > 1
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
