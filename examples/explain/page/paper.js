/* paper.js - the lesson on paper: all steps with their numbers; or a worksheet, where every table that a step computes is
 * empty, with the questions and their options, and the answers on the last pages. In the exercise mode the rules that are not
 * written are left out; the answers of the worksheet have them. */
"use strict";

const PAPER = 690; /* pixels across */
const CELL = { width: 58, height: 35 }; /* of a worksheet, in pixels: "-0.595" is written by hand in 15 by 9 millimetres */
let printed = "lesson"; /* what the next print shows: lesson, worksheet or card */

function printAs(what) {
    printed = what;
    print();
}

function drawPaper() {
    if (isPlaying()) return;
    if (printed === "card") return fill(byId("paper"), drawCardSheet(stepNow()));
    const { lesson, step, panel } = state, isWorksheet = printed === "worksheet", before = picture,
        { title, idea, text = [], formula = [], cover = {} } = lesson, weights = lesson.tape.tensors[cover.tensor ?? -1];
    state.printing = printed;
    const sheets = shownSteps(lesson).slice(1).map(n => (lesson.steps[n].unit || !isWorksheet) && drawSheet(n, isWorksheet));
    const answers = isWorksheet && el("section", { class: "answers" }, el("h1", {}, "Answers"), drawAnswers());
    Object.assign(state, { step, panel, printing: "" });
    picture = before;
    fill(byId("paper"), isWorksheet && el("p", { class: "who" }, el("span", {}, "Name"), el("span", {}, "Date")),
        el("section", {}, el("h1", {}, lesson.number ? `Lesson ${lesson.name}: ${title}` : title ||
        "Your tape"), el("p", {}, prose(cover.lead || idea)),
        !cover.lead && text.map(each => el("p", {}, prose(each))), weights && drawArcs(weights, cover.row || 0, isTold(lesson, weights)), drawFormula(formula)),
    sheets, answers);
    document.body.classList.toggle("worksheet", isWorksheet);
}

function clearPaper() {
    byId("paper").replaceChildren();
    document.body.classList.remove("worksheet");
    printed = "lesson";
}

function drawSheet(n, isWorksheet) {
    const step = state.lesson.steps[n];
    state.step = n;
    if (isCard(step)) return drawCardSheet(step);
    const isOpen = isLeftOut(step);
    picture = { unit: step.unit, ...(isOpen ? hiddenPicture(step, true) : pictureOf(step)) };
    const all = tablesIn(picture).some(view => view.panels > 1), layout = layoutOf(picture.items, PAPER, 600, all);
    const small = { ...layout, cell: Math.min(58, layout.cell), height: Math.min(26, layout.height), font: Math.min(13, layout.font) };
    if (isWorksheet) Object.assign(small, { cell: CELL.width, height: CELL.height, isTight: false,
        wraps: layout.wraps || layout.cell < CELL.width + 8 });
    const items = drawItems(picture, small, true), right = [...items.children].find(item => item.textContent.startsWith("="));
    if (small.wraps && right) right.before(el("span", { class: "break" })); /* a product is not torn: it begins a line */
    const words = isWorksheet ? sentenceOf(step) : step.text || sentenceOf(step);
    return el("section", { class: "sheet" }, el("small", {}, phaseOf(state.lesson, n)), el("h2", {}, picture.rule),
        el("p", {}, isOpen ? [askForRule(step), "."] : prose(words)), isSgd(step) && drawCurve(), items,
        isWorksheet && el("p", { class: "working" }),
        !isOpen && questionsNow().map(({ question }) => el("div", { class: "asked" },
            el("p", {}, el("b", {}, "Question. "), prose(question.ask)),
            question.options && el("ol", { type: "a" }, question.options.map(option => el("li", {}, prose(option)))))));
}

/* The computed table of each step in a line of numbers, and the answers of the questions. */
function drawAnswers() {
    const { lesson } = state, numbers = ({ numbers: list, columns, format }) =>
        list.map((x, i) => (i && i % columns === 0 ? "; " : i ? "  " : "") + written(x, format)).join("");
    const steps = shownSteps(lesson).map(n => lesson.steps[n]).filter(({ unit }) => unit).map(step => [step, pictureOf(step)]);
    const answer = question => {
        const { kind } = question, { tensors } = lesson.tape;
        if (kind === "choice") return rightOption(question);
        if (kind === "number") return bare(tensors[question.tensor][question.part][question.index]);
        if (kind === "count") return String(termsCounted(question).reached.length);
        const t = tensors[question.tensor], view = viewOf(t, "g");
        return t.grad.map((x, i) => (x === 0 ? placeWords(view, i) : "")).filter(Boolean).join(", ") || "none";
    };
    return [el("dl", {}, steps.map(([step, { main, rule }]) => [el("dt", {}, phaseOf(lesson, lesson.steps.indexOf(step)), ": ",
        nameEl(main.name)), el("dd", {}, isLeftOut(step) && [rule, ": "], numbers(main))])),
        el("ol", {}, (lesson.questions || []).map(question =>
            el("li", {}, prose(question.ask), " ", el("b", {}, answer(question)))))];
}
