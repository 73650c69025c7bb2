/* rules.js - what kind of step a line is, found in its Jacobian alone.
 *
 *     product   y = a b: J by a is b, and J by b is a, at their places
 *     softmax   J = s y (1 - y) and -s y y', row by row (factorOf in data.js)
 *     move      each number of y is a number of x
 *     each      at most one number in each row of J: number by number
 *     spread    at most one in each column: one dy for several x
 *     general   nothing of these */
"use strict";

const isNear = (a, b) => Object.is(a, b) || Math.abs(a - b) <= 1e-5 * Math.max(1, Math.abs(b));

/* The places of a product y[p, n, m] = sum over k of a[p, n, k] b[p, k, m], or of b[p, m, k] if it is flipped; b may be
 * one matrix for all panels p. Null if the shapes do not fit. */
function productShape({ result: y }, a, b, isFlipped) {
    const { rows: N, columns: M, panels: P } = y, K = a.columns;
    const wanted = isFlipped ? [M, K] : [K, M];
    if (a.rows !== N || a.panels !== P || ![1, P].includes(b.panels)) return null;
    if (b.rows !== wanted[0] || b.columns !== wanted[1] || (K * M < 2 && N < 2)) return null;
    const panel = p => (b.panels === 1 ? 0 : p);
    return {
        N, M, K, P,
        A: (p, n, k) => (p * N + n) * K + k,
        B: (p, k, m) => (isFlipped ? (panel(p) * M + m) * K + k : (panel(p) * K + k) * M + m),
        Y: (p, n, m) => (p * N + n) * M + m,
        placeOf: j => ({ p: Math.floor(j / (N * M)), n: Math.floor(j / M) % N, m: j % M }),
    };
}

/* Does the Jacobian by one factor hold the other factor, and nothing else? */
function fitsProduct(part, { K, A, B, placeOf }, a, b, isFirst) {
    return part.rows.every((row, j) => {
        const { p, n, m } = placeOf(j), J = new Map(row);
        for (let k = 0; k < K; k++) {
            const [i, x] = isFirst ? [A(p, n, k), b.value[B(p, k, m)]] : [B(p, k, m), a.value[A(p, n, k)]];
            if (!isNear(J.get(i) || 0, x)) return false;
            J.delete(i);
        }
        return [...J.values()].every(x => x === 0);
    });
}

/* Do the products sum to the result? A third input, a bias, may be added. */
function sumsToResult({ result: y, inputs }, { K, A, B, placeOf }, a, b) {
    return inputs.filter(Boolean).length > 2 || y.value.every((x, j) => {
        const { p, n, m } = placeOf(j);
        let total = 0;
        for (let k = 0; k < K; k++) total += a.value[A(p, n, k)] * b.value[B(p, k, m)];
        return isNear(total, x);
    });
}

/* The line as a product of two of its inputs; null if it is none. A factor without a gradient has no Jacobian: then the
 * other's decides. */
function productOf(line) {
    const tensors = line.inputs.map((t, k) => t && { t, k }).filter(Boolean);
    for (const { t: a, k: ka } of tensors) for (const { t: b, k: kb } of tensors) for (const isFlipped of [false,
        true]) {
        const shape = kb > ka && productShape(line, a, b, isFlipped);
        if (!shape) continue;
        const parts = line.parts.filter(part => part.k === ka || part.k === kb);
        const fits = parts.length && parts.every(part => fitsProduct(part, shape, a, b, part.k === ka));
        if (fits && sumsToResult(line, shape, a, b)) return { a, b, ka, kb, isFlipped, ...shape };
    }
    return null;
}

/* How a part of a gradient is shown. */
function kindOf(part, unit) {
    const { product } = unit, isMost1 = lists => lists.every(list => list.length <= 1);
    if (unit.moves && !part.copies) return "move";
    if (part.factor) return "softmax";
    if (product && (part.k === product.ka || part.k === product.kb)) return "product";
    if (isMost1(part.rows) && (part.copies || part.tensor.value.length === part.rows.length)) return "each";
    return isMost1(part.columns) ? "spread" : "general";
}

/* The number that all of J is, or null if it has several. */
function constantOf({ rows }) {
    const all = rows.flatMap(row => row.map(([, J]) => J));
    return all.length && rows.every(row => row.length) && all.every(J => isNear(J, all[0])) ? all[0] : null;
}
