/* pictures.js - a step as the library's plan has it, made into what the page draws. A picture is
 *
 *     items     what stands in a row: {table: view} and {op: sign, note}
 *     rule      the same as a line of type
 *     main      the view that the step computes
 *     terms(i)  what number i of main is made of: text, {note: words}, factors {key, x, text}, and constants without a key
 *     moves     [from, to], keys of cells, where numbers only slide
 *     sums      tables of sums and of parts that the rule reads: {view, terms(n)}, n a number of the table
 *     rowOf(i)  the row of number i, where each row is made from the same rows of the others alone */
"use strict";

const MOST_TERMS = 12; /* of a sum: more would fill the page */

const range = (n, each) => Array.from({ length: n }, (_, k) => each(k));

const raised = text => text.replace(/\^(\d+)/g, (_, n) => superscript(n));

/* A sign between tables, in the letters of a keyboard or in the page's own. */
const pageSigns = { x: "×", "-": "−", "->": "→", "<-": "←", ".": "·" };
const sign = (op, note) => ({ op, note });
const signOf = text => pageSigns[text] || raised(plain(text).replace(/^x /, "× ").replace(/-(?=[ \d])/g, "−"));
const noteOf = note => (note ? prose(note.replace(" . ", " · ")) : "");

function pictureOf(step) {
    const items = step.items.map(itemOf), views = items.map(({ table }) => table), { table: main } = items[step.main || 0];
    const C = main.t.columns;
    main.isMain = !!step.unit;
    for (const view of views) { /* of two tables that are no tensor each has keys of its own */
        const n = view && /[mj]/.test(view.of) ? views.filter(each => each?.of === view.of && each.t === view.t).indexOf(view) : 0;
        if (n > 0) view.key = i => `${view.of}${view.t.number}_${n}.${i}`;
    }
    const terms = i => termsOf(step, views, step.form, step.cells ? step.cells[i] : i, Number(step.more?.[i] || 0));
    return {
        main, terms, part: step.part, items: items.filter(({ isHidden }) => !isHidden), rule: titleOf(step),
        moves: step.moves ? main.numbers.flatMap((_, i) =>
            terms(i).filter(term => term.key).map(({ key }) => [key, main.key(i)])) : null,
        rowOf: step.rows ? i => Math.floor(i / C) % main.t.rows : null,
        sums: (step.sums || []).map(({ item, form, cells, more }) => ({ view: views[item], terms: n =>
            termsOf(step, views, form, cells ? cells[n] : n, Number(more?.[n] || 0)) })),
    };
}

/* A title may break at its signs. */
const titleOf = ({ title }) => prose(title).map(each => (typeof each === "string" ? each.replaceAll("\u00a0", " ") : each));

function itemOf(item) {
    if (typeof item === "string") return sign(signOf(item));
    if (Array.isArray(item)) return sign(signOf(item[0]), noteOf(item[1]));
    return { table: item.of === "c" ? constantsOf(item) : viewOfItem(item), isHidden: item.hidden };
}

/* Derivatives that stand in no table. */
const constantsOf = ({ numbers }) => ({ numbers: numbers.map(Number), isConstant: true });

/* ---- the line of terms -------------------------------------------------------------------------------------------- */

/* A number with as many decimals as its table shows, or with more where it is rounded there. */
const isRounded = (x, { d, e }) => Math.abs(Number((x / 10 ** e).toFixed(d)) * 10 ** e - x) > 1e-9 * Math.abs(x);
const termOf = (x, format, more, key) =>
    ({ key, x, text: written(x, more && isRounded(x, format) ? { ...format, d: format.d + more } : format) });
const constantTerm = (x, more) => termOf(x, formatOfConstant(x), more);
const factorOf = (view, i, more = 0) =>
    (view.isConstant ? constantTerm(view.numbers[i], more) : termOf(view.numbers[i], view.format, more, view.key(i)));

const signsIn = text => raised(text.replace(/ x /g, " × ").replace(/-/g, "−")).split(/(\))/).filter(Boolean);

/* A form with the elements of one number: see worked.h. */
function termsOf({ op, after }, views, form, cell, more) {
    if (form === undefined) return [];
    if (typeof cell === "string") return [{ note: cell }];
    if (cell.of) return [{ note: op + " of ", isOf: true }, ...callOf(views, cell.of)];
    const isOwn = typeof cell === "number", elements = isOwn ? [] : cell.slice(), end = elements[elements.length - 1],
        count = end < 0 ? -elements.pop() : 0;
    if (!isOwn && elements.length === 0) return [];
    let at = 0;
    const next = () => (isOwn ? cell : elements[at++]);
    const operand = token => (token[0] === "{" ? constantTerm(Number(token.slice(1, -1)), more)
        : factorOf(views[token === "@*" ? next() : Number(token.slice(1))], next(), more));
    const read = text => text.split(/(@\d+|@\*|\{[^}]*\})/).filter(Boolean)
        .flatMap(token => (/^[@{]/.test(token) ? operand(token) : signsIn(token)));
    const [, before, each = "", behind = ""] = /^([^[]*)(?:\[(.*)\](.*))?$/.exec(form), list = read(before);
    const rest = (behind.match(/@/g) || []).length, terms = [];
    while (each && (isOwn ? terms.length === 0 : at < elements.length - rest)) terms.push(read(each));
    list.push(...terms.flatMap((term, n) => (n ? [" + ", ...term] : term)));
    if (count) list.push({ note: ` + … (${count} terms)` });
    return [...list, ...read(behind), ...(after ? [{ note: after }] : [])];
}

/* "1.03, −0.56, … and 0.21, 0.12, …": numbers of each table, as pairs of an item and an element. */
function callOf(views, pairs) {
    return range(pairs.length / 2, n => {
        const [item, i] = pairs.slice(2 * n, 2 * n + 2), isOther = n && pairs[2 * n - 2] !== item;
        return [n === 0 ? "" : isOther ? " and " : ", ", i < 0 ? "…" : factorOf(views[item], i)];
    }).flat().filter(Boolean);
}
