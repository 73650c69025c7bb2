/* predict.js - predict first: what a step computes is hidden until it is guessed or shown. A question hides what it asks
 * for, too: a number, a table whose zeros are to be found, a sum whose terms are to be counted. A hidden number stands
 * nowhere: not in cells, titles, the picture of the tape, or words. The numbers of a rule that the reader planted are not
 * hidden: they are there to be looked at. */
"use strict";

const secretOf = key => stepNow().id + " " + key;
const isShown = key => state.lesson.shown.has(secretOf(key));

/* What an open question of this step hides; null if there is none. */
function askedKey() {
    const open = inOrder(questionsNow()).find(({ question, n }) => question.kind !== "choice" &&
        !state.lesson.right.has(n) && !isShown(keyAsked(question)));
    return open && !plantedAt(stepNow()) && !state.compare ? keyAsked(open.question) : null;
}

/* A number by its key, "g4.3"; "g4.*", a whole gradient; "terms", what the sums of this step are made of. */
const keyAsked = ({ kind, part, tensor, index }) => (kind === "count" ? "terms" : kind === "zeros"
    ? `g${tensor}.*` : (part === "grad" ? "g" : "v") + tensor + "." + index);
const isAskedFor = key => !!key && (key === state.asked || key.replace(/\d+$/, "*") === state.asked);
const isAskedAll = () => /\*$/.test(state.asked || "");

/* Can the step's result be predicted? The start is 1, and that is no question; two states side by side are to be
 * compared. Where the rule is to be written, its numbers are hidden, too, until there are some of the reader's. */
const canPredict = step => !plantedAt(step) && !state.compare && (isRuleHidden(step) ||
    (state.hide && step.unit && step.kind !== "start"));

function isSecret(view, i) {
    const key = view.key(i), step = stepNow();
    if (state.printing) return state.printing === "worksheet" && !!view.isMain;
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

function show(keys) {
    for (const key of keys) state.lesson.shown.add(secretOf(key));
    state.steady = true;
    drawAgain();
    state.steady = false;
}

/* Shows all that this step hides, and the answer of a question that asks for it; false if that is nothing. A rule that is to
 * be written is not shown. */
function revealStep() {
    if (isRuleHidden(stepNow()) || !(isHiding() || state.asked)) return false;
    show(picture.main.numbers.map((_, i) => picture.main.key(i)));
    revealAnswers(({ kind }) => kind !== "choice");
    return true;
}

/* How near a guess is. The gap is said, so that a reader learns from it. */
function judge(guess, x) {
    const isClose = y => Math.abs(guess - y) <= Math.max(0.006, 0.015 * Math.abs(y));
    if (isClose(x)) return { right: true, words: "Right." };
    if (isClose(-x)) return { words: "The size is right, the sign is not." };
    if (isClose(2 * x) || isClose(x / 2)) return { words: "Off by a factor of 2." };
    return { words: x !== 0 && Math.sign(guess) !== Math.sign(x) ? "Not yet: look at the sign." : "Not yet." };
}

/* The field in the line of terms for a number that is hidden. At a step with a question that is answered beside it, there is
 * no second field with a check. */
function guessField(view, i) {
    const key = view.key(i), said = el("span", { class: "said", role: "status" });
    const input = numberField("your guess"), open = () => show([key]);
    const check = event => {
        event.preventDefault();
        const { x: guess, refused } = typedNumber(input), { right, words } = refused ? { words: refused } : judge(guess, view.numbers[i]);
        said.textContent = words;
        if (!refused) state.guessed = right ? { key, words: `You said ${input.value.trim()}.` } : { key, guess };
        if (right) open();
    };
    return el("form", { class: "guess", onsubmit: check }, questionsNow().length === 0 && [input, el("button", {}, "check")],
        !state.hint && !isNudging() && button("show the terms", () => {
            state.hint = true;
            showTerms();
        }), button("reveal", open), state.hide && button("reveal all", () => show(view.numbers.map((_, n) => view.key(n)))), said);
}

/* After a reveal: how far the last guess was. */
function gapOf(view, i) {
    const { key, guess, words } = state.guessed || {};
    if (key !== view.key(i) || !isShown(key)) return "";
    const x = view.numbers[i];
    return words || `You said ${bare(guess)}: ${bare(Math.abs(guess - x))} too ${guess > x ? "much" : "little"}.`;
}

function togglePredict() {
    state.hide = !state.hide;
    state.lesson.shown = new Set();
    state.hint = false;
    drawAgain();
}
