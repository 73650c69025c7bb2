/* views.js - what a step shows of a tensor. A view is a table to be drawn:
 *
 *     t, numbers         the tensor, and a number for each of its elements
 *     name               above it, with a note; plainName: the name is a word
 *     at(p, r, c)        the element in panel p, row r, column c of the table, which may stand transposed
 *     key(i)             what element i is called in addresses and by links: "v12.8" is element 8 of the value of
 *                        tensor 12, "g12.8" of its gradient
 *     rowWords           the words of its rows, where rows are tokens; columnWords
 *     reason(i)          why number i is 0
 *     isMain             this is what the step computes
 *     shows              what its numbers are, for tests: "value 3", "grad 3", "dx line input" */
"use strict";

function viewOf(t, of, more = {}) {
    const { isFlipped = false } = more, words = t.words || {}, panel = t.rows * t.columns;
    const numbers = more.numbers || (of === "g" ? t.grad : t.value);
    return {
        t, of, numbers, name: of === "g" ? t.gradient : t.symbol, isFlipped, panels: t.panels, note: "",
        rows: isFlipped ? t.columns : t.rows, columns: isFlipped ? t.rows : t.columns,
        rowWords: isFlipped ? words.columns : words.rows, columnWords: isFlipped ? words.rows : words.columns,
        at: (p, r, c) => p * panel + (isFlipped ? c * t.columns + r : r * t.columns + c),
        key: i => of + t.number + "." + i,
        reason: () => "",
        format: decimalsOf(numbers, of === "v" ? t.type : ""),
        top: of === "g" ? state.lesson.topGrad : state.lesson.topValue,
        shows: more.numbers ? "" : (of === "g" ? "grad " : "value ") + t.number,
        ...more,
    };
}

const reasonIn = zeros => i => zeros.get(i) || "";
const valueView = (t, more) => viewOf(t, "v", { reason: reasonIn(t.zeros.v), ...more });
const gradView = (t, more) => viewOf(t, "g", { reason: reasonIn(t.zeros.g), ...more });
const numbersOf = part => ({ numbers: part.dx, shows: `dx ${part.line.line} ${part.k}`, reason: reasonIn(part.zeros) });
const partView = (part, more) => viewOf(part.tensor, "g", { ...numbersOf(part), ...more });

/* A table of a step, as the plan has it (plan_json.h): of a part of a gradient, of numbers of its own, or of a tensor. */
function viewOfItem({ of, tensor, name, note, format, part: [l, k] = [], sum: count, numbers, zeros, turned, word, small }) {
    const { lesson } = state, t = lesson.tape.tensors[tensor], line = lesson.tape.lines[l];
    const own = line ? numbersOf(line.parts.find(part => part.k === k))
        : numbers ? { numbers: numbers.map(Number), shows: count ? `sum ${tensor} ${count}` : "", reason: reasonIn(reasonsIn(lesson.plan, zeros)) }
            : { reason: reasonIn(t.zeros[of]) };
    return viewOf(t, of, { ...own, note: noteOf(note), isFlipped: !!turned, plainName: word, isSmall: small,
        top: /[vj]/.test(of) ? lesson.topValue : lesson.topGrad,
        ...(of === "p" && { isFrom: true, name: line.result.symbol, key: i => `p${line.line}.${k}.${i}` }),
        ...(of === "m" && { columns: 1, isMean: true, columnWords: null, at: (p, r) => p * t.rows + r }),
        ...(name && { name }), ...(format && { format: { d: format[0], e: format[1] } }) });
}

/* "g12.8" as its tensor and element; null if there is no such number. */
function readKey(key) {
    const [, of, number, index] = /^([gv])(\d+)\.(\d+)$/.exec(key || "") || [];
    const t = of && state.lesson.tape.tensors[number];
    return t && Number(index) < t.value.length && (of === "v" || t.grad) ? { of, t, i: Number(index) } : null;
}

/* "head 2", if the lesson has a word for the panels; else "[0, 1]". */
const panelName = (t, p) => (state.lesson.columns && t.shape.length === 3 ? `${state.lesson.columns} ${p + 1}`
    : "[" + indexOf(t.shape.slice(0, -2), p).join(", ") + "]");

/* Where element i of a view stands: [cat, the], or [1, 0]. */
function placeWords({ t, isFlipped, isMean, rowWords, columnWords, rows, columns }, i) {
    if (isMean) i *= t.columns; /* one for each row */
    const panel = t.rows * t.columns, own = [Math.floor((i % panel) / t.columns), i % t.columns];
    const [r, c] = isFlipped ? own.reverse() : own;
    const word = text => String(text).replace(/^\[(.*)\]$/, "$1"); /* [pad] stands in brackets already */
    const words = [t.panels > 1 && panelName(t, Math.floor(i / panel)),
        (rows > 1 || rowWords) && (rowWords ? word(rowWords[r]) : r),
        (columns > 1 || columnWords) && (columnWords ? word(columnWords[c]) : c)].filter(word => word || word === 0);
    return words.length ? `[${words.join(", ")}]` : "";
}

/* The element of t, and of its value or gradient, in words, for links: A[cat, the]. */
const numberName = (of, t, i) => [nameEl(of === "g" ? t.gradient : t.symbol), placeWords(viewOf(t, of), i)];
