/* pictures.js - the formula of a step, as tables. A picture is
 *
 *     items     what stands in a row: {table: view} and {op: sign, note}
 *     rule      the same as a line of type
 *     main      the view that the step computes
 *     terms(i)  what number i of main is made of: text, {note: words}, factors {key, x, format, text}, and constants without a key
 *     moves     [from, to], keys of cells, where numbers only slide
 *     mean, meanOf(i), meanTerms(r)   the weighted means of softmax, which one belongs to number i, and what it is made of
 *     rowOf(i)  the row of number i, where each row is made from the same rows of the others alone
 *
 * All follows from the Jacobian; an op's own formula is used where it has only letters of inputs, numbers and signs. */
"use strict";

const MOST_TERMS = 12; /* of a sum: more would fill the page */

const sign = (op, note) => ({ op, note });
const factor = (view, i) => ({ key: view.key(i), x: view.numbers[i], format: view.format,
    text: written(view.numbers[i], view.format) });
const constantTerm = x => ({ x, text: constant(x), format: { d: (constant(x).split(".")[1] || "").length, e: 0 } });
const times = (a, b) => [a, " × ", b];

/* A sum of groups of terms. The rest of a long sum is only counted. */
function sumOf(groups) {
    const shown = groups.length > MOST_TERMS + 2 ? groups.slice(0, MOST_TERMS) : groups;
    const list = shown.flatMap((group, n) => (n ? [" + ", ...group] : group));
    return shown.length < groups.length ? [...list, { note: ` + … (${groups.length} terms)` }] : list;
}

const range = (n, each) => Array.from({ length: n }, (_, k) => each(k));

function pictureOf(step) {
    if (step.kind === "forward") return forwardPicture(step.unit);
    if (step.kind === "start") return startPicture(step.tensor);
    return step.kind === "add" ? addPicture(step) : backwardPicture(step.unit, step.part);
}

function startPicture(t) {
    const isOne = t.grad.length === 1 && t.grad[0] === 1, main = gradView(t,
        { isMain: true, note: isOne ? "" : "it was given" });
    return { items: [{ table: main }], main,
        rule: isOne ? [nameEl(main.name), " = 1"] : [nameEl(main.name), " was given"],
        terms: () => [] };
}

/* ---- forward ------------------------------------------------------------------------------------------------------ */

function forwardPicture(unit) {
    const main = valueView(unit.result, { isMain: true, note: unit.result.shape.length ? "this step makes it" : "" });
    if (unit.moves) return movedPicture(unit, main);
    if (unit.group) return groupPicture(unit, main);
    return unit.product ? productPicture(unit, main) : formulaPicture(unit, main) || opPicture(unit, main);
}

function movedPicture(unit, main) {
    const views = unit.inputs.map(t => t && valueView(t)), from = [...new Set(unit.inputs)].filter(Boolean)
        .map(t => views[unit.inputs.indexOf(t)]);
    const viewAt = ({ k }) => views[unit.group ? 0 : k];
    return { main, items: [...from.map(table => ({ table })), sign("→", "moves"), { table: main }],
        moves: unit.moves.map((m, j) => [viewAt(m).key(m.i), main.key(j)]),
        rule: [listed(from.map(view => nameEl(view.name))), " → ", nameEl(main.name)],
        terms: j => [factor(viewAt(unit.moves[j]), unit.moves[j].i), { note: ", moved" }] };
}

const MOST_INNER = 14; /* columns of the results inside a group: more would be too small to read */

/* Folded lines as their formulas, the last one first: loss = sum E², E² = E², E = Y − T. If that is too wide: the result,
 * and the tables that they began with. */
function groupPicture({ lines, inputs, group }, main) {
    const last = lines[lines.length - 1], count = `${lines.length} lines`;
    const columns = sum([...lines.map(line => line.result), ...inputs].map(t => t.columns * t.panels));
    const right = line => formulaItems(line, t => valueView(t)) || [sign(opName(line.op)),
        ...[...new Set(line.inputs)].filter(Boolean).map(t => ({ table: valueView(t) }))];
    const chain = lines.slice().reverse().flatMap(line =>
        [sign(line === last ? "=" : `, ${plain(symbolOf(line.result))} =`), ...right(line)]);
    return { main, terms: pictureOfLine(last, main).terms,
        rule: [nameEl(main.name), lines.length > MOST_NESTED
            ? [": ", group.name === nameOf(last.result) ? count : `${group.name}, ${count}`]
            : [" = ", nested(last, lines)]],
        items: [{ table: main }, ...(columns <= MOST_INNER ? chain
            : [sign("←", count), ...inputs.map(t => ({ table: valueView(t) }))])] };
}

const MOST_NESTED = 4; /* lines of a group in one formula */

/* A line as a formula of what its group began with: sum((Y − T)²). */
function nested(line, lines) {
    const inner = t => lines.find(each => each.result === t), name = t => (inner(t) ? nested(inner(t), lines)
        : nameEl(symbolOf(t)));
    const items = formulaItems(line, t => ({ t })), isAlone = items && items.length === 1;
    if (!items || items.some(item => item.isCaret)) return [el("span", { class: "fn" }, opName(line.op)), "(",
        listed(line.inputs.filter(Boolean).map(name)), ")"];
    return items.map(({ table, op }) => (!table ? op === "×" ? " " : /^[−+/]$/.test(op) ? ` ${op} ` : op
        : inner(table.t) && !isAlone ? ["(", name(table.t), ")"] : name(table.t)));
}

const opName = op => op.replace(/_/g, " ");
const pictureOfLine = (line, main) => (line.product ? productPicture
    : (u, m) => formulaPicture(u, m) || opPicture(u, m))(line, main);

function productPicture(unit, main) {
    const { product: { a: ta, b: tb, ka, kb, isFlipped, K, A, B, placeOf }, inputs } = unit;
    const a = valueView(ta), b = valueView(tb, { isFlipped }), bias = inputs.find((t, k) => t && k !== ka && k !== kb);
    const c = bias && valueView(bias);
    return { main, items: [{ table: main }, sign("="), { table: a }, sign("·", "row · column"), { table: b },
        ...(c ? [sign("+"), { table: c }] : [])],
    rule: [nameEl(main.name), " = ", nameEl(a.name), " ", nameEl(b.name), c && [" + ", nameEl(c.name)]],
    terms: j => {
        const { p, n, m } = placeOf(j);
        const products = range(K, k => times(factor(a, A(p, n, k)), factor(b, B(p, k, m))));
        return [...sumOf(products), ...(c ? [" + ", factor(c, broadcastIndex(c.t, main.t, j))] : [])];
    } };
}

/* The formula of the data as items, if it has only inputs, numbers and signs: "a - b", "max(x, 0)". */
function formulaItems(unit, viewFor) {
    const text = unit.formula.split(";")[0], roles = new Map(), items = [];
    unit.inputs.forEach((t, k) => t && roles.set(roleOf(unit, k), viewFor(t)));
    if (!text || /max x|exp/.test(text)) return null;
    for (const token of text.match(/[A-Za-z]+|\S/g)) {
        const last = items[items.length - 1], isSymbol = token in unit && /^[sp]$/.test(token);
        if (roles.has(token)) {
            if (last && (last.table || last.isNumber)) items.push(sign("×", last.table && "number by number"));
            items.push({ table: roles.get(token) });
        } else if (isSymbol) items.push({ op: constant(Number(unit[token])), isNumber: true, x: Number(unit[token]) });
        else if (/^[A-Za-z]{2,}$/.test(token) && token !== "max") return null;
        else if (token === "^") items.push({ isCaret: true });
        else if (last && last.isCaret) items.splice(-1, 1, sign(superscript(token)));
        else items.push(sign(token === "-" ? "−" : token));
    }
    return items;
}

function formulaPicture(unit, main) {
    const views = new Map(), viewFor = t => views.get(t) || views.set(t, valueView(t)).get(t),
        items = formulaItems(unit, viewFor);
    if (!items) return null;
    const inRule = item => (item.table ? nameEl(item.table.name) : item.op === "×" ? " "
        : /^[−+/]$/.test(item.op) ? ` ${item.op} ` : item.op === "," ? ", " : item.isNumber ? item.op : item.op);
    const inTerms = (item, j) => (item.table ? factor(item.table, broadcastIndex(item.table.t, main.t, j))
        : item.isNumber ? constantTerm(item.x)
        : /^[−+×/]$/.test(item.op) ? ` ${item.op} ` : item.op === "," ? ", " : item.op);
    const says = items.map(item => (item.table ? item.table.name : item.op)).join(""), [{ table: x }] = items;
    const isItself = says === plain(main.name); /* U² = U² */
    return { main, items: [{ table: main }, sign("="), ...items], rule: [nameEl(main.name), " = ", isItself
        ? [nameEl(x.name), " × ", nameEl(x.name), ", number by number"] : items.map(inRule)],
        terms: j => items.map(item => inTerms(item, j)) };
}

/* Is the result the sum of derivative times input? So it is for sums and means. */
const isLinear = ({ result, parts, inputs }) => parts.length === inputs.filter(Boolean).length && parts.length > 0 &&
    result.value.every((y, j) => isNear(y, sum(parts.flatMap(part =>
        part.rows[j].map(([i, J]) => J * part.tensor.value[i])))));

function opPicture(unit, main) {
    const tensors = [...new Set(unit.inputs.filter(Boolean))], isAlone = tensors.length < 2;
    const isShort = t => t.value.every(x => fix(x, decimalsOf(t.value, t.type)).length <= 3);
    const views = tensors.map(t => valueView(t, { isSmall: !isAlone && !t.grad && isShort(t) })),
        weights = unit.parts.find(part => part.factor), name = weights && isAlone ? "softmax" : opName(unit.op),
        scale = weights ? scaleOf(weights) : "";
    const viewFor = t => views[tensors.indexOf(t)], isSum = isLinear(unit), from = j => unit.parts.flatMap(part =>
        part.rows[j].map(([i, J]) => ({ view: viewFor(part.tensor), i, J })));
    const isFirst = (list, { view, i }, n) => list.findIndex(each => each.view === view && each.i === i) === n;
    return { main, items: [{ table: main }, sign("="), sign(name), ...scaleSigns(scale, weights),
        ...views.map(table => ({ table }))],
        rule: [nameEl(main.name), " = ", el("span", { class: "fn" }, name), "(", scale && scale + " ",
            listed(views.map(view => nameEl(view.name))), ")"],
        rowOf: rowsOf(unit, views.concat(main)),
        terms: j => {
            const list = from(j);
            if (!list.length) return tensors.length ? [{ note: unmoved(unit, j) }] : [];
            if (isSum) return sumOf(list.map(({ view, i, J }) =>
                (J === 1 ? [factor(view, i)] : [constantTerm(J), " × ", factor(view, i)])));
            if (weights && isWeight(weights, j)) return weightTerms(weights, viewFor(weights.tensor), j);
            return [{ note: name + " of ", isOf: true }, ...someOf(list.filter((each, n) => isFirst(list, each, n)))];
        } };
}

/* "1.03, −0.56, … and 0.21, 0.12, …": as many numbers of each table. */
function someOf(list) {
    const views = [...new Set(list.map(({ view }) => view))], most = Math.floor(MOST_TERMS / views.length);
    const some = view => list.filter(each => each.view === view).map(({ i }) => factor(view, i));
    return views.map(some).flatMap((all, n) => [n ? " and " : "", ...listed(all.slice(0, most)), all.length > most ? ", …" : ""]);
}

/* The number that softmax multiplies its scores by; "" if it is 1. */
const scaleOf = ({ factor: s }) => (Math.abs(s - 1) > 1e-6 ? constant(s) : "");

/* "0.5774 ×", with 1 / √3 under it. */
function scaleSigns(scale, part) {
    const square = scale && Math.round(1 / part.factor ** 2), isRoot = square > 1 && isNear(part.factor ** 2 * square, 1);
    return scale ? [sign(scale, isRoot ? `1 / √${square}` : ""), sign("×")] : [];
}

const MOST_POWERS = 6; /* in the sum under a weight */

/* Is the weight exp(s x) over the sum of exp(s x), and is the sum short? */
function isWeight({ factor: s, tensor, rows, line }, j) {
    const powers = rows[j].map(([i]) => Math.exp(s * tensor.value[i]));
    return powers.length <= MOST_POWERS && rows[j].some(([i]) => i === j) &&
        isNear(Math.exp(s * tensor.value[j]) / sum(powers), line.result.value[j]);
}

/* exp(a) / (exp(a) + exp(b)) */
function weightTerms(part, x, j) {
    const scale = scaleOf(part) && [constantTerm(part.factor), " × "], power = i => ["exp(", ...scale, factor(x, i), ")"];
    return [...power(j), " / (", ...sumOf(part.rows[j].map(([i]) => i).sort((a, b) => a - b).map(power)), ")"];
}

/* Why no input changes a number of the result; of a line that gets no gradient nothing is known but its op. */
function unmoved({ op, parts, result, inputs }, j) {
    if (!parts.length) return `${opName(op)} of ${[...new Set(inputs.filter(Boolean).map(t => plain(symbolOf(t))))].join(", ")}`;
    const part = parts.find(p => p.dx.length === result.value.length), reason = part && part.reasons.get(j);
    return reason === "weight is 1" ? "the other weights of its row are 0, so it stays 1" : "no input changes it";
}

/* If each row is made from the same row of the tables alone: element -> row. */
function rowsOf(unit, views) {
    const { rows, columns, panels } = unit.result, isSame = view => view.t.rows === rows && view.t.panels === panels;
    const isRowwise = unit.parts.length > 0 && unit.parts.every(part => part.rowwise) && rows > 1;
    return isRowwise && views.filter(view => view.t.rows > 1).every(isSame)
        ? i => Math.floor(i / columns) % rows : null;
}

/* ---- backward ----------------------------------------------------------------------------------------------------- */

function backwardPicture(unit, part) {
    const { tensor: x } = part, several = x.parts.length;
    const main = partView(part, { isMain: true,
        note: several > 1 ? `one of ${several} parts` : x.producer ? "this step finds it" : "here it ends" });
    const dy = gradView(unit.result, { note: "arrives" });
    const picture = { move: movedBack, product: productBack, softmax: softmaxBack, each: eachBack, spread: spreadBack,
        general: generalBack, odd: oddBack }[part.kind](unit, part, main, dy);
    return { main, part, ...picture, rule: [nameEl(main.name),
        picture.moves || part.kind === "general" ? " ← " : " = ", picture.rule] };
}

function movedBack(unit, part, main, dy) {
    return { items: [{ table: main }, sign("←", "moves back"), { table: dy }], rule: nameEl(dy.name),
        moves: part.rows.flatMap((row, j) => row.map(([i]) => [dy.key(j), main.key(i)])),
        terms: i => (part.columns[i].length ? [...sumOf(part.columns[i].map(([j]) => [factor(dy, j)])),
            { note: ", moved back" }] : []) };
}

/* da = dy b', and db = a' dy. A factor stands as it has to be read: transposed, unless it was used transposed. */
function productBack(unit, part, main, dy) {
    const { a, b, ka, isFlipped, N, M, K, P, A, B, Y } = unit.product;
    if (part.k === ka) {
        const other = valueView(b, { isFlipped: !isFlipped, note: "as it was" });
        return { items: [{ table: main }, sign("="), { table: dy }, sign("·", "row · column"), { table: other }],
            rule: [nameEl(dy.name), " ", nameEl(other.name)],
            terms: i => {
                const p = Math.floor(i / (N * K)), n = Math.floor(i / K) % N, k = i % K;
                return sumOf(range(M, m => times(factor(dy, Y(p, n, m)), factor(other, B(p, k, m)))));
            } };
    }
    const places = new Map(); /* element of b -> its panels, its k and m */
    for (let p = 0; p < P; p++) for (let k = 0; k < K; k++) for (let m = 0; m < M; m++) {
        const i = B(p, k, m);
        places.set(i, { k, m, panels: [...(places.get(i) || { panels: [] }).panels, p] });
    }
    const other = valueView(a, { isFlipped: !isFlipped, note: "as it was" });
    const d = isFlipped ? gradView(unit.result, { isFlipped: true, note: "arrives" }) : dy,
        order = isFlipped ? [d, other] : [other, d];
    return { items: [{ table: main }, sign("="), { table: order[0] }, sign("·", "row · column"), { table: order[1] }],
        rule: order.flatMap((view, n) => [n ? " " : "", nameEl(view.name)]),
        terms: i => {
            const { k, m, panels } = places.get(i);
            const pair = (p, n) => [factor(other, A(p, n, k)), factor(d, Y(p, n, m))];
            return sumOf(panels.flatMap(p => range(N, n => times(...(isFlipped ? pair(p, n).reverse() : pair(p, n))))));
        } };
}

/* dx = s y (dy - mean of the row), the mean weighted by y. */
function softmaxBack({ result: y }, part, main, dy) {
    const { tensor: x } = part, C = x.columns, weights = valueView(y, { note: "weights" });
    const means = range(y.value.length / C, r => sum(range(C, c => y.value[r * C + c] * y.grad[r * C + c])));
    const mean = { ...viewOf(x, "m", { numbers: means, note: "", plainName: true }), name: "weighted mean", columns: 1,
        columnWords: null, at: (p, r) => p * x.rows + r, format: dy.format, top: dy.top, isMean: true };
    const scale = scaleOf(part), rowOf = i => Math.floor(i / C);
    return { mean, meanOf: rowOf, rowOf: x.rows > 1 ? i => rowOf(i) % x.rows : null,
        items: [{ table: main }, sign("="), ...scaleSigns(scale, part), { table: weights },
            sign("×", "number by number"), sign("("), { table: dy }, sign("−"), { table: mean }, sign(")")],
        rule: [scale && scale + " ", nameEl(weights.name), " × (", nameEl(dy.name), " − weighted mean)"],
        terms: i => [...(scale && [constantTerm(part.factor), " × "]), factor(weights, i), " × (", factor(dy, i), " − ",
            factor(mean, rowOf(i)), ")"]
            .filter(Boolean),
        meanTerms: r => sumOf(range(C, c => times(factor(weights, r * C + c), factor(dy, r * C + c)))) };
}

/* The derivatives of a step, one for each number of t, as {table, signs, times(i)}: a tensor of its lines if they are that
 * tensor's numbers, or a multiple of them, "2 × E"; else a table of their own. */
function derivativesOf(unit, part, t, numbers, top) {
    const tensors = [...new Set(unit.lines.flatMap(line => [...line.inputs, line.result]))];
    for (const x of tensors.filter(each => each && each.value.length === numbers.length && !isWhole(each.type))) {
        const n = x.value.findIndex(value => value !== 0), c = n < 0 ? 0 : numbers[n] / x.value[n];
        if (!c || !isNear(c, Number(constant(c).replace("−", "-"))) ||
            !numbers.every((J, i) => isNear(J, c * x.value[i]))) continue;
        const table = valueView(x), before = c === 1 ? "" : constant(c);
        return { table, signs: before ? [sign(before), sign("×")] : [], name: [before && before + " ", nameEl(table.name)],
            times: i => (before ? [constantTerm(c), " × ", factor(table, i)] : [factor(table, i)]) };
    }
    const table = viewOf(t, "j", { name: "derivative", plainName: true, numbers, ...top,
        note: ["of ", nameEl(symbolOf(unit.result)), " by ", nameEl(symbolOf(part.tensor))],
        reason: i => { /* the data says which of them are dropped */
            const at = t === part.tensor ? i : part.rows[i]?.[0]?.[0] ?? i, reason = part.reasons.get(at);
            return reason ? reasonWords[reason] : "";
        } });
    return { table, signs: [], name: "derivative", times: i => [factor(table, i)] };
}

/* dx = dy times the derivative in its place. A constant derivative is a number; of copies the products are added. */
function eachBack(unit, part, main, dy) {
    const c = constantOf(part), isMinus = c === -1, J = derivativesOf(unit, part, unit.result,
        part.rows.map(row => (row.length ? row[0][1] : 0)), {});
    const number = c === null || c === 1 ? "" : isMinus ? "−" : constant(c);
    const product = j => (c === 1 ? [factor(dy, j)] : c !== null
        ? [isMinus ? "−1" : constantTerm(c), " × ", factor(dy, j)] : [factor(dy, j), " × ", ...J.times(j)]);
    const items = c === null ? [{ table: dy }, sign("×", "number by number"), ...J.signs, { table: J.table }]
        : [...(number ? [sign(number), ...(isMinus ? [] : [sign("×")])] : []), { table: dy }];
    return { items: [{ table: main }, sign("="), ...(part.copies ? [sign("sum of", "all copies")] : []), ...items],
        rule: [part.copies && "sum of ", number && (isMinus ? "−" : number + " "), nameEl(dy.name),
            c === null && [" × ", J.name]],
        terms: i => sumOf(part.columns[i].map(([j]) => product(j))) };
}

/* One dy for several x: each gets it, times its derivative. */
function spreadBack(unit, part, main, dy) {
    const c = constantOf(part), numbers = part.columns.map(column => (column.length ? column[0][1] : 0));
    const J = derivativesOf(unit, part, part.tensor, numbers, { top: state.lesson.topValue });
    const by = c === null ? [sign("×"), ...J.signs, { table: J.table }] : [sign(`× ${constant(c)}`, "for each")];
    return { items: [{ table: main }, sign("="), { table: dy }, ...by],
        rule: [nameEl(dy.name), c === null ? [" × ", J.name] : ", for each number"],
        terms: i => part.columns[i].flatMap(([j, value]) =>
            [factor(dy, j), " × ", ...(c === null ? J.times(i) : [constantTerm(value)])]) };
}

function generalBack(unit, part, main, dy) {
    return { items: [{ table: main }, sign("←", opName(unit.op)), { table: dy }],
        rule: unit.gradient || nameEl(dy.name),
        terms: i => sumOf(termsOf({ line: unit, columns: part.columns },
            i).map(({ j, J }) => [factor(dy, j), " × ", { x: J, text: bare(J), format: decimalsOf([J]) }])) };
}

const MOST_PARTS = 4; /* of a gradient side by side: of more, those that came before stand as their sum */

/* The parts of a gradient that have arrived, added in the order and the type of backward. */
function addPicture({ tensor, done }) {
    const all = tensor.parts, isComplete = done.length === all.length,
        round = tensor.type === "float32" ? Math.fround : x => x;
    const totalOf = parts => tensor.value.map((_, i) => parts.reduce((a, part) => round(a + part.dx[i]), 0));
    const format = decimalsOf([...tensor.grad, ...all.flatMap(part => part.dx)], ""), before = done.slice(0, -1),
        isMany = done.length > MOST_PARTS;
    const reasonOf = parts => i => [...new Set(parts.map(part => reasonOfPart(part, i)))].join("; ");
    const partViews = (isMany ? done.slice(-1) : done).map(part =>
        partView(part, { name: symbolOf(part.line.result), isFrom: true, format, of: "p",
        key: i => `p${part.line.line}.${part.k}.${i}`, note: part === done[done.length - 1] ? "added now" : "" }));
    const soFar = isMany && viewOf(tensor, "q", { name: "before", plainName: true, numbers: totalOf(before), format,
        note: `${before.length} parts`,
        top: state.lesson.topGrad, reason: reasonOf(before) });
    const views = soFar ? [soFar, ...partViews] : partViews,
        names = view => (view.isFrom ? ["from ", nameEl(view.name)] : "what came before");
    const main = gradView(tensor, { isMain: true, numbers: isComplete ? tensor.grad : totalOf(done), format,
        shows: isComplete ? "grad " + tensor.number : `sum ${tensor.number} ${done.length}`,
        note: isComplete ? "complete" : `${done.length} of ${all.length} so far`,
            reason: isComplete ? i => reasonOfGrad(tensor, i) : reasonOf(done) });
    return { main, items: [{ table: main }, sign("="),
        ...views.flatMap((table, n) => (n ? [sign("+"), { table }] : [{ table }]))],
        rule: [nameEl(main.name), isComplete ? " = " : " so far = ",
            views.map((view, n) => [n ? " + " : "", names(view)])],
        terms: i => sumOf(views.map(view => [factor(view, i)])) };
}
