/* card.js - the last step of a lesson: its gradients, written from memory in the language of rules, in any order. The library
 * judges each line alone, with other numbers, too (rule_card.h), and says what is right about a right one: before that no
 * answer to a line is in the page. The right lines are a card, to be printed or saved. What was written stays for the visit,
 * and longer where a page may store it. */
"use strict";

const isCard = step => step.kind === "card";

/* The name of a lesson -> what was checked last of each gradient. And what is typed, by lesson and gradient. */
const cards = new Map(), drafts = new Map();
const storeOf = ({ name }) => `tapehead card ${name}`;

function cardOf(lesson) {
    if (!cards.has(lesson.name)) cards.set(lesson.name, storedCard(lesson));
    return cards.get(lesson.name);
}

function storedCard(lesson) {
    try {
        return new Map(JSON.parse(localStorage.getItem(storeOf(lesson))));
    } catch {
        return new Map(); /* a browser may refuse a page from the disk its store */
    }
}

function keepCard(lesson) {
    try {
        localStorage.setItem(storeOf(lesson), JSON.stringify([...cardOf(lesson)]));
    } catch { /* then it stays for this visit */ }
}

/* What the library says of the lines that were checked, by gradient. */
function judgedLines({ lines }) {
    const texts = cardOf(state.lesson), some = lines.filter(({ name }) => texts.has(name));
    const answers = some.length ? Controls.judgeCard(some.map(({ name }) => `${name}: ${texts.get(name)}`)) : [];
    return new Map(answers.map(answer => [answer.name, answer]));
}

const isRightLine = answer => answer?.verdict === "right";

/* ---- the step ----------------------------------------------------------------------------------------------------- */

function drawCard(box, step) {
    const judged = judgedLines(step), done = [...judged.values()].filter(isRightLine).length, isWhole = done === step.lines.length;
    byId("program").replaceChildren();
    fill(box, el("div", { class: "rule" }, el("h2", {}, isWhole ? "The way back" : "The way back, from memory"),
        isWhole ? el("span", { class: "buttons" }, button("print the card", () => printAs("card"), { id: "print-card" }),
            button("save it as SVG", saveStep), button("once more, empty", emptyCard))
            : el("span", { class: "soft" }, `${done} of ${step.lines.length}`)),
    isWhole ? drawKeep(step, judged)
        : el("div", { class: "card-lines" }, step.lines.map((line, n) => drawCardLine(step, line, n, judged.get(line.name)))));
}

/* "3 × 2"; of several tables "3 × 4 × 2" */
const sizeOfTable = ({ panels, rows, columns, value }) =>
    (value.length === 1 ? "one number" : [panels, rows, columns].slice(panels > 1 ? 0 : 1).join(" × "));

function drawCardLine(step, { name, tensor, forward }, n, answer) {
    const { lesson } = state, key = `${lesson.name} ${name}`, said = `said-${n}`, isRight = isRightLine(answer);
    const input = el("input", { type: "text", id: `line-${n}`, autocomplete: "off", autocapitalize: "off", autocorrect: "off",
        spellcheck: "false", enterkeyhint: "done", disabled: !Controls.isLive(), readonly: isRight,
        "aria-describedby": said, "aria-invalid": answer && !isRight && "true", "data-keep": key, oninput: () => drafts.set(key, input.value) });
    input.value = drafts.get(key) ?? cardOf(lesson).get(name) ?? "";
    const submit = event => {
        event.preventDefault();
        if (!isRight) checkLine(step, n, plainSigns(input.value).trim());
    };
    return el("form", { class: "card-line", onsubmit: submit }, el("span", { class: "was" }, prose(forward)),
        el("label", { for: input.id }, el("span", {}, nameEl(name), " ="), el("small", {}, sizeOfTable(lesson.tape.tensors[tensor]))), input,
        isRight ? verdictWord("right", "right") : el("button", { disabled: !Controls.isLive() }, "check"),
        el("p", { id: said }, answer && !isRight && wordsOfLine(answer)));
}

/* Where the mistake is, what it is, and a question as a hint. */
const wordsOfLine = ({ verdict, column, formula, why, question }) => [verdictWord("wrong", "Not yet. "),
    column > 0 ? (column > formula.length ? "At the end: " : `At character ${column}: `) + typeset(why)
        : typeset(why[0].toUpperCase() + why.slice(1)), verdict === "refused" && ".",
    question && [" ", el("i", {}, typeset(question))]];

/* A right line leads to the next open one; the last one to the card. */
function checkLine(step, n, text) {
    const { lesson } = state, { lines } = step, { name } = lines[n], formula = text.replace(/^d[^=]*=/, "").trim();
    if (!formula) return fill(byId(`said-${n}`), "Write a formula first.");
    cardOf(lesson).set(name, formula);
    drafts.delete(`${lesson.name} ${name}`);
    keepCard(lesson);
    const judged = judgedLines(step), open = lines.map((_, m) => m).filter(m => !isRightLine(judged.get(lines[m].name))),
        isRight = !open.includes(n), next = isRight ? open.find(m => m > n) ?? open[0] : n;
    draw();
    (byId(`line-${next}`) || byId("print-card")).focus();
    byId(`line-${next}`)?.form.scrollIntoView({ block: "nearest" });
    byId("announce").textContent = `${name}: ${isRight ? "right" : byId(`said-${n}`).textContent}`;
}

function emptyCard() {
    cardOf(state.lesson).clear();
    keepCard(state.lesson);
    draw();
    byId("line-0").focus();
}

/* Beside it: what is asked, and the language. */
function drawWordsOfCard(box, step) {
    const isWhole = !byId("line-0"), isOff = !Controls.isLive() && !Controls.isLoading();
    const task = isWhole ? "This is yours. Print it, or write it once more without looking: tomorrow is best."
        : isOff ? `${Live.refused} Nothing here can judge a formula: write the lines on paper, and look back at the steps.`
        : `You have seen each of these rules${state.lesson.plan.long ? ", some in an earlier lesson" : ""}. Write them, in any order; Enter checks. A formula may use the gradients that are known before it.`;
    fill(box, el("p", { class: "phase" }, phaseOf(state.lesson, state.step)), el("p", { class: "text" }, task),
        !isWhole && el("details", { class: "others" }, el("summary", {}, "how to write it"), el("p", { class: "text small" },
            "@ is the product of tables, and may be left out: A B; * goes number by number, ' transposes, sum(x) adds up each row, sum0(x) all rows, " +
            "sum(sum(x)') each table; √d, or sqrt(d), is a root.")), drawEnd());
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

function drawKeep(step, judged) {
    const rows = ([forward, lines]) => lines.map(({ name, why }, n) => el("tr", { class: n === lines.length - 1 && "last" },
        n === 0 && el("td", { rowspan: String(lines.length) }, forward.split(",  ").map(each => el("div", {}, prose(each)))),
        el("td", {}, typesetRule(name, judged.get(name).shown)), el("td", {}, prose(why))));
    return el("section", { class: "keep", "aria-label": "The card" }, el("table", {}, el("thead", {}, el("tr", {},
        ["forward", "backward", "why"].map(each => el("th", { scope: "col" }, each)))), el("tbody", {}, rowsOfCard(step).map(rows))),
    el("p", {}, `Read the left column down, the middle one up. Tapehead, lesson ${state.lesson.name}: ${state.lesson.title}.`));
}

/* On paper: the card, or its lines to be filled in. */
function drawCardSheet(step) {
    const judged = judgedLines(step), isWhole = step.lines.every(({ name }) => isRightLine(judged.get(name)));
    return el("section", { class: "sheet" }, el("h2", {}, "The way back, from memory"), isWhole && state.printing !== "worksheet"
        ? drawKeep(step, judged) : step.lines.map(({ name, forward }) => el("p", { class: "blank" }, el("span", {}, prose(forward)), nameEl(name), " =")));
}
