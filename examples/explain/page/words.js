/* words.js - the words beside a step: the lesson's own, or what follows from the kind of the step; then the questions
 * that ask about it, and the end of the lesson. */
"use strict";

const MOST_LETTERS = 480; /* of the texts of folded lines together */

/* The lesson's text for a step. A folded step has the texts of its lines, if they are short, or that of the line where it
 * ends. */
function textOf(step) {
    const { texts } = state.lesson, { unit, kind, id } = step, own = texts.get(id);
    if (!unit || !unit.group || unit.moves || (kind !== "forward" && kind !== "backward")) return own ||
        (unit && unit.moves && textInside(step));
    const all = (kind === "forward" ? unit.lines : unit.lines.slice().reverse()).map(line =>
        textOfLine(line, kind)).filter(Boolean);
    const joined = [...new Set(all)].join(" ");
    return joined.length <= MOST_LETTERS ? joined : own || all[all.length - 1];
}

const textOfLine = ({ line, parts }, kind) =>
    state.lesson.texts.get(kind === "forward" ? `f${line}` : `b${line}.${parts.length ? parts[0].k : 0}`);
const textInside = ({ unit, kind }) => unit.lines.map(line => textOfLine(line, kind)).find(Boolean);

/* Does a name, b3.0, belong to this step? Also if its line is folded into it. */
const isAt = (id, step) => state.lesson.steps[stepOf(state.lesson, id)] === step;

/* A sentence for a step that has no text of its own. It holds no number. */
function sentenceOf(step) {
    const { kind, unit, part, tensor, done } = step, name = t => "`" + symbolOf(t) + "`";
    const list = unit ? [...new Set(unit.inputs)].filter(Boolean).map(name).join(", ") : "";
    if (kind === "start") return "Backward begins here. A gradient says how fast the loss changes when a number changes, and the loss " +
        "changes as fast as itself.";
    if (kind === "add") return `${name(tensor)} was used ${tensor.parts.length} times, so its gradient is a sum. ` +
        (done.length === tensor.parts.length ? "Now all parts are there: it is complete." : "More is to come.");
    if (kind === "forward") return forwardSentence(unit, name(unit.result), list);
    const dy = "`" + gradName(symbolOf(unit.result)) + "`", dx = "`" + gradName(symbolOf(part.tensor)) + "`";
    const isEnd = !part.tensor.producer && part.tensor.parts.every(each => each.step <= part.step);
    return { move: `Nothing is computed. Each number of ${dy} moves back to the place that its number came from.`,
        product: `${dy} arrives. Each number of ${name(part.tensor)} was multiplied by numbers of the other factor; the same numbers, times what ` +
            `arrives, give ${dx}.`,
        softmax: `${dy} arrives. The weights of a row share a sum of 1, so what counts is how far a number is above the mean of its row, in which each counts with its weight.`,
        each: `${dy} arrives, and each number is multiplied by the derivative in its place.` +
            (part.copies ? ` ${name(part.tensor)} was used more than once, so the products are added up.` : ""),
        spread: `Each number of ${dx} is the number that arrives, times its derivative.`,
        general: `${dy} arrives. Each number of ${dx} is a sum of its numbers, times derivatives.` }[part.kind] +
        (isEnd && part.tensor.parts.length === 1
            ? ` ${name(part.tensor)} was given, not computed: here its gradient is complete.` : "");
}

function forwardSentence(unit, y, list) {
    const { product, parts } = unit, b = product && (product.isFlipped ? flippedName(product.b) : symbolOf(product.b));
    if (unit.moves) return `Nothing is computed. Each number of ${list} moves to its place in ${y}.`;
    if (unit.group) return `${y} is made from ${list} in ${unit.lines.length} lines.` +
        (state.printing ? "" : " Press o to see them one by one.");
    if (product) return `Each number of ${y} is a row of \`${symbolOf(product.a)}\` times a column of \`${b}\`: products, added up.`;
    if (parts.some(part => part.factor)) return `Each row of ${y} becomes weights: positive, with the sum 1.`;
    const meaning = unit.formula && !isLinear(unit) && !formulaItems(unit, valueView) ? `: ${unit.formula}` : "";
    return list ? `${y} is made from ${list}${meaning}.` : `${y} is made.`;
}

function drawWords() {
    const box = byId("words"), step = stepNow();
    if (step.kind === "cover") return fill(box);
    if (isRuleHidden(step)) return drawWordsOfExercise(box, step);
    const planted = plantedAt(step);
    const isHidden = isHiding() && canPredict(step), text = textOf(step) || sentenceOf(step);
    const guess = isAskedAll() ? "Answer the question, or reveal it." : questionsNow().length ? "Answer the question, or reveal all."
        : "Choose a cell, and guess what will stand there; or look at its terms, or reveal it.";
    const isBegun = isHidden && picture.main.numbers.some((_, i) => !isSecret(picture.main, i)),
        later = "The words of this step come when none of its cells is hidden.";
    const words = isBegun ? later : isHidden ? `Predict first. ${guess} ${later}`
        : tellsSecret(text) ? sentenceOf(step) : text;
    fill(box, el("p", { class: "phase" }, phaseOf(state.lesson, state.step)),
        isWrong(planted) ? drawWordsOfWrong(planted) : el("p", { class: "text" }, prose(words)),
        checkOfStep(step) === "wrong" && !isWrong(planted) && isBroken(state.lesson) && drawTraining(),
        !isHidden && !isAskedAll() && drawVerdict(step), !isWrong(planted) && drawQuestions(), drawEnd(), drawProgram(step));
    byId("below").classList.toggle("asks", questionsNow().length > 0 && !isWrong(planted));
}

/* What the bet of the cover came to, at the step that settles it. */
function drawVerdict(step) {
    const { bet, lesson: { bet: asked } } = state;
    if (!asked || bet === null || !isAt(asked.at, step)) return "";
    const said = n => ["“", ...prose(asked.options[n]), "”."];
    return el("p", { class: "verdict" }, "You said ", said(bet), " ",
        bet === asked.answer ? "This step agrees." : ["This step says ", said(asked.answer)]);
}

/* One step on from the last step brings the link to what comes next into view, and gives it the focus; one more follows it. */
function reachEnd() {
    const link = byId("end")?.querySelector("a");
    if (!link) return;
    if (link.classList.contains("reached")) return link.click();
    link.classList.add("reached");
    link.focus({ preventScroll: true });
    reachDown(link, false);
}

/* At the last step: how many questions are answered, what the loss does after a step of SGD, what comes next, and where the
 * reader can write the rule. */
function drawEnd() {
    const { lesson, step } = state, { questions = [], right, steps, number } = lesson;
    if (step < steps.length - 1) return "";
    const next = number ? lessons[lessons.findIndex(each => each.name === lesson.name) + 1] : null;
    const answered = right.size ? `${right.size} of ${questions.length} questions right. `
        : questions.length ? "Questions wait at the steps with a “?”. " : "";
    return el("div", { class: "end" }, Controls.stepButton(),
        number ? el("p", { id: "end" }, "The end of this lesson. ", answered, tallyOfRules(),
        next && next.number ? el("a", { href: "#" + next.name }, `Next: ${next.title}`)
            : el("a", { href: "#play" }, "Next: train a model in the playground"))
        : el("p", { id: "end" }, "The end. ", lesson.back), drawToExercise());
}
