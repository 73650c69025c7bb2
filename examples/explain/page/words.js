/* words.js - the words beside a step: the lesson's own, or what follows from the kind of the step; then the questions
 * that ask about it, and the end of the lesson. */
"use strict";

/* Does a name, b3.0, belong to this step? Also if its line is folded into it. */
const isAt = (id, step) => state.lesson.steps[stepOf(state.lesson, id)] === step;

/* A sentence for a step that has no text of its own. It holds no number. */
const sentenceOf = ({ kind, unit, sentence = "" }) => sentence +
    (kind === "forward" && unit.isFold && !unit.moves && !state.printing ? " Press o to see them one by one." : "");

function drawWords() {
    const box = byId("words"), step = stepNow();
    if (step.kind === "cover") return fill(box);
    if (isCard(step)) return drawWordsOfCard(box, step);
    if (isRuleHidden(step)) return drawWordsOfHidden(box, step);
    if (isTrying()) return fill(box, drawWordsOfTry(experimentAt(step)));
    const planted = plantedAt(step);
    const isHidden = isHiding() && canPredict(step), text = step.text || sentenceOf(step);
    if (isNudging()) return drawWordsOfNudge(box, step);
    const guess = isAskedAll() ? "Answer the question, or reveal it." : questionsNow().length ? "Answer the question, or reveal all."
        : "Choose a cell, and guess what will stand there; or look at its terms, or reveal it.";
    const isBegun = isHidden && picture.main.numbers.some((_, i) => !isSecret(picture.main, i)),
        later = "The words of this step come when none of its cells is hidden.";
    const words = isBegun ? later : isHidden ? `Predict first. ${guess} ${later}`
        : tellsSecret(text) ? sentenceOf(step) : text;
    fill(box, drawSkipped(),
        isWrong(planted) ? drawWordsOfWrong(step, planted) : el("p", { class: "text" }, prose(words)),
        isOfWeights(step) && !isHidden && state.lesson.letters && el("p", { class: "text small" }, prose(state.lesson.letters)),
        step.check === "wrong" && !isWrong(planted) && isBroken(state.lesson) && drawTraining(),
        !isHidden && !isAskedAll() && drawVerdict(step), !isWrong(planted) && drawQuestions(), drawTry(step), drawEnd(), drawKnown(step), drawProgram(step));
    byId("below").classList.toggle("asks", questionsNow().length > 0 && !isWrong(planted));
}

/* A nudge has words of its own; a question stands there as soon as all is known that it asks about. */
function drawWordsOfNudge(box, { nudge: { says } }) {
    const asks = lookNow() > 1 && asksBeside(), words = presetNow() && nudged.says || says[lookNow() - 1];
    byId("program").hidden = true;
    fill(box, el("p", { class: "text" }, prose(words)),
        asks && drawQuestions(), drawEnd());
    byId("below").classList.toggle("asks", asks);
}

/* The letters of papers, for those of this lesson (tell.h). */
const drawLetters = lesson => [lesson?.letters && [prose(lesson.letters), " "], prose("A loss that is a mean divides by n: then `dY` = 2/n `E`.")];

/* What the bet of the cover came to, at the step that settles it. */
function drawVerdict(step) {
    const { bet: asked } = state.lesson, bet = asked && betNow();
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

/* At the last step: how many questions are answered, what comes next, and where the
 * reader can write the rule. */
function drawEnd() {
    const { lesson, step } = state, { questions = [], right, steps, number } = lesson;
    if (step < steps.length - 1) return "";
    const next = number ? lessons[lessons.findIndex(each => each.name === lesson.name) + 1] : null;
    const answered = right.size ? `${right.size} of ${questions.length} questions right. `
        : questions.length ? "Questions wait at the steps with a “?”. " : "";
    return el("div", { class: "end" }, number ? el("p", { id: "end" }, "The end of this lesson. ", answered, tallyOfRules(),
        next && next.number ? el("a", { href: "#" + next.name }, `Next: ${next.title}`)
            : el("a", { href: "#play" }, "Next: train a model in the playground"))
        : el("p", { id: "end" }, "The end. ", lesson.back), drawToExercise(lesson));
}
