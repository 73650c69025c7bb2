/* way.js - the last step of a lesson: the table of its way back, and in the row above it (door.js) one gradient after the other,
 * written from memory, in any order. The library judges each line (rule_card.h); before that
 * no answer to it is in the page. The whole table is a card, to be printed or saved. */
"use strict";

const isCard = step => step.kind === "card";

/* The name of a lesson -> which gradient is chosen. What is typed, by lesson and gradient. */
const chosenLines = new Map(), drafts = new Map();

/* What was checked last of each gradient. */
const cardOf = lesson => new Map(keptAt(lesson, "card "));

/* What the library says of the lines that were checked, by gradient. */
function judgedLines({ lines }) {
    const texts = cardOf(state.lesson), some = lines.filter(({ name }) => texts.has(name));
    const answers = some.length ? Controls.judgeCard(some.map(({ name }) => `${name}: ${texts.get(name)}`)) : [];
    return new Map(answers.map(answer => [answer.name, answer]));
}

const isRightLine = answer => answer?.verdict === "right";

/* ---- the step ----------------------------------------------------------------------------------------------------- */

/* The line that stands in the row: the chosen one, or the first that is open; undefined if all are right. */
function lineNow({ lines }, judged) {
    const open = lines.filter(({ name }) => !isRightLine(judged.get(name)));
    return open.find(({ name }) => name === chosenLines.get(state.lesson.name)) || open[0];
}

function drawCard(box, step) {
    const judged = judgedLines(step), line = Controls.isLive() && lineNow(step, judged);
    byId("program").replaceChildren();
    if (line) drawLine(line, judged.get(line.name));
    else drawPlainRow(Controls.isLive() ? `The way back: ${step.lines.length} rules, all yours` : "The way back, from memory");
    fill(box, drawWay(step, judged, line), !line && Controls.isLive() && el("p", { class: "buttons" },
        button("print the card", () => printAs("card"), { id: "print-card" }), button("save it as SVG", saveStep), button("once more, empty", emptyCard)));
}

/* "3 × 2"; of several tables "3 × 4 × 2" */
const sizeOfTable = ({ panels, rows, columns, value }) =>
    (value.length === 1 ? "one number" : [panels, rows, columns].slice(panels > 1 ? 0 : 1).join(" × "));

/* In the row: the name, and what was typed or checked. */
function drawLine({ name, tensor, forward }, answer) {
    const { lesson } = state, key = `${lesson.name} ${name}`, checked = cardOf(lesson).get(name) || "", { text } = doorParts;
    drawField(nameEl(name), { place: null, line: { name, key } });
    text.placeholder = "from memory" + (isNarrow() ? "" : "; Enter judges");
    fillNew(`card ${key} ${checked}`, drafts.get(key) ?? checked);
    if (drafts.has(key)) return;
    fill(doorParts.verdict, answer && (answer.verdict === "refused" && answer.column ? refusedWord(answer.why) : verdictWord("wrong", "not yet")));
    text.classList.toggle("is-wrong", !!answer);
    mirrorText(answer?.column);
    sayWords(answer ? { loud: true, words: wordsOfLine(answer) } : { words: ["Forward: ", prose(forward), ". ", nameEl(name), ` is ${sizeOfTable(lesson.tape.tensors[tensor])}, and may use the gradients that are known before it.`] });
}

/* Where the mistake is, what it is, and a question as a hint. */
const wordsOfLine = ({ verdict, column, formula, why, question }) => [column > 0
    ? (column > formula.length ? "At the end: " : `At character ${column}: `) + typeset(why)
    : el("b", {}, raiseT(typeset(why[0].toUpperCase() + why.slice(1)))), verdict === "refused" && ".",
question && [" ", el("i", {}, typeset(question))]];

/* A right line leads to the next open one; the last one to the card. */
function judgeLine(step, { name, key }, text) {
    const { lesson } = state, { lines } = step, n = lines.findIndex(each => each.name === name), formula = text.replace(/^d[^=]*=/, "").trim();
    if (!formula) return sayError("Write a formula first");
    keep(lesson, [["card " + name, formula]]);
    drafts.delete(key);
    const judged = judgedLines(step), isOpen = each => !isRightLine(judged.get(each.name)), isRight = !isOpen(lines[n]);
    const next = isRight && (lines.slice(n).find(isOpen) || lines.find(isOpen));
    if (isRight) chosenLines.set(lesson.name, next?.name);
    door.filled = "";
    draw();
    if (isRight && !next) byId("print-card").focus();
    byId("announce").textContent = `${name}: ${isRight ? "right" : doorParts.said.textContent}`;
}

function chooseLine(name) {
    chosenLines.set(state.lesson.name, name);
    draw();
    focusDoor();
}

function emptyCard() {
    forget(state.lesson, "card ");
    draw();
    focusDoor();
}

/* Beside it: what is asked, and the language. */
function drawWordsOfCard(box, step) {
    const isWhole = !!byId("print-card"), isOff = !Controls.isLive() && !Controls.isLoading(), judged = judgedLines(step);
    const done = step.lines.filter(({ name }) => isRightLine(judged.get(name))).length;
    const task = isWhole ? "This is yours. Print it, or write it once more without looking: tomorrow is best."
        : isOff ? `${Live.refused} Nothing here can judge a formula: write the lines on paper, and look back at the steps.`
        : `${done} of ${step.lines.length}. You have seen each of these rules${state.lesson.plan.long ? ", some in an earlier lesson" : ""}. Write them, in any order; Enter judges, and leads on.`;
    fill(box, el("p", { class: "text" }, task),
        !isWhole && el("details", { class: "others" }, el("summary", {}, "how to write it"), el("p", { class: "text small" },
            "@ is the product of tables, and may be left out: A B; * goes number by number, ' transposes, sum(x) adds up each row, sum0(x) all rows, " +
            "sum(sum(x)') each table; √d, or sqrt(d), is a root.")), el("p", { class: "text small" }, drawLetters(state.lesson)), drawEnd());
    byId("below").classList.remove("asks");
}

/* ---- the card ----------------------------------------------------------------------------------------------------- */

/* In the signs of the page: "A × (dA − sum(A × dA))", "dSᵀ Q". */
const typesetRule = (name, shown) => formulaLine(`${name} = ${shown}`.replace(/ @ /g, " ").replace(/ \* /g, " × ").replace(/\)'/g, ")ᵀ"));

/* Each line forward, from the first to the last, and the gradients that come back through it. */
function rowsOfCard({ lines }) {
    const rows = new Map();
    for (const line of lines) rows.set(line.forward, [...rows.get(line.forward) || [], line]);
    return [...rows].reverse();
}

/* A right line typesets itself into the table; one that is open can be chosen. */
function drawWay(step, judged, now) {
    const cell = line => (isRightLine(judged.get(line.name)) ? [typesetRule(line.name, judged.get(line.name).shown), now && icon("right")]
        : [el("button", { class: "open-line", "aria-pressed": String(line === now), disabled: !now, "aria-label": `write ${plain(line.name)}`,
            onclick: () => chooseLine(line.name) }, nameEl(line.name), " = ", el("span"))]);
    const rows = ([forward, lines]) => lines.map((line, n) => el("tr", { class: [n === lines.length - 1 && "last", line === now && "now"].filter(Boolean).join(" ") },
        n === 0 && el("td", { rowspan: String(lines.length) }, forward.split(",  ").map(each => el("div", {}, prose(each)))),
        el("td", {}, cell(line)), el("td", {}, isRightLine(judged.get(line.name)) && prose(line.why))));
    return el("section", { class: "keep", "aria-label": "The card" }, el("table", {}, el("thead", {}, el("tr", {},
        ["forward, read down", "backward, read up", "why"].map(each => el("th", { scope: "col" }, each)))), el("tbody", {}, rowsOfCard(step).map(rows))),
    el("p", {}, `Tapehead, lesson ${state.lesson.name}: ${state.lesson.title}.`));
}

/* On paper: the card, or its lines to be filled in. */
function drawCardSheet(step) {
    const judged = judgedLines(step), isWhole = step.lines.every(({ name }) => isRightLine(judged.get(name)));
    return el("section", { class: "sheet" }, el("h2", {}, "The way back, from memory"), isWhole && state.printing !== "worksheet"
        ? drawWay(step, judged) : step.lines.map(({ name, forward }) => el("p", { class: "blank" }, el("span", {}, prose(forward)), nameEl(name), " =")));
}
