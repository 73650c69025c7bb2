/* again.js - the card that a lesson opens with: a question or two about earlier lessons, with other numbers than were shown
 * there. The library draws them and computes the answers (again.h): the first ones are recorded, others are asked for. The
 * right arrow leads on without them. */
"use strict";

const againCards = new Map(); /* the name of a lesson -> its card, which stays as it was answered */
const againAsked = new Set(); /* what the page has asked: no numbers twice */
const againOpened = new Set(); /* the lessons whose covers were seen */

/* Under the cover, and on a phone behind the way into the lesson unless arcs are pulled there; not where a lecturer presents, nor on
 * the first screen of the page. */
function addAgain(box) {
    const { lesson } = state, { name, again, pull } = lesson;
    againOpened.add(name);
    if (!again || isPresenting() || (pull && againOpened.size === 1)) return;
    if (!againCards.has(name)) againCards.set(name, newAgain(lesson));
    if (isNarrow() && !canPull(lesson)) box.firstChild.after(againCards.get(name));
    else box.append(againCards.get(name));
}

const againNumbers = ({ ask, tables }) => JSON.stringify([ask, tables.map(({ numbers }) => numbers)]);

function newAgain({ number, part = "", again }) {
    const card = el("section", { class: "again", "aria-label": "Again" });
    let waiting = [...again], seed = 0;
    const next = () => {
        while (waiting.length && againAsked.has(againNumbers(waiting[0]))) waiting.shift();
        for (let tries = 0; !waiting.length && tries < 50; tries++)
            waiting = (Controls.ask(`lesson ${number + part}\nagain ${++seed}`)?.again || []).filter(each => !againAsked.has(againNumbers(each)));
        const question = waiting.shift();
        if (!question) return fill(card, el("p", {}, "No more questions were recorded in this page."));
        againAsked.add(againNumbers(question));
        fill(card, drawAgainQuestion(question, () => {
            next();
            card.querySelector("input, td button, .go")?.focus({ preventScroll: true });
        }));
    };
    next();
    return card;
}

function drawAgainQuestion({ about, form, ask, hint, why, tables, answer, mistakes, options }, next) {
    const result = el("div", { class: "result", role: "status" }), isNear = (x, y) => Math.abs(x - y) < 0.006;
    const tell = (name, words) => fill(result, el("p", { class: name }, icon(name), " ", words));
    const { field, read } = againForms[form]({ tables, options });
    const submit = event => {
        event.preventDefault();
        const { x, refused } = read(), mistake = mistakes.find(({ value }) => isNear(value, x));
        if (refused) fill(result, el("p", {}, refused));
        else if (isNear(answer, x)) tell("right", ["Right. ", prose(why)]);
        else tell("wrong", mistake ? prose(mistake.says) : ["Not yet. ", prose(hint)]);
    };
    return el("form", { class: "question", onsubmit: submit }, el("p", {}, el("b", {}, `Again, from lesson ${about}. `), prose(ask)),
        form !== "which" && tables.map(drawAgainTable), el("div", { class: "reply" }, field, el("div", { class: "buttons" },
            el("button", { "data-check": true }, "check"), button("hint", () => fill(result, el("p", {}, "Hint: ", prose(hint)))),
            button("another", next))), result);
}

/* cell: what stands in number i; else the number. */
function drawAgainTable({ name, note, columns, numbers }, cell) {
    const rows = range(numbers.length / columns, r => range(columns, c => r * columns + c));
    return el("figure", {}, el("figcaption", {}, nameEl(name), el("small", {}, note)), el("table", {}, rows.map(row =>
        el("tr", {}, row.map(i => el("td", {}, typeof cell === "function" ? cell(i) : bare(numbers[i])))))));
}

/* How a question is answered: a field, and the number that it says. */
const againForms = {
    number() {
        const field = numberField("your answer");
        return { field, read: () => typedNumber(field) };
    },
    choice({ options }) {
        const inputs = options.map((_, n) => el("input", { type: "radio", name: "again", value: String(n) }));
        return { field: el("div", { class: "choices" }, options.map((option, n) => el("label", {}, inputs[n], el("span", {}, option)))),
            read: () => (inputs.some(({ checked }) => checked) ? { x: inputs.findIndex(({ checked }) => checked) } : { refused: "Choose one first." }) };
    },
    which({ tables: [table] }) {
        const picks = new Set(), cell = i => el("button", { type: "button", class: table.numbers[i] ? "" : "hidden-key", "aria-pressed": "false",
            "aria-label": `row ${Math.floor(i / table.columns) + 1}, column ${i % table.columns + 1}${table.numbers[i] ? "" : ", hidden"}: 0`,
            onclick: ({ currentTarget: box }) => {
                if (!picks.delete(i)) picks.add(i);
                box.textContent = picks.has(i) ? "0" : "";
                box.setAttribute("aria-pressed", String(picks.has(i)));
            } });
        return { field: drawAgainTable(table, cell), read: () => (picks.size ? { x: sum([...picks].map(i => 2 ** i)) } : { refused: "Choose the zeros first." }) };
    },
};
