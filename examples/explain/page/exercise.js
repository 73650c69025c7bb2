/* exercise.js - the exercise mode: the rule of a backward step is hidden, and the reader writes it in the box (rulebox.js).
 * Nothing shows a rule that is not written yet: not the title, the tables, the line of terms, the words, the C. When it is
 * right the step is shown; "show" gives up. "e" or the button begins and ends it; "&exercise" in an address begins it. */
"use strict";

/* What has been done, for each lesson by name: the name of a rule -> {formula, isShown}, and how many tries were wrong. It
 * outlives other numbers of the lesson. */
const exercises = new Map();
function doneIn({ name }) {
    if (!exercises.has(name)) exercises.set(name, { done: new Map(), tries: new Map() });
    return exercises.get(name);
}

const isExercise = () => state.exercise && Controls.canWriteRules() && !state.printing;

/* The place of a step's rule, as the library names it; undefined if the step has none. */
const placeAt = step => (step.kind === "backward" && !step.unit.isFold && Controls.canWriteRules()
    ? Controls.box().places.find(({ line, input }) => line === step.part.line.line && input === step.part.k) : undefined);

/* Is the rule worth writing? Not where numbers only move, and no formula says more than dy. */
const isWorthwhile = (step, place) => !!place && place.formula !== "" && !(step.unit.moves && place.formula === "dy");

/* The rule of this step, if it is still to be written. */
function unwrittenAt(step) {
    const place = placeAt(step);
    return isWorthwhile(step, place) && !doneIn(state.lesson).done.has(place.name) && !isRightAt(step) ? place : null;
}

/* A right rule that came with the address. */
const isRightAt = step => plantedAt(step)?.verdict === "right" && !plantedAt(step).why;

/* The steps whose rules are to be written. */
const stepsToWrite = () => state.lesson.steps.filter(step => isWorthwhile(step, placeAt(step)));

const isRuleHidden = step => (state.exercise && Controls.isLoading() ? step.kind === "backward"
    : isExercise() && !!unwrittenAt(step));

/* ---- what a step shows whose rule is hidden ----------------------------------------------------------------------- */

/* What is to be found, and what arrives. After a try the reader's own numbers stand there; of a rule that is right for these
 * numbers only, no derivatives, which are those of the right one. */
function hiddenPicture(step, isHidden = isRuleHidden(step)) {
    const planted = isHidden && !state.printing && plantedAt(step);
    if (!isHidden || isWrong(planted)) return null;
    const { part, unit } = step, main = partView(part, { isMain: true, note: planted ? "your rule" : "to be found" }),
        dy = gradView(unit.result, { note: "arrives" });
    return { main, part, isHidden: !planted, items: [{ table: main }, sign("←"), { table: dy }],
        rule: [nameEl(main.name), " = ", planted ? formulaEl(planted.formula) : "?"], terms: () => [] };
}

/* The rules that are not written yet stay hidden on paper, too. */
const isLeftOut = step => state.exercise && !!unwrittenAt(step);

/* What is to be written, as a sentence without its end. */
function askForRule({ unit, part }) {
    const forward = pictureOf(state.lesson.steps.find(step => step.kind === "forward" && step.unit === unit));
    return ["Forward, this line was ", el("span", { class: "was" }, forward.rule), ". ", nameEl(unit.result.gradient),
        " arrives. Write the rule that makes ", nameEl(part.tensor.gradient), " of it"];
}

function drawWordsOfExercise(box, step) {
    const planted = plantedAt(step);
    byId("program").hidden = true;
    byId("below").classList.remove("asks");
    if (Controls.isLoading()) return fill(box, el("p", { class: "text" }, whyNoRules()));
    fill(box, el("p", { class: "text" }, askForRule(step), ", in the box above."),
        isWrong(planted) && drawWordsOfWrong(planted), drawEnd());
}

/* ---- beginning, ending, the tally --------------------------------------------------------------------------------- */

function setExercise(on) {
    state.exercise = on;
    document.body.classList.toggle("exercise", on);
    byId("write").setAttribute("aria-pressed", String(on));
    if (on) state.compare = state.keys = false; /* each rule is to be written */
    state.look = Infinity; /* the rule */
}

/* Begins at this step, if its rule is to be written, or at the next one that is; from the end of the lesson, at the first. */
function toggleExercise() {
    fill(byId("notice"));
    if (!state.exercise && !Controls.canWriteRules()) return fill(byId("notice"), whyNoRules());
    const step = stepNow(), planted = state.exercise && plantedAt(step);
    if (planted && planted.typed) takeBackRule(step);
    const isAtEnd = state.step === state.lesson.steps.length - 1;
    setExercise(!state.exercise);
    planAgain();
    if (!state.exercise) return drawAgain();
    closePanel();
    if (isAtEnd || !unwrittenAt(stepNow())) goToUnwritten(isAtEnd ? -1 : state.step);
    drawAgain();
    focusBox();
}

/* The address asks for it, and the library is there now, or never will be. */
function beginExercise() {
    if (!state.exercise || isPlaying()) return;
    if (Controls.canWriteRules()) return planAgain();
    setExercise(false);
    fill(byId("notice"), whyNoRules());
}

/* A wrong try does not stay behind: the next step has right gradients. */
function leaveTry() {
    if (isExercise() && plantedAt(stepNow())?.typed) takeBackRule(stepNow());
}

/* The next step whose rule is to be written, after the step n or from the first one on. */
function nextUnwritten(n = state.step) {
    const { steps } = state.lesson, open = stepsToWrite().filter(unwrittenAt).map(step => steps.indexOf(step));
    return open.find(each => each > n) ?? open[0] ?? -1;
}

function goToUnwritten(from) {
    const n = nextUnwritten(from);
    if (n >= 0) goTo(n);
    return n >= 0;
}

function markDone(place, formula, isShown) {
    doneIn(state.lesson).done.set(place.name, { formula, isShown });
}

/* "3 of 7 rules written. " */
function tallyOfRules() {
    const { done } = doneIn(state.lesson), isBegun = Controls.canWriteRules() && (isExercise() || done.size > 0);
    const all = isBegun ? stepsToWrite() : [], written = all.filter(step => done.get(placeAt(step).name)?.isShown === false);
    return all.length ? `${written.length} of ${all.length} rules written. ` : "";
}

/* At the end of a lesson: the exercise in C. */
const drawToExercise = ({ exercise }) => exercise && el("p", { class: "to-exercise" }, "Write it yourself, in C: ",
    el("code", {}, `examples/exercises/students/${exercise}.c`), ", marked by ", el("code", {}, "make exercises"), ".");
