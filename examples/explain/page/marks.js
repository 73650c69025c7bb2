/* marks.js - what a step says of numbers that are wrong, and of those that are still to be found. A rule of backward that a
 * reader has put in the place of the right one ("planted", see live.h) marks the numbers that differ. Under "hide answers" what
 * a step computes is hidden until it is guessed or shown, and its rule until it is written (door.js); a question hides what it
 * asks for, too: a number, a table whose zeros are to be found and the one of 1 or 0 beside it, a sum whose terms are to be
 * counted. A hidden number stands nowhere: not in cells, titles, the picture of the tape, or words. The numbers of a planted
 * rule are there to be looked at. */
"use strict";

const hasRules = ({ rule, planted = [] }) => !!rule || planted.length > 0;
const isWrong = planted => !!planted && planted.verdict === "wrong";
const isBroken = ({ rule, planted = [] }) => !!rule || planted.some(isWrong);

/* The planted rule of a part of a gradient; undefined if it has the line's own backward. */
const plantedFor = ({ planted = [] }, { line, k }) => planted.find(each => each.line === line.line && each.input === k);
const plantedAt = step =>
    (step.kind === "backward" && !step.unit.isFold ? plantedFor(state.lesson, step.part) : undefined);

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

/* A known mistake stands there in the symbols of the lesson, what else the reader wrote as it was written. */
function shownFormula(step, { mistake, formula }) {
    const place = mistake && placeAt(step);
    return place && canTypeset(place) ? el("span", {}, typesetFormula(place, formula)) : el("code", {}, formula);
}

/* The picture of a step that has a planted rule; null for others. */
function plantedPicture(step) {
    const planted = plantedAt(step);
    if (!planted) return null;
    const made = pictureOf(step), { main } = made, right = isWrong(planted) ? rightNumbers(step) : null;
    if (right) Object.assign(main, { right, off: differing(main.numbers, right, main.t.type) });
    return { ...made, rule: [nameEl(main.name), " = ", shownFormula(step, planted)], planted };
}

/* What is to be found, and what arrives. After a try the reader's own numbers stand there; of a rule that is right for these
 * numbers only, no derivatives, which are those of the right one. */
function hiddenPicture(step, isHidden = isRuleHidden(step)) {
    const planted = isHidden && !state.printing && plantedAt(step);
    if (!isHidden || isWrong(planted)) return null;
    const { part, unit } = step, main = partView(part, { isMain: true, note: planted ? "your rule" : "to be found" }),
        dy = gradView(unit.result, { note: "arrives" });
    return { main, part, isHidden: !planted, items: [{ table: main }, sign("←"), { table: dy }],
        rule: [nameEl(main.name), " = ", planted ? el("code", {}, planted.formula) : "?"], terms: () => [] };
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

/* ---- how far training gets ---------------------------------------------------------------------------------------- */

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

/* The losses take a moment: the step is drawn first. */
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

/* ---- what is hidden ----------------------------------------------------------------------------------------------- */

const secretOf = key => stepNow().id + " " + key;
const isShown = key => state.lesson.shown.has(secretOf(key));

/* What an open question of this step hides; null if there is none. */
function askedKey() {
    const step = stepNow(), open = inOrder(questionsNow()).find(({ question, n }) => question.kind !== "choice" &&
        !state.lesson.right.has(n) && !isShown(keyAsked(question)));
    return open && !plantedAt(step) && !state.compare && !isRuleHidden(step) ? keyAsked(open.question) : null;
}

/* A number by its key, "g4.3"; "g4.*", a whole gradient; "terms", what the sums of this step are made of. */
const keyAsked = ({ kind, part, tensor, index }) => (kind === "count" ? "terms" : kind === "zeros"
    ? `g${tensor}.*` : (part === "grad" ? "g" : "v") + tensor + "." + index);
const isAskedFor = key => !!key && (key === state.asked || key.replace(/\d+$/, "*") === state.asked);
const isAskedAll = () => /\*$/.test(state.asked || "");

/* Is the step's result to be found? The start is 1, and that is no question; two states side by side are to be compared. A
 * rule that was written shows its numbers. */
const canPredict = step => state.hide && !!step.unit && step.kind !== "start" && !plantedAt(step) && !state.compare && !doneAt(step);

function isSecret(view, i) {
    const key = view.key(i), step = stepNow();
    if (state.printing) return state.printing === "worksheet" && !!view.isMain;
    if (isAskedAll() && view.isSmall) return true; /* a table of 1 or 0 has its zeros where the gradient has them */
    if (/^[mjq]/.test(key) || isShown(key)) return false;
    return isAskedFor(key) || (view.isMain && canPredict(step));
}

/* Is anything of this step's result hidden? */
const isHiding = () => !!picture && picture.main.numbers.some((_, i) => isSecret(picture.main, i));

/* May these words be read? Not if they hold the number that is to be found, or speak of the zeros or the terms. */
function tellsSecret(text) {
    if (isAskedAll() || state.asked === "terms") return true;
    const { of, t, i } = readKey(state.asked) || {};
    if (!t) return false;
    const x = (of === "g" ? t.grad : t.value)[i];
    return [1, 2, 3].some(d => new RegExp(`(?<!\\d)${Math.abs(x).toFixed(d).replace(".", "\\.")}(?!\\d)`).test(text));
}

/* A question about zeros is answered in the table: its cells are chosen one by one. Does this cell take part? */
const canPick = cell => isAskedAll() && !!cell.closest(".tab.main") && isAskedFor(cell.dataset.key) &&
    !isShown(cell.dataset.key);

function togglePick(cell) {
    const { picks } = state.lesson, { key, i } = cell.dataset;
    if (!picks.delete(key)) picks.add(key);
    cell.replaceWith(drawCell(picture.main, Number(i)));
    choose(key);
}

function keepShown(keys) {
    const { lesson } = state, places = keys.map(secretOf);
    for (const place of places) lesson.shown.add(place);
    keep(lesson, places.map(place => [lesson.print + place, ""]));
}

function show(keys) {
    keepShown(keys);
    drawAgain();
}

/* Shows all that this step hides, and the answer of a question that asks for it; false if that is nothing. */
function revealStep() {
    const isRule = isRuleHidden(stepNow()) && giveUp();
    if (!isRule && !isHiding() && !state.asked) return false;
    show(picture.main.numbers.map((_, i) => picture.main.key(i)));
    revealAnswers(({ kind }) => kind !== "choice");
    return true;
}

/* Why a number is taken for the answer: {value, why} (foreseen.h); isClose(y): y is meant. */
function reasonOf(wrong = [], isClose) {
    const found = wrong.find(({ value }) => isClose(value));
    return found && ["Not yet. ", prose(found.why)];
}

/* What is said of a guess for x. */
function judge(guess, x, isClose, wrong) {
    if (isClose(x)) return { isRight: true, words: "Right." };
    return { isRight: false, words: reasonOf(wrong, isClose) || (Math.abs(x) <= 0.001 ? "Not yet."
        : isClose(-x) ? "The size is right, the sign is not."
        : isClose(x / 2) ? "Not yet: the answer is twice your number."
        : isClose(2 * x) ? "Not yet: the answer is half of your number."
        : guess * x < 0 ? "Not yet: look at the sign." : "Not yet.") };
}

/* The field in the line of terms for a number that is hidden: of a rule that is to be found it shows the step. At a step with a
 * question that is answered beside it, there is no second field with a check. */
function guessField(view, i) {
    const key = view.key(i), said = el("span", { class: "said", role: "status" }), isRule = isRuleHidden(stepNow());
    const input = numberField("your guess"), open = () => (isRule ? giveUp() : show([key]));
    const check = event => {
        event.preventDefault();
        const { x: guess, refused } = typedNumber(input), isClose = y => Math.abs(guess - y) <= Math.max(0.006, 0.015 * Math.abs(y));
        const others = tablesIn(picture).filter(each => each !== view && each.numbers.length === view.numbers.length)
            .map(each => ({ value: each.numbers[i], why: `That is the number of \`${each.name}\`.` }));
        const { isRight, words } = refused ? { words: refused } : judge(guess, view.numbers[i], isClose, others);
        fill(said, words);
        if (!refused) state.guessed = isRight ? { key, words: `You said ${input.value.trim()}.` } : { key, guess };
        if (isRight) open();
    };
    return el("form", { class: "guess", onsubmit: check }, (isRule || questionsNow().length === 0) && [input, el("button", {}, "check")],
        !state.hint && !isNudging() && !isRule && button("show the terms", () => {
            state.hint = true;
            showTerms();
        }), button(isRule ? "show it" : "reveal", open),
        state.hide && !isRule && button("reveal all", () => show(view.numbers.map((_, n) => view.key(n)))), said);
}

/* After a reveal: how far the last guess was. */
function gapOf(view, i) {
    const { key, guess, words } = state.guessed || {};
    if (key !== view.key(i) || !isShown(key)) return "";
    const x = view.numbers[i];
    return words || `You said ${bare(guess)}: ${bare(Math.abs(guess - x))} too ${guess > x ? "much" : "little"}.`;
}

/* One switch, for numbers to be guessed and rules to be written. A wrong try does not stay behind. */
function toggleHide() {
    leaveTry();
    Object.assign(state, { hide: !state.hide, hint: false });
    for (const place of state.lesson.shown) keep(state.lesson, [[state.lesson.print + place, null]]);
    state.lesson.shown = new Set();
    if (state.hide) state.compare = false;
    drawAgain();
}
