/* page.js - steps forward and backward through a recorded computation.
 *
 * The data holds every number: the value and the gradient of each tensor, and for each input x of each line of the
 * tape the Jacobian of the line's result y,
 *     J[j, i] = d y[j] / d x[i].
 * A backward is linear in dy, so
 *     dx[i] = sum over j of dy[j] J[j, i],
 * and the terms of this sum explain every gradient. The page contains no rule of any op: what it says about an op
 * follows from J. */
"use strict";

/* ---- the data: lessons, lines, tensors, and what connects them --------------------------------------------------- */

const sum = list => list.reduce((a, b) => a + b, 0);
const size = list => sum(list.map(Math.abs)); /* the scale of a sum's rounding */

/* Replaces the numbers of tensors, in a lesson's JSON, by references, and finds what follows from the data. */
function connect(lesson) {
    const { lines, tensors } = lesson.tape;
    tensors.forEach((t, number) => Object.assign(t, {
        number,
        value: t.value.map(Number), /* the strings "NaN" and "Infinity", too */
        grad: t.grad && t.grad.map(Number),
        ...dimensions(t.shape),
        uses: [],  /* the lines that read it */
        parts: [], /* the parts of its gradient, in the order in which backward adds them */
        valueStep: -1, gradStep: Infinity, /* the steps that complete them */
    }));
    for (const line of lines) {
        line.result = tensors[line.out];
        line.result.producer = line;
        line.inputs = line.in.map(t => (t < 0 ? null : tensors[t]));
        for (const t of new Set(line.inputs)) if (t) t.uses.push(line);
        line.parts = [];
        line.backward.forEach((b, k) => b && line.parts.push(partOf(line, k, b)));
        line.moves = moveOf(line);
    }
    for (const line of lines.slice().reverse()) for (const part of line.parts) part.tensor.parts.push(part);
    for (const t of tensors) if (!t.producer && t.grad) t.check = checkLeaf(t);
    lesson.heads = Math.max(1, ...tensors.filter(t => t.shape.length === 3).map(t => t.panels));
    lesson.steps = stepsOf(lines, tensors);
    lesson.right = new Set(); /* the questions that were answered */
    lesson.name ??= String(lesson.number); /* in the address */
    return lesson;
}

/* The last two dimensions are rows and columns; the dimensions before them are panels. */
function dimensions(shape) {
    const [rows, columns] = [1, 1, ...shape].slice(-2);
    return { rows, columns, panels: shape.slice(0, -2).reduce((a, b) => a * b, 1) };
}

/* A part of the gradient of input k: what the line's backward adds to it. J is there by rows and by columns. In the
 * data a column is [j, J, j, J, ...], or the reason why all of it is 0. */
function partOf(line, k, { dx, worst, unchecked = 0, jacobian }) {
    const tensor = line.inputs[k], rows = line.result.value.map(() => []), reasons = new Map();
    const columns = jacobian.map((list, i) => {
        const column = [];
        if (typeof list === "string") reasons.set(i, list);
        else for (let n = 0; n < list.length; n += 2) column.push([list[n], Number(list[n + 1])]);
        for (const [j, J] of column) rows[j].push([i, J]);
        return column;
    });
    const part = { line, k, tensor, rows, columns, reasons, dx: dx.map(Number), worst: Number(worst), unchecked };
    part.copies = copiesOf(part);
    part.rowwise = isRowwise(part);
    part.rowsCancel = part.rowwise && doRowsCancel(part);
    part.factor = part.rowwise ? factorOf(part) : 0;
    return part;
}

/* The terms of dx[i], the largest first. */
function termsOf({ line, columns }, i) {
    const dy = line.result.grad;
    const terms = columns[i].map(([j, J]) => ({ j, dy: dy[j], J, product: dy[j] * J }));
    return terms.sort((a, b) => Math.abs(b.product) - Math.abs(a.product) || a.j - b.j);
}

/* A line without arithmetic (reshape, permute, slice, expand, cat): each element of the result is an element of an
 * input. Returns {k, i}, input and element, for each element of the result; null for other lines. */
function moveOf({ parts, inputs, result }) {
    const from = result.value.map(() => []);
    for (const { k, rows } of parts) rows.forEach((row, j) => row.forEach(([i, J]) => from[j].push({ k, i, J })));
    const isCopy = ([first, second], j) =>
        first && !second && first.J === 1 && Object.is(inputs[first.k].value[first.i], result.value[j]);
    return parts.length && from.every(isCopy) ? from.map(([only]) => only) : null;
}

/* If the input was broadcast: for each element j of the result, the element of the input that is repeated there; else
 * null. The shapes must fit, from the end, and J must agree. */
function copiesOf({ line: { result }, tensor, rows }) {
    const skip = result.shape.length - tensor.shape.length;
    if (skip < 0 || tensor.value.length === result.value.length) return null;
    if (!tensor.shape.every((n, d) => n === 1 || n === result.shape[skip + d])) return null;
    const copies = rows.map((_, j) => {
        const index = indexOf(result.shape, j).slice(skip);
        return tensor.shape.reduce((i, n, d) => i * n + (n > 1 ? index[d] : 0), 0);
    });
    return rows.every((row, j) => row.every(([i]) => i === copies[j])) ? copies : null;
}

/* Does each row of the result depend only on the same row of the input, and on several of its elements? */
function isRowwise({ line: { result }, tensor, rows }) {
    const rowOf = i => Math.floor(i / tensor.columns), entries = rows.flatMap((row, j) => row.map(([i]) => [i, j]));
    return String(tensor.shape) === String(result.shape) && entries.some(([i, j]) => i !== j) &&
        entries.every(([i, j]) => rowOf(i) === rowOf(j));
}

/* Is the sum of each row of dx 0, but for rounding (as in softmax)? */
function doRowsCancel({ dx, tensor: { columns, type } }) {
    const row = i => dx.slice(i - (i % columns), i - (i % columns) + columns);
    return dx.every((_, i) => Math.abs(sum(row(i))) <= size(row(i)) * (type === "float32" ? 1e-6 : 1e-14));
}

/* Rows of weights that sum to 1 have a Jacobian that y itself gives, J[j, i] = s y[i] ([i = j] - y[j]). Returns s if
 * all of J agrees with it, else 0. */
function factorOf({ line: { result: { value: y, type } }, tensor: { columns }, rows }) {
    const given = (j, i) => y[i] * ((i === j) - y[j]), most = type === "float32" ? 1e-5 : 1e-12;
    const entries = rows.flatMap((row, j) => row.map(([i, J]) => ({ j, i, J })));
    const largest = entries.reduce((a, b) => (Math.abs(b.J) > Math.abs(a.J) ? b : a));
    const s = largest.J / given(largest.j, largest.i);
    const isOne = rows.every((list, j) => {
        const row = new Map(list), start = j - (j % columns), places = Array.from({ length: columns }, (_, c) => start + c);
        return places.every(i => Math.abs((row.get(i) || 0) - s * given(j, i)) <= Math.abs(s) * most);
    });
    return Number.isFinite(s) && isOne ? s : 0;
}

/* The sum of all terms of all parts, compared with the gradient of a leaf. float32 was rounded on the way. */
function checkLeaf({ grad, parts, type }) {
    const errors = grad.map((wanted, i) => {
        const products = parts.flatMap(part => termsOf(part, i)).map(term => term.product);
        const scale = type === "float32" ? size(products) || 1 : Math.max(1, size(products));
        return Object.is(sum(products), wanted) ? 0 : Math.abs(sum(products) - wanted) / scale;
    });
    const worst = Math.max(0, ...errors);
    return { worst, right: worst <= (type === "float32" ? 1e-5 : 1e-12) }; /* NaN is not */
}

/* Forward: a step for each line. Backward: a step for the result where it begins; then, from the last line to the
 * first, a step that computes each dx, and one that adds it where a tensor has several parts. */
function stepsOf(lines, tensors) {
    const steps = [];
    for (const line of lines) line.result.valueStep = steps.push({ kind: "forward", line }) - 1;
    const starts = tensors.filter(t => t.producer && t.grad && !t.parts.length);
    for (const tensor of starts) tensor.gradStep = steps.push({ kind: "start", tensor }) - 1;
    for (const line of lines.slice().reverse()) {
        if (!line.parts.length) continue;
        for (const part of line.parts) part.step = part.tensor.gradStep = steps.length;
        steps.push({ kind: "backward", line });
        for (const tensor of new Set(line.parts.map(part => part.tensor)))
            if (tensor.parts.length > 1) tensor.gradStep = steps.push({ kind: "add", line, tensor }) - 1;
    }
    return steps;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

const reasonWords = {
    "masked": "masked: the mask forbids this key",
    "weight is 0": "the weight is exactly 0, so a small change of the score changes nothing",
    "weight is 1": "the weight is exactly 1: the other weights of its row are 0",
    "dropped": "dropped: dropout replaced it by 0",
    "flat": "flat: here the function neither rises nor falls",
    "times 0": "times 0: everything that it is multiplied by is 0",
    "unused": "unused: it does not influence the result",
};

/* Why dx[i] is 0. */
function reasonOfPart(part, i) {
    const reason = part.reasons.get(i), { columns } = part.tensor, start = i - (i % columns);
    const row = part.dx.slice(start, start + columns).map((_, c) => part.reasons.get(start + c));
    if (row.every(each => each === "masked")) return "masked: the mask allows this row no key";
    if (reason) return reasonWords[reason];
    const arrives = termsOf(part, i).some(term => term.dy !== 0);
    return arrives ? "the terms cancel" : "nothing arrives: each dy that could arrive is 0";
}

function reasonOfGrad({ parts }, i) {
    const reasons = parts.map(part => (part.dx[i] === 0 ? reasonOfPart(part, i) : "the parts cancel"));
    return [...new Set(reasons)].join("; ");
}

/* Why an element of a result is 0: the reason of its line, if the line keeps the shape; or it comes from a single
 * element, which is 0. */
function reasonOfValue({ producer, value }, j) {
    const parts = producer ? producer.parts : [], same = parts.find(p => p.dx.length === value.length);
    if (same && same.reasons.has(j)) return reasonOfPart(same, j);
    const [[tensor, i] = [], second] = parts.flatMap(p => p.rows[j].map(([i]) => [p.tensor, i]));
    return tensor && !second && tensor.value[i] === 0 ? reasonOfValue(tensor, i) : "";
}

/* Three significant digits, rounded as C's %.2e rounds them: a tie goes to the even digit. */
function format(x, type) {
    if (x !== x) return "NaN";
    if (x === 0 || type === "int64" || type === "bool") return String(x);
    const sign = x < 0 ? "-" : "+", positive = Math.abs(x), all = positive.toExponential(25);
    if (positive === Infinity) return sign + "inf";
    const rounded = /^\d\.\d[02468]50*e/.test(all) ? all.replace(/50*e/, "e") : positive.toExponential(2);
    const [digits, exponent] = rounded.split("e");
    if (exponent < -2 || exponent > 2) return sign + digits + "e" + Number(exponent);
    return sign + Number(rounded).toFixed(2 - exponent);
}

/* Without the plus, and in brackets where it follows a sign. */
const bare = x => format(x).replace("+", "");
const signed = x => (x < 0 ? `(${bare(x)})` : bare(x));

const full = x => (Object.is(x, -0) ? "-0" : String(x));
const shapeText = shape => "(" + shape.join(", ") + ")";

/* The tape's own way to name things: %13 scores. */
const nameOf = t => (t.producer ? `%${t.producer.line} ${t.name}`.trim() : t.name || t.type + " " + shapeText(t.shape));
const namesOf = line => line.inputs.filter(Boolean).map(nameOf);

function indexOf(shape, i) {
    const index = [];
    for (const n of shape.slice().reverse()) {
        index.unshift(i % n);
        i = Math.floor(i / n);
    }
    return index;
}

const at = ({ shape }, i) => (shape.length ? "[" + indexOf(shape, i).join(", ") + "]" : "");

/* In words: row 0, column 1. */
function placeOf(t, i) {
    const label = panelLabel(t, Math.floor(i / (t.rows * t.columns)));
    const row = t.rows > 1 && "row " + Math.floor(i / t.columns) % t.rows;
    return [label, row, "column " + i % t.columns].filter(Boolean).join(", ");
}

/* What the op's call names input k: b in ag_linear(x, w, b). One mask may be several inputs. */
const noTensors = new Set(("s p n list scale dim dim0 dim1 dims keepdim shape axes start end size repeats diagonal dtype " +
    "num_heads dropout eps reduction ignore_index").split(" "));

function roleOf(line, k) {
    const names = line.call.replace(/^[^(]*\(|\)[^)]*$/g, "").split(", ").filter(name => !noTensors.has(name));
    return names[Math.min(k, names.length - 1)] || "x" + k;
}

/* Does the lesson have a word, "head", for the leading dimension of t? */
const isNamed = t => state.lesson.columns && t.shape.length === 3 && t.panels > 1 && t.panels === state.lesson.heads;

function panelLabel(t, panel) {
    if (isNamed(t)) return `${state.lesson.columns} ${panel + 1}`;
    return t.panels > 1 ? at({ shape: t.shape.slice(0, -2) }, panel) : "";
}

/* A part of a gradient, by the result of its line: from V (%2). */
const fromOf = ({ line }) => (line.result.name ? `from ${line.result.name} (%${line.line})` : `from %${line.line}`);

/* "backward 3 of 9": what a step is called. */
function countOf(step) {
    const { steps } = state.lesson, forward = steps.filter(each => each.kind === "forward").length;
    return step < forward ? `forward ${step + 1} of ${forward}`
        : `backward ${step - forward + 1} of ${steps.length - forward}`;
}

function sentenceOf({ kind, line, tensor }) {
    if (kind === "start") return `Backward begins at ${nameOf(tensor)}` + (String(tensor.grad) === "1"
        ? ": its derivative by itself is 1, so its gradient is 1." : " with the gradient that it was given.");
    if (kind === "add") return `${nameOf(tensor)} is used ${tensor.parts.length} times, so its gradient is a sum: 0 + ` +
        tensor.parts.filter(part => part.step <= line.parts[0].step).map(fromOf).join(" + ") +
        (tensor.parts.every(part => part.step <= line.parts[0].step) ? ". The gradient is complete." : "; more is to come.");
    if (kind === "forward") return line.moves ? "Nothing is computed: each number moves to its place and keeps its colour."
        : `${nameOf(line.result)} is computed from ${namesOf(line).join(", ")}.`;
    return line.moves && line.parts.every(part => !part.copies)
        ? "Nothing is computed: each dy moves back to the place that its number came from."
        : `dy, the gradient of ${nameOf(line.result)}, is known. This step computes ` +
            line.parts.map(part => `d${roleOf(line, part.k)}, for ${nameOf(part.tensor)}`).join("; ") + ".";
}

/* ---- making elements --------------------------------------------------------------------------------------------- */

const byId = id => document.getElementById(id);
const isThere = x => x !== null && x !== undefined && x !== false && x !== "";

/* Text of the data becomes text nodes only, so names may hold any characters. */
function el(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (name.startsWith("--")) element.style.setProperty(name, value);
        else if (isThere(value)) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter(Boolean));
    return element;
}

function svg(tag, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    element.append(...children);
    return element;
}

const icon = id => svg("svg", { "aria-hidden": "true" }, svg("use", { href: "#" + id }));
const figure = (x, more) => el("td", { class: "figure", title: full(x), ...more }, format(x));
const dot = () => el("td", { class: "figure", title: "not computed yet" }, "\u00b7");

/* `code` between backquotes. */
const prose = text => (text || "").split("`").map((piece, n) => (n % 2 ? el("code", {}, piece) : piece));

/* A table whose rows after the first `most` are folded. */
function folded(rows, most, head, foot) {
    const table = (...children) => el("table", { class: "terms" }, ...children), rest = rows.slice(most);
    const heads = head.map(each => [].concat(each)).map(([text, title]) => el("th", { title }, text));
    const heading = el("thead", {}, el("tr", {}, heads));
    return [table(heading, el("tbody", {}, rows.slice(0, most)), foot),
        rest.length > 0 && el("details", {}, el("summary", {}, `${rest.length} smaller ones`), table(el("tbody", {}, rest)))];
}

function badge(right, text, worst, short) {
    const words = `${text}, largest error ${worst === 0 ? "0" : worst.toExponential(0)}`;
    return el("span", { class: right ? "badge" : "badge wrong", title: words, "aria-label": words },
        icon(right ? "right" : "wrong"), !short && words);
}

const isChecked = line => line.parts.every(part => part.worst < 1e-6); /* NaN is not */

function lineBadge(line, short) {
    const worst = Math.max(...line.parts.map(part => part.worst)), right = isChecked(line);
    const unchecked = line.parts.reduce((sum, part) => sum + part.unchecked, 0);
    const words = !right ? "differences disagree"
        : unchecked ? `differences cannot check ${unchecked} of the derivatives, and agree with the others`
        : "checked by differences";
    return line.parts.length && badge(right, words, worst, short);
}

const leafBadge = ({ check: { right, worst } }, short) =>
    badge(right, `end to end: the sum of all terms ${right ? "equals" : "is not"} the stored gradient`, worst, short);

/* ---- a tensor as grids ------------------------------------------------------------------------------------------- */

/* A view is what a step shows of a tensor:
 *   tensor, numbers   a number for each element; null: not computed yet
 *   shows             what the numbers are, for tests: "value 3", "grad 3", "dx line input"
 *   part              "v" or "g": what its cells are called in the address; "": they cannot be chosen
 *   role, note        words above it
 *   reason            i -> why number i is 0
 *   tint              for each element a colour: where it came from
 *   main, ghost       what the step computes; a smaller tensor, repeated
 *   sums              with the sum of each row, which is 0 */

/* Pixels: the border of a cell (Firefox adds it to the width), a cell, the row numbers, the sums of rows, between
 * panels, the edge of a view, between two views, a caption. */
const BORDER = 1, SMALL = 45, LARGE = 58, GUTTER = 18, SUM = 30, GAP = 14, EDGE = 11, BETWEEN = 32, CAPTION = 170;

const largestOf = numbers => Math.max(0, ...numbers.map(Math.abs).filter(Number.isFinite));

/* All views of a step get the same cells, so that their panels stand under each other. fit: how many panels there is
 * room for; most: how many columns; across: how many views stand side by side, all of an addition if there is room. */
function layoutOf(views, width) {
    const panels = Math.max(1, ...views.map(view => view.tensor.panels)), added = views.every(view => view.scale);
    const many = views.filter(view => panels === 1 || view.tensor.panels > 1);
    const columns = Math.max(1, ...many.map(view => view.tensor.columns));
    const beside = GUTTER + (views.some(view => view.sums) ? SUM : 0), between = added ? 14 : BETWEEN;
    const trackOf = (cell, view) => (view.tensor.panels > 1 ? panels * (columns * (cell + BORDER) + beside + GAP) - GAP
        : view.tensor.columns * (cell + BORDER) + beside);
    const need = cell => EDGE + Math.max(added ? 140 : CAPTION, ...views.map(view => trackOf(cell, view)));
    const room = (across, cell) => across * need(cell) + (across - 1) * between <= width;
    let across = added ? views.length : Math.min(3, views.length), cell = LARGE;
    while (across > 1 && !room(across, SMALL)) across--;
    if (across > 1) {
        while (!room(across, cell)) cell--;
        return { panels, fit: panels, cell, most: Infinity, across, track: need(cell), between,
            pitch: panels > 1 ? columns * (cell + BORDER) + beside : need(cell) - EDGE };
    }
    const inside = width - EDGE, space = n => Math.floor(((inside + GAP) / n - beside - GAP) / columns) - BORDER;
    let fit = panels;
    while (fit > 1 && space(fit) < SMALL) fit--;
    cell = Math.min(LARGE, Math.max(SMALL, space(fit)));
    const most = Math.max(1, Math.floor((inside - beside) / (cell + BORDER)));
    return { panels, fit, cell, most, across, track: width, between, pitch: Math.min(columns, most) * (cell + BORDER) + beside };
}

/* On paper all panels are drawn, `fit` in a row; on the screen `fit` of them. */
function drawView(view, { fit, most }, paper) {
    const { tensor, numbers, role, note, shows, ghost, main } = view, grids = [];
    const first = paper ? 0 : Math.max(0, Math.min(state.first, tensor.panels - fit));
    const end = paper ? tensor.panels : Math.min(tensor.panels, first + fit);
    view.largest = view.scale || largestOf(numbers || []);
    for (let panel = first; panel < end; panel++) grids.push(drawPanel(view, panel, most));
    return el("figure", { class: `view ${ghost ? "ghost" : ""} ${main ? "main" : ""}`, "data-shows": shows },
        el("figcaption", {}, el("b", {}, role), el("span", {}, nameOf(tensor)),
            el("small", {}, shapeText(tensor.shape)), note && el("em", {}, note)),
        el("div", { class: "grids" }, tensor.value.length ? grids : "no elements"));
}

/* Too many columns for the page are drawn in pieces, one under the other. */
function drawPanel(view, panel, most) {
    const { rows, columns } = view.tensor, label = panelLabel(view.tensor, panel);
    const isMatrix = view.tensor.shape.length > 1; /* its index names both */
    const piece = Math.ceil(columns / Math.ceil(columns / most));
    const words = `${view.role} ${nameOf(view.tensor)} ${label}`;
    const table = el("table", { role: "grid", "aria-label": words }, label && el("caption", {}, label));
    for (let from = 0; from < columns; from += piece) {
        const indices = Array.from({ length: Math.min(piece, columns - from) }, (_, c) => from + c);
        const sums = view.sums && from + piece >= columns;
        const head = [el("th"), ...indices.map(c => el("th", {}, String(c))), sums && el("th", {}, "sum")];
        if (columns > 1 || isMatrix) table.append(el("tr", { "aria-hidden": "true" }, head));
        for (let row = 0; row < rows; row++) table.append(el("tr", {},
            el("th", { "aria-hidden": "true" }, (rows > 1 || isMatrix) && String(row)),
            indices.map(c => drawCell(view, (panel * rows + row) * columns + c)),
            sums && el("td", { class: "sum", title: "the numbers of this row cancel" }, "0")));
    }
    return table;
}

function drawCell(view, i) {
    const { tensor, part, tint } = view, key = part && keyOf(part, tensor, i);
    const secret = key && key === state.secret, known = view.numbers && !secret, x = known ? view.numbers[i] : NaN;
    const reason = x === 0 ? view.reason(i) : "", text = known ? format(x, tensor.type) : secret ? "?" : "\u00b7";
    const words = `${view.role} ${nameOf(tensor)}${at(tensor, i)}: ` +
        (secret ? "predict it" : known ? full(x) + (reason && ", " + reason) : "not computed yet");
    return el("td", {
        role: "gridcell", tabindex: key && "-1", "data-cell": key, "data-i": i, title: words, "aria-label": words,
        class: `${known ? classOf(x, reason) : "unknown"} ${part === "v" && Controls.isTyped(tensor, i) ? "typed" : ""} ${tint && tint[i] >= 0 ? "tint t" + tint[i] % 6 : ""}`,
        "--strength": strengthOf(x, view.largest), "--shrink": Math.min(1, 7 / text.length),
    }, text);
}

const classOf = (x, reason = "") =>
    `${x > 0 ? "pos" : x < 0 ? "neg" : "zero"} ${(/^(masked|dropped)/.exec(reason) || [""])[0]}`;

/* From 0.1 to 0.55, so that the text stays legible. */
const strengthOf = (x, largest) => (x ? (0.1 + 0.45 * Math.min(1, Math.abs(x) / largest)).toFixed(2) : 0);

/* ---- the views of a step ----------------------------------------------------------------------------------------- */

const valueView = (t, role, more) => ({ tensor: t, shows: `value ${t.number}`, numbers: t.value, part: "v", role,
    reason: i => reasonOfValue(t, i), ...more });
const gradView = (t, role, more) => ({ tensor: t, shows: `grad ${t.number}`, numbers: t.grad, part: "g", role,
    reason: i => reasonOfGrad(t, i), ...more });
const dxView = (part, role, more) => ({ tensor: part.tensor, shows: `dx ${part.line.line} ${part.k}`, numbers: part.dx,
    part: "g", role, reason: i => reasonOfPart(part, i), sums: part.rowsCancel, ...more });

/* A broadcast tensor in the shape of the result. */
function ghostView({ line, k, tensor: { name, producer, type } }, shows, role, numbers, note) {
    const tensor = Object.assign(Object.create(line.result), { name, producer, type });
    return { tensor, shows: `${shows} ${line.line} ${k}`, numbers, part: "", role, note, reason: () => "", ghost: true };
}

function viewsOf({ kind, line, tensor }) {
    if (kind === "start") return [gradView(tensor, "dy", { main: true }), valueView(tensor, "y")];
    return kind === "forward" ? forwardViews(line) : kind === "add" ? addViews(line, tensor) : backwardViews(line);
}

function forwardViews(line) {
    const { moves, inputs } = line, tint = moves ? tintsOf(line) : { inputs: [] }, views = [];
    inputs.forEach((t, k) => {
        const part = line.parts.find(p => p.k === k), role = roleOf(line, k);
        if (t && inputs.indexOf(t) === k) views.push(valueView(t, role, { tint: tint.inputs[k] }));
        if (part && part.copies && !moves) views.push(ghostView(part, "copies", role + ", repeated",
            part.copies.map(i => t.value[i]), "broadcast: the same numbers in the shape of the result"));
    });
    const note = moves && (line.view ? "a view, 0 bytes: it shares the numbers of its input" : "a copy");
    return [...views, valueView(line.result, "y", { main: true, tint: tint.result, note })];
}

/* dy, what was computed from it, then what the line's rule reads, and last the rest. Where nothing is computed, dy and
 * dx are enough. */
function backwardViews(line) {
    const { result, moves, inputs, parts } = line, tint = moves ? tintsOf(line) : { inputs: [] };
    const computed = [gradView(result, "dy", { tint: tint.result })], read = [], rest = [];
    const place = role => (new RegExp("\\b" + role + "\\b").test(line.gradient) ? read : rest);
    inputs.forEach((t, k) => {
        const part = parts.find(p => p.k === k), role = roleOf(line, k), notes = [];
        if (part && part.copies && !moves) computed.push(ghostView(part, "products", `d${role}, before the sum`,
            part.rows.map((row, j) => sum(row.map(([, J]) => J * result.grad[j]))), "a number for each copy"));
        if (part && part.copies) notes.push("summed over the copies");
        if (part && t.parts.length > 1) notes.push(`one of ${t.parts.length} parts of the gradient`);
        if (part) computed.push(dxView(part, "d" + role, { main: true, tint: tint.inputs[k], note: notes.join("; ") }));
        if (t && !moves && inputs.indexOf(t) === k) place(role).push(valueView(t, role, { note: !part && "no gradient" }));
    });
    if (!moves) place("y").push(valueView(result, "y"));
    return [...computed, ...read, ...rest];
}

/* The parts of a gradient (later parts are dots), and their sum so far, in the order and the type of backward. */
function addViews(line, tensor) {
    const { parts, type } = tensor, now = line.parts[0].step, done = parts.filter(part => part.step <= now);
    const views = parts.map((part, n) => dxView(part, `${n ? "+" : "0 +"} ${fromOf(part)}`, { sums: false,
        note: part.line.op + (part.step === now ? ", added now" : part.step > now ? ", to come" : ""),
        ...(part.step > now && { numbers: null, part: "", shows: "to come" }) }));
    const scale = largestOf([tensor.grad, ...parts.map(part => part.dx)].flat());
    const scaled = list => list.map(view => ({ ...view, scale }));
    if (done.length === parts.length) return scaled([...views, gradView(tensor, "= the gradient", { main: true })]);
    const round = type === "float32" ? Math.fround : x => x;
    const numbers = tensor.value.map((_, i) => done.reduce((a, part) => round(a + part.dx[i]), 0));
    const reason = i => [...new Set(done.map(part => reasonOfPart(part, i)))].join("; ");
    return scaled([...views, gradView(tensor, "= so far", { main: true, part: "", reason, numbers,
        shows: `sum ${tensor.number} ${done.length}` })]);
}

/* The colours of a line that only moves elements. A chain of such lines (split heads: reshape, permute, reshape) keeps
 * its colours: they are the panels of the first tensor of the chain that has panels, or else rows. */
function tintsOf(line) {
    if (line.inputs.length > 1)
        return { inputs: line.inputs.map((t, k) => t && t.value.map(() => k)), result: line.moves.map(m => m.k), of: "input" };
    const moves = l => l && l.moves && l.inputs.length === 1, last = list => list[list.length - 1], chain = [line];
    while (moves(chain[0].inputs[0].producer)) chain.unshift(chain[0].inputs[0].producer);
    for (let uses; (uses = last(chain).result.uses).length === 1 && moves(uses[0]);) chain.push(uses[0]);
    const tensors = [chain[0].inputs[0], ...chain.map(l => l.result)], colours = [];
    const ranks = tensors.map(t => (t.panels > 1 ? (t.shape.length === 3 ? 2 : 1) : 0)), from = ranks.indexOf(Math.max(...ranks));
    const { panels, rows, columns, value } = tensors[from];
    colours[from] = value.map((_, i) => Math.floor(i / (panels > 1 ? rows * columns : columns)));
    for (let n = from; n < chain.length; n++) colours[n + 1] = chain[n].moves.map(m => colours[n][m.i]);
    for (let n = from - 1; n >= 0; n--) {
        colours[n] = [];
        chain[n].moves.forEach((m, j) => (colours[n][m.i] = colours[n + 1][j]));
    }
    const n = chain.indexOf(line);
    const of = panels === 1 ? "row" : isNamed(tensors[from]) ? state.lesson.columns : "panel";
    return { inputs: [colours[n]], result: colours[n + 1], of };
}

/* ---- the stage: one step ----------------------------------------------------------------------------------------- */

/* first: the first panel in view; cell: the key of the chosen number; secret: of the number that is to be predicted;
 * turnedTo: the cell whose panel was last brought into view; rule: is the part for programmers open? */
const state = { lesson: null, step: 0, first: 0, cell: null, secret: null, turnedTo: "", rule: false };

const stepNow = () => state.lesson.steps[state.step];
const cellOf = key => byId("stage").querySelector(`[data-cell="${key}"]`);

function drawStage() {
    const step = stepNow(), views = viewsOf(step), width = byId("stage").clientWidth - 1; /* half of it for a border */
    const layout = layoutOf(views, width);
    turnToCell(views, layout.fit);
    state.first = Math.max(0, Math.min(state.first, layout.panels - layout.fit));
    byId("stage").replaceChildren(drawHeading(step), drawPager(views, layout), drawViews(step, views, layout));
    drawLegend(step);
    mark();
}

const drawViews = (step, views, layout, paper) => el("div", { class: layout.across > 1 ? "views beside" : "views",
    "--pitch": layout.pitch + "px", "--fit": layout.fit, "--cell": layout.cell + "px", "--across": layout.across,
    "--track": layout.track + "px", "--between": layout.between + "px" },
    views.map(view => drawView(view, layout, paper)), leavesOf(step).map(t =>
        el("p", { class: "complete" }, `${nameOf(t)} is a leaf, and its gradient is complete: `, leafBadge(t),
            Controls.changedByRule(t))));

/* The legend names what is on the screen. */
function drawLegend({ line }) {
    const isThere = selector => byId("stage").querySelector(selector), tint = isThere(".tint");
    for (const item of byId("legend").children)
        item.hidden = !isThere(item.dataset.for) || (tint && /pos|neg/.test(item.dataset.for));
    if (tint) byId("legend").lastElementChild.textContent = `the same colour: from the same ${tintsOf(line).of}`;
}

/* The leaves whose gradient this step completes. */
const leavesOf = step => state.lesson.tape.tensors.filter(t => t.check && state.lesson.steps[t.gradStep] === step);

function drawHeading(step, paper) {
    const line = step.line || step.tensor.producer, forward = step.kind === "forward";
    const numbers = ["s", "p", "scale"].filter(name => name in line).map(name => [name, Number(line[name])])
        .map(([name, x]) => `${name} = ${full(x).length > 6 ? bare(x) : full(x)}`);
    const shapes = line.inputs.filter(Boolean).map(t => shapeText(t.shape)).join(", ") + " -> " + shapeText(line.result.shape);
    const rule = (name, text) => text && el("div", {}, el("dt", {}, name), el("dd", {}, text));
    const remember = event => paper || (state.rule = event.target.open), isLine = /forward|backward/.test(step.kind);
    return el("div", { class: "heading" },
        el("h2", {}, el("span", { class: forward ? "phase forward" : "phase" }, forward ? "forward" : "backward"),
            ` ${nameOf(line.result)} = ${line.op}(${namesOf(line).join(", ")})`),
        el("p", {}, sentenceOf(step)),
        isLine && el("p", { class: "rule" },
            el("b", {}, forward ? `y = ${line.formula}` : `gradient: ${line.gradient}`), " ",
            el("span", { class: "soft" }, forward ? "" : `of y = ${line.formula}`, numbers.map(text => "; " + text)), " ",
            lineBadge(line) || "no gradient: no input needs a gradient"),
        !forward && Controls.wrongRuleOf(line) && el("p", { class: "rule refused" }, "In use, and wrong: ",
            el("code", {}, Controls.wrongRuleOf(line))),
        isLine && !paper && el("details", { class: "rule", open: state.rule, ontoggle: remember },
            el("summary", {}, "for programmers"),
            el("dl", {}, forward && rule("gradient", line.gradient), rule("call", line.call), rule("shapes", shapes),
                rule("in general", line.shapes), rule("source", line.source))));
}

/* The buttons that turn to other panels, where not all fit. */
function drawPager(views, { fit, panels }) {
    const { first, lesson } = state, named = views.some(view => isNamed(view.tensor));
    const name = `${named ? lesson.columns : "panel"} ${first + 1}`;
    const button = (label, by, id, disabled) => el("button", { "aria-label": label, disabled, onclick: () => {
        state.first += by;
        drawStage();
        byId("pager").querySelector(by < 0 ? "button" : "button:last-child").focus();
    } }, icon(id));
    return fit >= panels ? "" : el("div", { id: "pager" }, button("the one before", -fit, "back", first === 0),
        fit > 1 ? `${name} to ${first + fit} of ${panels}` : `${name} of ${panels}`,
        button("the next one", fit, "next", first + fit >= panels));
}

/* Brings the panel of the chosen cell into view, once: then the reader may turn away from it. */
function turnToCell(views, fit) {
    const { part, tensor, index } = readKey(state.cell) || {}, now = state.cell + " " + state.step;
    if (!tensor || state.turnedTo === now || !views.some(view => view.tensor === tensor && view.part === part)) return;
    const panel = Math.floor(index / (tensor.rows * tensor.columns));
    if (panel < state.first || panel >= state.first + fit) state.first = panel;
    state.turnedTo = now;
}

/* Where a line only moves elements, they slide from their old places to their new ones. */
function slide() {
    const { kind, line } = stepNow(), forward = kind === "forward";
    if (!line || !line.moves || kind === "add" || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    line.moves.forEach(({ k, i }, j) => {
        const part = forward ? "v" : "g", x = cellOf(keyOf(part, line.inputs[k], i)), y = cellOf(keyOf(part, line.result, j));
        if (!x || !y) return;
        const [from, to] = forward ? [x, y] : [y, x], a = from.getBoundingClientRect(), b = to.getBoundingClientRect();
        const path = [{ transform: `translate(${a.x - b.x}px, ${a.y - b.y}px)` }, { transform: "none" }];
        to.animate(path, { duration: 700, easing: "ease" });
    });
}

/* ---- the chosen number ------------------------------------------------------------------------------------------- */

/* "g12.8": element 8 of the gradient of tensor 12; "v12.8": of its value. */
const keyOf = (part, t, i) => `${part}${t.number}.${i}`;

function readKey(key) {
    const [, part, number, index] = /^([gv])(\d+)\.(\d+)$/.exec(key || "") || [];
    const tensor = part && state.lesson.tape.tensors[number];
    if (!tensor || index >= tensor.value.length || (part === "g" && !tensor.grad)) return null;
    return { part, tensor, index: Number(index) };
}

/* The cells that the chosen number came from; for a value, the cells that it went into, too. */
function sourcesOf({ part, tensor, index }) {
    const into = tensor.parts.flatMap(p => p.columns[index].map(([j]) => keyOf(part, p.line.result, j)));
    const parts = tensor.producer && part === "v" ? tensor.producer.parts : [];
    const weights = part === "g" ? tensor.parts.filter(p => p.factor) : []; /* they come from y, too */
    into.push(...weights.flatMap(p => p.columns[index].map(([j]) => keyOf("v", p.line.result, j))));
    return [...into, ...parts.flatMap(p => p.rows[index].map(([i]) => keyOf("v", p.tensor, i)))];
}

/* Outlines the chosen cell and its sources. Tab reaches one cell of each tensor. */
function mark() {
    const cell = readKey(state.cell), sources = new Set(cell && state.cell !== state.secret ? sourcesOf(cell) : []);
    for (const view of byId("stage").querySelectorAll(".view")) {
        const cells = [...view.querySelectorAll("[data-cell]")];
        const chosen = cells.find(each => each.dataset.cell === state.cell);
        for (const each of cells) {
            each.classList.toggle("chosen", each === chosen);
            each.classList.toggle("source", sources.has(each.dataset.cell));
            each.setAttribute("aria-selected", each === chosen);
            each.tabIndex = each === (chosen || cells[0]) ? 0 : -1;
        }
    }
}

function choose(key) {
    state.cell = key;
    mark();
    drawWhy();
    writeAddress();
    showCell();
}

/* On a narrow page the card of the chosen number covers the lower half. */
function showCell() {
    const cell = cellOf(state.cell);
    if (cell) cell.scrollIntoView({ block: "nearest" });
}

/* A link to a number, at the step that shows it and its sources. */
function linkTo(key, text) {
    const { part, tensor: t } = readKey(key), isHere = cellOf(key) && state.step >= t.valueStep;
    const first = t.producer ? t.valueStep : Math.min(...t.uses.map(line => line.result.valueStep));
    const step = part === "g" ? t.gradStep : isHere ? state.step : first;
    return el("a", { href: address(step, key) }, text);
}

function drawWhy() {
    const why = byId("why"), { part, tensor: t, index: i } = readKey(state.cell) || {};
    if (why.contains(document.activeElement)) why.focus({ preventScroll: true }); /* its element will be removed */
    why.classList.toggle("empty", !t);
    if (t) why.replaceChildren(...explain(part, t, i).filter(Boolean));
    else why.replaceChildren(el("p", {}, "Choose any number, and you will read here where it came from."));
}

/* The part of a gradient that this step is about. */
const partNow = t => t.parts.find(part => part.step === (stepNow().line || { parts: [{}] }).parts[0]?.step);

/* Where number i of t came from: of its gradient, if part is "g". */
function explain(part, t, i) {
    const gradient = part === "g";
    const secret = state.cell === state.secret, known = !secret && state.step >= (gradient ? t.gradStep : t.valueStep);
    const x = (gradient ? t.grad : t.value)[i], other = (gradient ? "v" : "g") + state.cell.slice(1);
    const reason = known && x === 0 ? (gradient ? reasonOfGrad : reasonOfValue)(t, i) : "";
    const shown = gradient && !known && !secret && partNow(t), number = known ? x : shown ? shown.dx[i] : NaN;
    return [
        el("button", { class: "close", "aria-label": "Close", onclick: () => choose(null) }, icon("close")),
        el("h2", {}, `${gradient ? "gradient of " : ""}${nameOf(t)}${at(t, i)}`),
        el("p", { class: "number" }, el("output", {}, known || shown ? format(number, t.type) : secret ? "?" : "\u00b7"), " ",
            el("small", {}, known ? full(x) : shown ? `this part: ${full(number)}`
                : secret ? "" : "not computed yet at this step")),
        shown && el("p", {}, `This part comes ${fromOf(shown)}. The whole gradient is complete at ${countOf(t.gradStep)}.`),
        readKey(other) && el("button", { "data-toggle": true, onclick: () => choose(other) },
            `show the ${gradient ? "value" : "gradient"} (g)`),
        reason && el("p", { class: "reason" }, "0, because " + reason),
        gradient && known && Controls.rightNumber(t, i),
        secret ? el("p", {}, "Predict this number in the question: then its terms appear here.")
            : Controls.field(part, t, i),
        ...(secret ? [] : gradient ? whyGradient(t, i) : known ? whyValue(t, i) : []),
        !known && !secret && linkTo(state.cell, "go to the step that computes it")];
}

function whyGradient({ parts }, i) {
    if (!parts.length) return [el("p", {}, "Backward begins here: nothing was added up.")];
    const shown = parts.filter(part => part.step <= state.step).map(part => drawPart(part, i));
    const words = `This tensor is used ${parts.length} times: its gradient is the sum of ${parts.length} parts.`;
    return parts.length < 2 ? shown : [el("p", {}, words), drawBars(parts, i), ...shown];
}

function drawBars(parts, i) {
    const largest = largestOf(parts.map(part => part.dx[i])), share = x => Math.min(1, Math.abs(x) / largest) || 0;
    return el("table", { class: "bars" }, parts.map(({ line, step, dx }) => el("tr", {},
        el("th", {}, "from ", el("a", { href: address(step, state.cell), title: line.op }, nameOf(line.result))),
        step > state.step ? [dot(), el("td", {}, "to come")] : [figure(dx[i]),
            el("td", { class: "bar" }, el("i", { class: classOf(dx[i]), "--share": share(dx[i]) }))])));
}

/* The terms of one part, and their sum. */
function drawPart(part, i) {
    const { line, k, dx, tensor } = part, terms = termsOf(part, i), result = line.result, role = roleOf(line, k);
    const reason = dx[i] === 0 && tensor.parts.length > 1;
    const derivative = ["derivative", `dy/d${role}: column ${at(tensor, i)} of the Jacobian`];
    const rows = terms.map(({ j, dy, J, product }) => el("tr", { "data-term": j },
        el("td", {}, linkTo(keyOf("g", result, j), "dy" + at(result, j))),
        figure(dy), el("td", {}, "\u00d7"), figure(J), figure(product)));
    const foot = el("tfoot", {}, el("tr", {}, el("th", { colspan: 4 }, `sum of ${terms.length}`),
        figure(dx[i], { "data-sum": `${line.line} ${k}` })));
    return el("section", {},
        el("h3", {}, `d${role} of `, el("a", { href: address(part.step, state.cell) }, `%${line.line} ${line.op}`)),
        part.copies && el("p", {}, "The input was broadcast: the sum is over the copies of this number."),
        reason && el("p", { class: "reason" }, "0, because " + reasonOfPart(part, i)),
        terms.length ? folded(rows, 12, ["", "dy", "", derivative, "product"], foot) : el("p", {}, "There are no terms."),
        part.factor && terms.length > 0 && drawRule(part, i), part.rowwise && drawJacobian(part, i, "column"));
}

/* dx[i] once more, from y and dy of its row, by the Jacobian of weights that sum to 1. */
function drawRule({ line: { result }, tensor: { columns }, dx, factor }, i) {
    const { value: y, grad: dy, type } = result, row = Array.from({ length: columns }, (_, c) => i - (i % columns) + c);
    const mean = sum(row.map(j => y[j] * dy[j])), s = Math.abs(factor - 1) < 1e-6 ? "" : bare(factor) + " \u00d7 ";
    const c = i % columns, of = s && "s ", line = text => el("div", {}, text), Y = bare(y[i]);
    const words = "All of this row's Jacobian comes from y" + (s && `, times s = ${bare(factor)}`) +
        (Math.abs(sum(row.map(j => y[j])) - 1) < 1e-6 ? ": the numbers of y in this row are weights with the sum 1." : ".");
    return el("div", { class: "joined" }, el("p", {}, words),
        el("code", {},
            line(`derivative of y${c}: ${of}y${c} (1 - y${c}) = ${s}${Y} \u00d7 (1 - ${Y}) = ` +
                bare(factor * y[i] * (1 - y[i]))),
            line(`derivative of any other yj: -${of}y${c} yj`),
            line(`sum(y dy) = ${bare(mean)}, the row's weighted mean of dy`),
            line(`dx${c} = ${of}y${c} (dy${c} - sum(y dy)) = ${s}${Y} \u00d7 (${bare(dy[i])} - ${signed(mean)}) = ` +
                format(dx[i], type))));
}

/* The derivatives of one row of the result by the same row of the input. The table above shows a column of this
 * Jacobian for the gradient of x[i], and a row of this Jacobian for the value y[i]. */
function drawJacobian({ tensor, rows, dx, rowsCancel }, i, above) {
    const place = i % tensor.columns, start = i - place;
    const chosen = (n, side) => (n === place && side === above ? "this" : null);
    const zero = sum(dx.slice(start, start + tensor.columns));
    const block = rows.slice(start, start + tensor.columns).map(row => new Map(row));
    const largest = largestOf(block.flatMap(row => [...row.values()])), places = [...block.keys()];
    const cell = J => el("td", { class: classOf(J), title: full(J), "--strength": strengthOf(J, largest) }, format(J));
    return el("details", { class: "jacobian", open: true }, el("summary", {}, "the Jacobian of this row"),
        el("p", {}, "A row for each y, a column for each x. The derivatives above by x are " +
            `${above === "row" ? "row y" : "column x"}${place} of this Jacobian.`),
        el("table", {}, el("tr", {}, el("th"), places.map(c => el("th", { class: chosen(c, "column") }, "x" + c))),
            block.map((row, r) => el("tr", {}, el("th", { class: chosen(r, "row") }, "y" + r),
                places.map(c => cell(row.get(start + c) || 0))))),
        el("p", {}, `The numbers of this row of dx sum to ${rowsCancel ? 0 : format(zero)}`,
            rowsCancel && zero !== 0 && ` (${zero.toExponential(0)}, from rounding)`, "."));
}

function whyValue(t, j) {
    const line = t.producer, parts = line ? line.parts : [], rowwise = parts.find(p => p.rowwise);
    const from = parts.flatMap(p => p.rows[j].map(([i, J]) => ({ t: p.tensor, i, J })));
    const into = t.parts.flatMap(p => p.columns[j].map(([i, J]) => ({ t: p.line.result, i, J })));
    const origin = !line ? "This tensor is a leaf: it was given, not computed."
        : !parts.length && `This tensor is y = ${line.formula}, of ${namesOf(line).join(", ")}. Nothing that learns goes ` +
            `into %${line.line} ${line.op}, so the tensor needs no gradient, and its derivatives were not computed.`;
    const end = t.uses.length ? "This tensor was used, but no gradient comes back to it."
        : "Nothing was computed from this tensor.";
    return [
        origin ? el("p", {}, origin) : drawDerivatives(`came from, through %${line.line} ${line.op}`, from,
            "of this number by the number of the row: how fast this number grows with the number of the row"),
        rowwise && drawJacobian(rowwise, j, "row"),
        t.parts.length ? drawDerivatives("went into", into, "of the number of the row by this number") : el("p", {}, end)];
}

function drawDerivatives(title, list, words) {
    const rows = list.sort((a, b) => Math.abs(b.J) - Math.abs(a.J)).map(({ t, i, J }) => el("tr", {},
        el("td", {}, linkTo(keyOf("v", t, i), nameOf(t) + at(t, i))),
        t.valueStep > state.step ? [dot(), dot()] : [figure(t.value[i]), figure(J)]));
    return el("section", {}, el("h3", {}, title),
        rows.length ? folded(rows, 8, ["", "value", ["derivative", words]]) : el("p", {}, "Nothing: all derivatives are 0."));
}

/* ---- the tape, a list -------------------------------------------------------------------------------------------- */

function drawTape() {
    const { lines, tensors } = state.lesson.tape, { kind, line: here, tensor } = stepNow(), list = byId("tape");
    const item = (t, words, mark, step, current) => el("li", { class: current && "current" },
        el("a", { href: address(step, null), "aria-current": current && "step", tabindex: "-1",
            title: `${nameOf(t)}, ${words || "a leaf"}` },
            el("span", {}, nameOf(t)), el("small", {}, words), mark || el("i")));
    const stepOf = ({ parts, result }) => (kind !== "forward" && parts.length ? parts[0].step : result.valueStep);
    const usesOf = ({ parts }) => (parts.length > 1 ? ` \u00d7${parts.length}` : "");
    const items = lines.map(line => item(line.result, line.op + usesOf(line.result), lineBadge(line, true), stepOf(line),
        line === (here || tensor.producer)));
    const leaves = tensors.filter(t => t.check).map(t => item(t, t.parts.length > 1 && `${t.parts.length} uses`,
        leafBadge(t, true), t.gradStep, kind === "add" && tensor === t));
    const following = list.contains(document.activeElement);
    list.replaceChildren(el("h2", {}, "tape"), el("ol", {}, items), el("h2", {}, "leaves"), el("ol", {}, leaves));
    const a = list.getBoundingClientRect(), b = list.querySelector(".current").getBoundingClientRect();
    list.scrollLeft += b.x - a.x - (a.width - b.width) / 2; /* scrollIntoView would scroll the page, too */
    list.scrollTop += b.y - a.y - (a.height - b.height) / 2;
    const stop = list.querySelector("[aria-current]");
    stop.tabIndex = 0;
    if (following) stop.focus({ preventScroll: true });
}

/* Tab reaches one line of the tape; there up and down move. */
function moveInTape(link, key) {
    const links = [...byId("tape").querySelectorAll("a")];
    const next = links[links.indexOf(link) + { ArrowUp: -1, ArrowDown: 1 }[key]];
    if (!next) return;
    link.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
}

/* ---- the lesson: text, losses, questions ------------------------------------------------------------------------- */

function drawLesson(lesson) {
    const { number, title, idea, text = [], formula = [], source, questions = [], losses = [], command, back } = lesson;
    byId("idea").replaceChildren(...prose(idea), ...(back ? [" ", back] : []));
    byId("lesson").hidden = !text.length && !questions.length;
    byId("lesson").replaceChildren(...[
        el("summary", {}, number ? `Lesson ${number}: ${title}` : title), ...text.map(paragraph => el("p", {}, prose(paragraph))),
        formula.length && el("pre", {}, formula.join("\n")), losses.length && drawLosses(losses.map(Number)),
        questions.length && el("h2", {}, "Questions"), ...questions.map(drawQuestion),
        source && el("p", { class: "soft" }, "From " + source),
        command && el("p", { class: "soft" }, "Made by ", el("code", {}, command),
            Controls.isEdited() && ", and the numbers that you typed")].filter(Boolean));
    Controls.drawn(state.lesson);
}

/* 1, 2 or 5 times a power of ten, so that at most `count` of them are needed to reach x. */
function tickFor(x, count) {
    const power = 10 ** Math.floor(Math.log10(x / count)), times = [1, 2, 5, 10].find(n => n * power * count >= x);
    return times * power;
}

/* Numbers for an axis, 0 among them: from low <= 0 or a little less, to high or a little more. */
function ticksFor(low, high, count) {
    const tick = tickFor(high - low || 1, count), first = Math.floor(low / tick + 1e-9), last = Math.ceil(high / tick - 1e-9);
    return Array.from({ length: last - first + 1 }, (_, n) => Number(((first + n) * tick).toPrecision(12)));
}

/* The y axis of a chart from low <= 0 to high: numbers with their labels, and a loss as a share of the height. */
function linearScale(low, high, count) {
    const ticks = ticksFor(low, high, count), bottom = ticks[0], top = ticks[ticks.length - 1];
    const share = loss => (Math.max(bottom, Math.min(loss, top)) - bottom) / (top - bottom || 1);
    return { ticks: ticks.map(loss => [loss, String(loss)]), share };
}

/* Pixels around the plot of a chart. */
const AROUND = { left: 44, right: 12, top: 18, bottom: 38 };

/* A chart of losses, width by height pixels. steps: the numbers of the x axis, from 0; ticks: [loss, label] of the y
 * axis; share: a loss as a share of the height; curves: {name (right or wrong), points: [{step, loss}]}. A loss that is not finite has
 * no point. Also gives x and y, the place of a step and of a loss. */
function drawChart({ width, height, steps, ticks, share, curves, label, xLabel = "step" }) {
    const { left, right, top, bottom } = AROUND, end = steps[steps.length - 1];
    const x = step => left + (width - left - right) * step / end;
    const y = loss => height - bottom - (height - top - bottom) * share(loss);
    const text = (words, x, y, anchor) => svg("text", { x, y, "text-anchor": anchor }, words);
    const points = list => list.filter(({ loss }) => Number.isFinite(loss))
        .map(({ step, loss }) => `${x(step).toFixed(1)},${y(loss).toFixed(1)}`).join(" ");
    const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
        ...ticks.map(([loss]) => svg("path", { d: `M${left} ${y(loss)}H${width - right}` })),
        ...ticks.map(([loss, words]) => text(words, left - 6, y(loss) + 4, "end")),
        ...steps.map(n => text(String(n), x(n), height - bottom + 16, n === end ? "end" : "middle")),
        text("loss", left, 11, "start"), text(xLabel, width - right, height - 6, "end"),
        ...curves.map(({ name, points: list }) => svg("polyline", { class: name, points: points(list) })));
    return { chart, x, y };
}

/* The losses of trainings, {name, losses}. Of several, the first is the right rule's: a loss that is more than twice
 * its largest loss is cut off. */
function chartOfTrainings(trainings, label) {
    const largest = losses => Math.max(0, ...losses.filter(Number.isFinite)), first = trainings[0].losses;
    const highest = Math.min(2 * largest(first), Math.max(...trainings.map(({ losses }) => largest(losses))));
    const scale = linearScale(Math.min(0, ...first.filter(Number.isFinite)), highest, 4);
    const curves = trainings.map(({ name, losses }) => ({ name, points: losses.map((loss, n) => ({ step: n + 1, loss })) }));
    return drawChart({ width: 340, height: 180, label, curves, steps: ticksFor(0, first.length, 5), ...scale });
}

/* The losses of several trainings. */
function drawCurves(curves) {
    const end = ({ name, losses }) => `${name}: from ${full(losses[0])} to ${full(losses[losses.length - 1])}`;
    const { chart } = chartOfTrainings(curves, "the losses, " + curves.map(end).join("; "));
    const keys = curves.map(({ name }) => el("span", { class: name }, name + " rule"));
    return el("figure", { class: "losses" }, chart, el("figcaption", {}, keys));
}

/* A chart, and a slider that shows the losses of the chart. If the library is in the page, the slider "steps of SGD" of
 * the controls takes the place of this slider, and moves the tables, too. */
function drawLosses(losses) {
    const label = `the loss goes from ${losses[0]} to ${losses[losses.length - 1]}`;
    const { chart, x, y } = chartOfTrainings([{ name: "right", losses }], label), dot = svg("circle", { r: 4 });
    const words = el("figcaption"), live = Controls.isLive();
    const slider = !live && el("input", { type: "range", min: "0", max: String(losses.length - 1), value: "0",
        "aria-label": "step of training", oninput: () => show(Number(slider.value)) });
    const show = n => {
        dot.setAttribute("transform", Number.isFinite(losses[n]) ? `translate(${x(n + 1)} ${y(losses[n])})` : "scale(0)");
        words.textContent = `step ${n + 1} of ${losses.length}: loss ${full(losses[n])}. ` +
            (live ? "The slider above, \u201csteps of SGD\u201d, moves the tables, too."
                : `The tables stay at step ${Controls.stepOfTraining() + 1}.`);
    };
    chart.append(dot);
    show(live ? Controls.stepOfTraining() : 0);
    return el("figure", { class: "losses" }, chart, slider, words);
}

/* Each kind of question has a field, a check, a hint and what is revealed; some have a place to look at (show) or a
 * number to hide until it is predicted (secret). Nothing is stored. */
function drawQuestion(question, n) {
    const { field, check, hint, reveal, show, secret } = questionKinds[question.kind](question);
    const result = el("div", { class: "result", role: "status" });
    const button = (text, onclick, more) => el("button", { type: "button", onclick, ...more }, text);
    const give = button("reveal", () => {
        result.replaceChildren(...reveal().map(words => el("p", {}, words)));
        if (!secret || state.secret !== secret) return;
        state.secret = null;
        draw();
    }, { hidden: true });
    const grade = event => {
        event.preventDefault();
        const { right, words } = check(), id = right ? "right" : "wrong", grade = el("p", { class: id }, icon(id), words);
        if (right) state.lesson.right.add(n);
        drawEnd();
        if (right) give.click();
        else result.replaceChildren();
        result.prepend(grade);
        give.hidden = false;
    };
    return el("form", { class: "question", "data-kind": question.kind, onsubmit: grade },
        el("p", {}, el("b", {}, `${n + 1}. `), prose(question.ask)), field,
        el("div", { class: "buttons" }, el("button", { "data-check": true }, "check"),
            button("hint", () => {
                result.replaceChildren(el("p", {}, "Hint: ", hint()));
                give.hidden = false;
            }), give,
            show && button("show the place", () => {
                state.secret = secret || null;
                location.hash = show;
                readAddress();
            }, { "data-show": true })), result);
}

const isRight = right => ({ right, words: right ? "Right." : "Not yet." });
const isMissing = what => ({ right: false, words: what });
const numberField = label =>
    el("input", { type: "text", inputmode: "decimal", autocomplete: "off", "aria-label": label });

/* A comma may stand for the point, and the long minus for the short one. */
function readNumber({ value }) {
    const text = value.trim().replace(",", ".").replace("\u2212", "-");
    return text === "" ? NaN : Number(text);
}

/* The terms of dx[i]; while there is only one, those of its dy, too: at most four lines. */
function chainOf(part, i) {
    const chain = [{ part, i, terms: termsOf(part, i) }];
    for (let last = chain[0]; last.terms.length === 1 && chain.length < 4; chain.push(last)) {
        const { j } = last.terms[0], { parts } = last.part.line.result;
        if (parts.length !== 1) break;
        last = { part: parts[0], i: j, terms: termsOf(parts[0], j) };
    }
    return chain;
}

const questionKinds = {
    number({ tensor, part, index }) {
        const t = state.lesson.tape.tensors[tensor], gradient = part === "grad", answer = t[part][index];
        const key = keyOf(gradient ? "g" : "v", t, index), parts = gradient ? t.parts : [];
        const field = numberField("your prediction"), step = gradient ? t.gradStep : Math.max(0, t.valueStep);
        const ruleOf = ({ op, gradient }) => `${op} (gradient: ${gradient})`;
        const terms = parts.flatMap(p => termsOf(p, index).map(term => ({ ...term, y: p.line.result })));
        const [largest] = terms.sort((a, b) => Math.abs(b.product) - Math.abs(a.product));
        const product = ({ dy, J }) => `${bare(dy)} \u00d7 ${bare(J)}`;
        const rule = t.producer ? `y = ${t.producer.formula}` : "it was given";
        const why = gradient ? reasonOfGrad(t, index) || "backward begins here" : rule;
        return {
            field, secret: key, show: address(step, key),
            check() {
                const x = readNumber(field), close = y => Math.abs(x - y) <= Math.max(0.0005, 0.01 * Math.abs(y));
                if (field.value.trim() === "") return isMissing("Enter a number first.");
                if (x !== x) return isMissing("That is no number.");
                const known = [[-answer, "The size is right, the sign is not."],
                    [answer / 2, "Not yet: the answer is twice your number."],
                    [answer * 2, "Not yet: the answer is half of your number."]]
                    .find(([y]) => close(y) && Math.abs(y) > 0.001);
                return !close(answer) && known ? isMissing(known[1]) : isRight(close(answer));
            },
            hint: () => terms.length > 1 ? `of ${terms.length} terms the largest is dy${at(largest.y, largest.j)} times its ` +
                `derivative, ${product(largest)} = ${bare(largest.product)}.`
                : largest ? `it comes through ${chainOf(parts.find(p => termsOf(p, index).length), index)
                    .map(({ part }) => ruleOf(part.line)).join(", after ")}.` : why + ".",
            reveal: () => [`${gradient ? "The gradient of " : ""}${nameOf(t)}${at(t, index)} is ${full(answer)}.`,
                gradient ? "" : rule + ".", ...parts.flatMap(p => chainOf(p, index)
                    .map(each => (each.terms.length ? `${ruleOf(each.part.line)}: ` +
                        `${each.terms.map(product).join(" + ")} = ${bare(each.part.dx[each.i])}.`
                        : `0, because ${reasonOfPart(each.part, each.i)}.`)))].filter(Boolean),
        };
    },
    zeros({ tensor }) {
        const t = state.lesson.tape.tensors[tensor], panel = t.rows * t.columns, all = [...t.grad.keys()];
        const isZero = i => t.grad[i] === 0, isChosen = i => cells[i].getAttribute("aria-pressed") === "true";
        const press = ({ target }) => target.setAttribute("aria-pressed", target.getAttribute("aria-pressed") === "false");
        const cells = all.map(i => el("button", { type: "button", "aria-pressed": "false", "aria-label": at(t, i),
            title: at(t, i), onclick: press }));
        const heads = Array.from({ length: t.columns }, (_, c) => el("small", {}, String(c)));
        const numbered = (cell, i) => (i % t.columns ? [cell] : [el("small", {}, String(i / t.columns)), cell]);
        const grids = Array.from({ length: t.panels }, (_, p) => el("div", {}, el("small", {}, panelLabel(t, p)),
            el("div", { class: "pick", "--columns": t.columns }, el("small"), heads.map(head => head.cloneNode(true)),
                cells.slice(p * panel, (p + 1) * panel).flatMap(numbered))));
        return {
            field: el("div", { class: "picks" }, grids),
            check() {
                const missing = all.filter(i => isZero(i) && !isChosen(i)).length;
                const extra = all.filter(i => !isZero(i) && isChosen(i)).length;
                if (!all.some(isChosen) && missing) return isMissing("Choose cells first.");
                return missing || extra ? { words: `Not yet: ${missing} missing, ${extra} too many.` } : isRight(true);
            },
            hint() {
                const first = all.find(isZero);
                return first === undefined ? "perhaps none." : `one of them is ${placeOf(t, first)}: ${reasonOfGrad(t, first)}.`;
            },
            reveal() {
                cells.forEach((cell, i) => cell.classList.toggle("zero", isZero(i)));
                const zeros = all.filter(isZero), reasons = new Set(zeros.map(i => reasonOfGrad(t, i)));
                return [`${zeros.length} of ${all.length} are 0, outlined above.`, ...reasons];
            },
        };
    },
    count({ line: number, input, index }) {
        const { parts } = state.lesson.tape.lines.find(each => each.line === number);
        const { tensor, columns, line } = parts.find(p => p.k === input);
        const field = numberField("how many terms"), name = nameOf(line.result);
        return {
            field, show: address(line.result.valueStep, keyOf("v", tensor, index)),
            check: () => (field.value.trim() === "" ? isMissing("Enter a number first.")
                : isRight(readNumber(field) === columns[index].length)),
            hint: () => `count the elements of ${name} that change when ${nameOf(tensor)}${at(tensor, index)} changes.`,
            reveal: () => [`${columns[index].length} terms, one from each of ` +
                `${columns[index].map(([j]) => name + at(line.result, j)).join(", ")}.`],
        };
    },
    choice({ options, answer, why }) {
        const name = "choice" + Math.random(), other = options[answer === options.length - 1 ? 0 : options.length - 1];
        const inputs = options.map(() => el("input", { type: "radio", name }));
        return {
            field: el("div", {}, options.map((option, n) => el("label", {}, inputs[n], el("span", {}, prose(option))))),
            check: () => (inputs.some(input => input.checked) ? isRight(inputs[answer].checked)
                : isMissing("Choose one first.")),
            hint: () => ["it is not \u201c", ...prose(other.replace(/\.$/, "")), "\u201d."],
            reveal: () => [[...prose(options[answer]), /[.!?]$/.test(options[answer]) ? " " : ". ", ...prose(why)]],
        };
    },
};

/* ---- going from step to step ------------------------------------------------------------------------------------- */

const address = (step, cell) =>
    `#lesson=${state.lesson.name}&step=${step + 1}` + (cell ? `&cell=${cell}` : "") + Controls.suffix();

function writeAddress() {
    if (Controls.isLoading() && Controls.suffix()) return; /* what it asks for is not shown yet */
    try {
        history.replaceState(null, "", address(state.step, state.cell));
    } catch { /* a browser may forbid many changes in a short time; a later change then succeeds */ }
}

/* play.js draws the playground, in place of a lesson. */
const isPlaying = () => !byId("play").hidden;

/* Shows what the address says; the rest is as at the beginning. */
function readAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1)), before = state.lesson, wasPlaying = isPlaying();
    byId("play").hidden = !wanted.has("play");
    document.body.classList.toggle("playing", isPlaying());
    if (isPlaying() !== wasPlaying) scrollTo(0, 0);
    if (isPlaying()) {
        byId("lessons").value = "play";
        return;
    }
    const found = lessons.find(lesson => lesson.name === wanted.get("lesson"));
    const { lesson, sentence } = Controls.read(found || lessons[0], wanted);
    state.lesson = lesson;
    const isWrong = !found && wanted.get("lesson"), shown = lesson.number ? `lesson ${lesson.number}` : "a tape";
    byId("notice").replaceChildren(...(isWrong === RECORDED ? ["A recording is there only while the page stays open. ",
        el("a", { href: "#play" }, "Make another one in the playground.")]
        : [isWrong ? `There is no lesson ${isWrong} in this page: it shows ${shown}.` : sentence]));
    if (state.lesson !== before) {
        state.secret = null;
        drawLesson(state.lesson);
    }
    state.cell = !isWrong && readKey(wanted.get("cell")) ? wanted.get("cell") : null;
    state.step = -1; /* so that goTo draws, and turns to the cell */
    state.turnedTo = "";
    goTo(isWrong ? 0 : (Math.trunc(Number(wanted.get("step"))) || 1) - 1);
    if (before && !state.cell && innerWidth < 1100 && byId("stage").getBoundingClientRect().top < 0)
        byId("tape").scrollIntoView();
    if (state.lesson !== before) byId("lesson").open = innerWidth >= 1100 || state.step === 0;
    showCell();
}

function goTo(step) {
    const before = state.step, focus = document.activeElement, inStage = byId("stage").contains(focus);
    state.step = Math.max(0, Math.min(state.lesson.steps.length - 1, step));
    if (state.step === before) return;
    draw();
    byId("middle").scrollTop = 0;
    const again = inStage && (focus.matches("summary") ? byId("stage").querySelector("summary") : cellOf(focus.dataset.cell));
    if (inStage) (again || byId("stage")).focus({ preventScroll: true });
    if (before === 0 && innerWidth < 1100) byId("lesson").open = false; /* it would hide the numbers */
    drawEnd();
    slide();
}

/* The step of a lesson that is most like this step of another lesson. */
function stepLike({ steps }, { kind, line, tensor }, n, length) {
    const nameIn = step => (step.tensor || step.line.result).name;
    const like = steps.findIndex(step => step.kind === kind && nameIn(step) === nameIn({ line, tensor }));
    return steps.length === length || like < 0 ? Math.min(n, steps.length - 1) : like;
}

/* Shows the same lesson with other numbers, at the same step. */
function showLesson(lesson) {
    const cell = readKey(state.cell), { steps } = state.lesson;
    state.step = stepLike(lesson, stepNow(), state.step, steps.length);
    state.lesson = lesson;
    state.secret = null;
    const now = readKey(state.cell);
    if (!now || now.tensor.name !== cell.tensor.name) state.cell = null;
    drawLesson(lesson);
    draw();
    drawEnd();
}

function draw() {
    const { lesson: { steps }, step } = state, count = countOf(step);
    byId("count").textContent = count;
    byId("start").hidden = step > 0;
    byId("lessons").value = state.lesson.name;
    byId("announce").textContent = `${count}: ${sentenceOf(stepNow())}`;
    for (const button of byId("controls").querySelectorAll("button"))
        button.disabled = /first|back/.test(button.dataset.step) ? step === 0 : step === steps.length - 1;
    drawStage();
    drawWhy();
    drawTape();
    writeAddress();
}

/* After the last step: how many questions are answered, and what comes next. */
function drawEnd() {
    const { lesson: { questions = [], steps, right }, step } = state;
    const next = lessons.find(({ number }) => number === state.lesson.number + 1);
    const answered = questions.length > 0 && `${right.size} of ${questions.length} right. `;
    byId("end").hidden = step < steps.length - 1 || !state.lesson.number;
    byId("end").replaceChildren(...["The end of this lesson. ", answered, answered && right.size < questions.length &&
        `The ${right.size ? "others" : "questions"} stand below the lesson's text. `,
        next ? el("a", { href: `#lesson=${next.name}` },
            `Next: lesson ${next.number}, ${next.title}`) : el("a", { href: "#play" }, "Next: train a model in the playground"),
    ].filter(Boolean));
}

const stepTo = { first: () => 0, back: () => state.step - 1, next: () => state.step + 1, last: () => Infinity };
const stepKeys = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last" };

function onKey(event) {
    const { key, target } = event, cell = target.closest("[data-cell]");
    const toggle = byId("why").querySelector("[data-toggle]");
    if (event.ctrlKey || event.altKey || event.metaKey || target.closest("input, select, dialog")) return;
    if (isPlaying() && key !== "?") return;
    if (Controls.typeIn(key) || (cell && moveInGrid(cell, key))) event.preventDefault();
    else if (target.closest("#tape") && /^Arrow(Up|Down)$/.test(key)) moveInTape(target, key);
    else if (stepKeys[key] && !cell) goTo(stepTo[stepKeys[key]]());
    else if (key === "g" && toggle) toggle.click();
    else if (key === "?") byId("help").showModal();
    else if (key === "Escape") letGo();
    else return;
    event.preventDefault();
}

/* No number is chosen then, and the arrows step again. */
function letGo() {
    if (byId("stage").contains(document.activeElement)) byId("stage").focus({ preventScroll: true });
    choose(null);
}

/* The arrows move in the rows and columns of a tensor, and over the edge into the next panel. */
function moveInGrid(cell, key) {
    const { part, tensor, index } = readKey(cell.dataset.cell), { rows, columns } = tensor, panel = rows * columns;
    const column = index % columns, row = Math.floor(index / columns) % rows;
    const to = {
        ArrowLeft: column > 0 ? index - 1 : index - panel + columns - 1,
        ArrowRight: column < columns - 1 ? index + 1 : index + panel - columns + 1,
        ArrowUp: row > 0 ? index - columns : index, ArrowDown: row < rows - 1 ? index + columns : index,
        Home: index - column, End: index - column + columns - 1, Enter: index, " ": index,
    }[key];
    const next = cell.closest(".view").querySelector(`[data-cell="${keyOf(part, tensor, to)}"]`);
    if (next) choose(next.dataset.cell);
    if (next) next.focus();
    return to !== undefined;
}

/* A finger that moves sideways over the numbers turns to the next panel. */
function watchFinger(stage) {
    let start = null;
    stage.addEventListener("touchstart", event => (start = event.touches[0]), { passive: true });
    stage.addEventListener("touchend", event => {
        const end = event.changedTouches[0], x = end.clientX - start.clientX, y = end.clientY - start.clientY;
        const sideways = byId("pager") && Math.abs(x) > 50 && Math.abs(x) > 2 * Math.abs(y);
        if (sideways) byId("pager").querySelector(x < 0 ? "button:last-child" : "button").click();
    });
}

/* Paper: the lesson's text and questions, then its steps; none is cut in two if it fits on a page. */
function drawPaper() {
    if (isPlaying()) return;
    const { number, title, idea, text = [], formula = [], questions = [], steps } = state.lesson;
    const name = number ? `Lesson ${number}: ${title}` : title || "Your tape";
    const parts = steps.map((step, n) => {
        const views = viewsOf(step);
        const where = `${name}, step ${n + 1} of ${steps.length}, ${countOf(n)}`;
        return el("section", { class: "step" }, el("p", { class: "soft" }, where), drawHeading(step, true),
            drawViews(step, views, layoutOf(views, 770), true));
    });
    byId("paper").replaceChildren(el("section", {}, el("h1", {}, name), el("p", {}, prose(idea)),
        text.map(paragraph => el("p", {}, prose(paragraph))), el("pre", {}, formula.join("\n")),
        questions.map(({ ask }, n) => el("p", {}, el("b", {}, `Question ${n + 1}. `), prose(ask)))), ...parts);
}

function drawMenu() {
    const nameOfLesson = ({ number, title }) => (number ? `${number}. ${title}` : title || "your tape");
    byId("lessons").replaceChildren(...lessons.map(lesson => el("option", { value: lesson.name }, nameOfLesson(lesson))),
        el("option", { value: "play" }, "Playground: recall"));
}

/* Shows a lesson that was recorded while the page is open, in place of the one before it. back: a link beside its
 * idea. */
const RECORDED = "recall";

function showRecording(recording, back) {
    const lesson = connect({ ...recording, name: RECORDED, back });
    const former = lessons.findIndex(({ name }) => name === RECORDED);
    lessons.splice(former < 0 ? lessons.length : former, 1, lesson);
    drawMenu();
    location.hash = "lesson=" + RECORDED;
}

function begin() {
    drawMenu();
    byId("lessons").addEventListener("change", ({ target: { value } }) =>
        (location.hash = value === "play" ? "play" : `lesson=${value}`));
    for (const button of byId("controls").querySelectorAll("button"))
        button.addEventListener("click", () => goTo(stepTo[button.dataset.step]()));
    /* A click chooses a number and leaves the focus, so that the arrows go on stepping. */
    byId("stage").addEventListener("mousedown", event => {
        if (event.target.closest("[data-cell]")) event.preventDefault();
    });
    byId("stage").addEventListener("click", event => {
        const cell = event.target.closest("[data-cell]");
        if (cell) choose(cell.dataset.cell);
    });
    byId("help-open").addEventListener("click", () => byId("help").showModal());
    byId("print-all").addEventListener("click", () => print());
    addEventListener("keydown", onKey);
    addEventListener("hashchange", readAddress);
    addEventListener("beforeprint", drawPaper);
    addEventListener("afterprint", () => byId("paper").replaceChildren());
    addEventListener("resize", () => isPlaying() || drawStage());
    watchFinger(byId("stage"));
    readAddress();
    Controls.begin();
}

const lessons = JSON.parse(byId("data").textContent).lessons.map(connect);
begin();
