/* data.js - the recorded computation: lessons, lines, tensors, and what connects them.
 *
 * The data holds every number: the value and the gradient of each tensor, and for each input x of each line of the
 * tape the Jacobian of the line's result y,
 *     J[j, i] = d y[j] / d x[i].
 * A backward is linear in dy, so
 *     dx[i] = sum over j of dy[j] J[j, i],
 * and the terms of this sum explain every gradient. The page contains no rule of any op: what it says about an op
 * follows from J. */
"use strict";

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
    for (const t of tensors) if (t.grad) t.check = !t.producer ? checkLeaf(t) : t.parts.length > 1 ? checkSum(t) : null;
    for (const { tensor, name } of lesson.short || []) tensors[tensor].symbol = name;
    for (const { tensor, of } of lesson.transposed || []) {
        tensors[tensor].twin = tensors[of];
        tensors[of].twin ??= tensors[tensor];
    }
    for (const { tensor, rows, columns } of lesson.labels || []) tensors[tensor].words = { rows, columns };
    lesson.heads = Math.max(1, ...tensors.filter(t => t.shape.length === 3).map(t => t.panels));
    lesson.name ??= String(lesson.number ?? 0) + (lesson.part || ""); /* in the address */
    lesson.open = new Set();  /* the names of the groups of lines that are unfolded */
    lesson.right = new Set(); /* the questions that were answered right */
    lesson.told = new Set(); /* those whose answer stands there */
    lesson.shown = new Set(); /* the hidden numbers that were guessed or revealed: a step and a key each */
    lesson.picks = new Set(); /* the numbers that the reader says are 0 */
    lesson.forms = [];        /* the questions as they stand in the page, so that an answer stays */
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
        const row = new Map(list), start = j - (j % columns),
            places = Array.from({ length: columns }, (_, c) => start + c);
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

/* The sum of all parts, compared with the gradient of a result that several lines read. */
function checkSum({ grad, parts, type }) {
    const errors = grad.map((wanted, i) => {
        const terms = parts.map(part => part.dx[i]);
        return Object.is(sum(terms), wanted) ? 0 : Math.abs(sum(terms) - wanted) / Math.max(1, size(terms));
    });
    const worst = Math.max(0, ...errors);
    return { worst, right: worst <= (type === "float32" ? 1e-5 : 1e-12) };
}

/* The index of element i, row-major. */
function indexOf(shape, i) {
    const index = [];
    for (const n of shape.slice().reverse()) {
        index.unshift(i % n);
        i = Math.floor(i / n);
    }
    return index;
}

/* The element of x that stands at element j of y, where x is broadcast to y. */
function broadcastIndex(x, y, j) {
    if (x.value.length === y.value.length) return j;
    const skip = y.shape.length - x.shape.length, index = indexOf(y.shape, j);
    return x.shape.reduce((i, n, d) => i * n + (n > 1 ? index[d + skip] : 0), 0);
}

/* What the op's call names input k: b in ag_linear(x, w, b). One mask may be several inputs. */
const noTensors =
    new Set(("s p n list scale dim dim0 dim1 dims keepdim shape axes start end size repeats diagonal dtype " +
    "num_heads dropout eps reduction ignore_index").split(" "));

function roleOf(line, k) {
    const names = line.call.replace(/^[^(]*\(|\)[^)]*$/g, "").split(", ").filter(name => !noTensors.has(name));
    return names[Math.min(k, names.length - 1)] || "x" + k;
}
