/* paper.js - the lesson on paper: all steps with their numbers; or a worksheet of some steps. It gives what a step starts from,
 * also where a step before computed it, so that no slip runs on; the result is empty. Questions have their options, and the
 * answers have a page of their own; in the printed lesson they stand before all steps, since a step answers its own, and a rule
 * has the lines of algebra that lead to it. Where answers are hidden the rules that are not written are left out; the answers
 * of the worksheet have them. */
"use strict";

const PAPER = 690; /* pixels across */
const BOX = 50; /* pixels: "-0.595" is written by hand in 13 millimetres */
let printed = "lesson"; /* what the next print shows; also "worksheet", "worksheet of all steps", "card" */

/* The numbers of the steps that are printed: on a worksheet those key steps that compute something, unless all are wanted. */
function stepsOnPaper() {
    const { steps } = state.lesson, keys = keySteps(state.lesson), all = [...steps.keys()].filter(n => steps[n].unit || isLoop(steps[n]));
    const isWanted = n => asksAt(steps[n]) || (keys.has(n) && steps[n].kind !== "start" && !steps[n].unit?.moves);
    return printed === "lesson" ? shownSteps(state.lesson).slice(1) : printed === "worksheet" ? all.filter(isWanted) : all;
}

const asksAt = step => (state.lesson.questions || []).some(({ at }) => isAt(at, step));

function printAs(what) {
    printed = what;
    print();
}

function drawPaper() {
    if (isPlaying()) return;
    if (printed === "card") return fill(byId("paper"), drawCardSheet(stepNow()));
    const { lesson, step, panel } = state, isWorksheet = printed !== "lesson", before = picture,
        { title, idea, text = [], formula = [], cover = {} } = lesson, weights = lesson.tape.tensors[cover.tensor ?? -1];
    state.printing = isWorksheet ? "worksheet" : "lesson";
    const sheets = stepsOnPaper().map(n => drawSheet(n, isWorksheet)), answers = isWorksheet &&
        el("section", { class: "answers" }, el("h2", {}, "Answers"), drawAnswers(sheets.map(({ answer }) => answer)));
    Object.assign(state, { step, panel, printing: "" });
    picture = before;
    fill(byId("paper"), isWorksheet && el("p", { class: "who" }, el("span", {}, "Name"), el("span", {}, "Date")),
        el("section", {}, el("h1", {}, lesson.number ? `Lesson ${lesson.name}: ${title}` : title ||
        "Your tape"), el("p", {}, prose(cover.lead || idea)),
        !cover.lead && text.map(each => el("p", {}, prose(each))),
        weights && !isWorksheet && drawArcs(weights, cover.row || 0, isTold(lesson, weights)), drawFormula(formula),
        !isWorksheet && sheets.map(({ asked }) => asked),
        isWorksheet && el("p", {}, "Fill in the empty boxes, with the decimals of the other tables.")),
    sheets.map(({ sheet }) => sheet), answers);
    document.body.classList.toggle("worksheet", isWorksheet);
}

function clearPaper() {
    byId("paper").replaceChildren();
    document.body.classList.remove("worksheet");
    printed = "lesson";
}

const MANY = 8; /* boxes */

/* Of a table of many boxes a worksheet has one panel, and one row: those which the question or the words of the step are
 * about. {panels, row}; row is undefined where all rows stand there. */
function boxesAsked(step, { t, numbers, panels, rows, at }) {
    const asked = questionsNow().map(({ question }) => question), index = asked.find(each => each.index !== undefined)?.index;
    const look = index ?? step.look ?? 0, size = t.rows * t.columns, isWhole = picture.moves || asked.some(({ kind }) => kind === "zeros");
    if (isWhole || numbers.length <= MANY) return { panels: range(panels, p => p) };
    const row = range(rows, r => r).find(r => range(numbers.length / panels / rows, c => at(0, r, c)).includes(look % size));
    return { panels: [Math.floor(look / size) % panels], row: size > MANY ? row : undefined };
}

/* {sheet, answer}: a step, and what its boxes should hold. */
function drawSheet(n, isWorksheet) {
    const step = state.lesson.steps[n];
    state.step = n;
    if (isCard(step)) return { sheet: drawCardSheet(step) };
    const isOpen = state.hide && isUnwritten(step);
    picture = { unit: step.unit, sums: [], ...(isOpen ? hiddenPicture(step, true) : isLoop(step) ? pictureOfLoop(step, loopOnPaper(state.lesson)) : pictureOf(step)) };
    const { main, items, rule } = picture, { panels, row } = isWorksheet ? boxesAsked(step, main) : {}, isOne = panels?.length < main.panels;
    [state.panel] = panels || [0];
    const all = !isOne && tablesIn(picture).some(view => view.panels > 1), layout = layoutOf(items, PAPER, 600, all);
    const small = { ...layout, cell: Math.min(58, layout.cell), height: Math.min(26, layout.height), font: Math.min(13, layout.font) };
    const box = Math.min(BOX, Math.floor((PAPER - 90) / main.columns) - 2), given = Math.min(layout.least - 2, layout.cell);
    if (isWorksheet) Object.assign(small, { cell: given, height: 19, font: 12, isTight: true,
        wraps: all || widthOf(items, { main: box, given }) > PAPER / 0.92 }); /* its zoom: media.css */
    main.onlyRow = row;
    const tables = drawItems(picture, small, !isOne), right = [...tables.children].find(item => item.textContent.startsWith("="));
    if (small.wraps && right) right.before(el("span", { class: "break" })); /* a product is not torn: it begins a line */
    tables.style.setProperty("--box", box + "px");
    const words = isOpen ? [askForRule(step), "."] : !isWorksheet ? prose(step.text || sentenceOf(step))
        : picture.moves && prose(sentenceOf(step)); /* else the rule says it */
    const asked = !isOpen && questionsNow().map(({ question }) => el("div", { class: "asked" }, el("p", {}, el("b", {}, "Question. "), prose(question.ask)),
        question.options && el("ol", { type: "a" }, question.options.map(option => el("li", {}, prose(option))))));
    const sheet = el("section", { class: "sheet" }, el("small", {}, phaseOf(state.lesson, n)),
        el("h2", {}, rule, isOne && `, ${panelName(main.t, panels[0])}`,
            row !== undefined && [", the row ", main.rowWords ? `“${main.rowWords[row]}”` : row]), words && el("p", {}, words),
        !isWorksheet && !isOpen && step.algebra && drawAlgebra(step.algebra), isSgd(step) && drawCurve(), tables,
        isLoop(step) && !isWorksheet && [el("p", {}, prose(loopOnPaper(state.lesson).says)), drawLoopCurves(state.lesson), el("p", {}, prose(state.lesson.loop.course))],
        isWorksheet && el("p", { class: "working" }),
        isWorksheet && asked);
    return { sheet, asked, answer: isWorksheet && [el("dt", {}, phaseOf(state.lesson, n), ": ", nameEl(main.name)),
        el("dd", {}, isOpen && [pictureOf(step).rule, ": "], panels.map(p => panelInWords(main, p)).join("; "))] };
}

/* With boxes to write in, and narrower cells for what is given. */
const widthOf = (items, cells) => signsWidth(items, true, 10, 1) + sum(items.filter(({ table }) => table).map(({ table: view }) =>
    view.columns * ((view.isMain ? cells.main : cells.given) + 2) + sideOf(view, true, 1) + 10));

const panelInWords = ({ numbers, rows, columns, format, at, onlyRow }, p) => range(rows, r => r)
    .filter(r => (onlyRow ?? r) === r).map(r => range(columns, c => written(numbers[at(p, r, c)], format)).join("  ")).join("; ");

/* What the boxes of each step should hold, a row after the other, and the answers of the questions that were asked. */
function drawAnswers(boxes) {
    const { lesson } = state;
    const answer = question => {
        const { kind } = question, { tensors } = lesson.tape;
        if (kind === "choice") return rightOption(question);
        if (kind === "number") return bare(tensors[question.tensor][question.part][question.index]);
        if (kind === "count") return String(termsCounted(question).reached.length);
        const t = tensors[question.tensor], view = viewOf(t, "g");
        return t.grad.map((x, i) => (x === 0 ? placeWords(view, i) : "")).filter(Boolean).join(", ") || "none";
    };
    return [el("dl", {}, boxes), el("ol", {}, (lesson.questions || []).map(question =>
        el("li", {}, prose(question.ask), " ", el("b", {}, answer(question)))))];
}
