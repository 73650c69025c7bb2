/* names.js - how the page writes names and numbers.
 *
 * A name of the tape, "S / sqrt(d)", "E^2", "K'", is set as mathematics. The numbers of a table share their decimals; an
 * exact zero is "0", so 0.00 is never one, and a small number has up to three decimals. */
"use strict";

/* ---- names ------------------------------------------------------------------------------------------------------- */

const opName = op => op.replace(/_/g, " ");

const plain = name => name.replace(/sqrt\((\w+)\)/g, "√$1").replace(/\^2/g, "²").replace(/'(?![A-Za-z])/g, "ᵀ");

/* The sign of a transpose as a raised T: bold fonts draw theirs as another letter. */
const raiseT = text => text.split(/(ᵀ)/).map(bit => (bit === "ᵀ" ? el("sup", {}, "T") : bit));

/* A name in italics, with subscripts: W_q. */
function nameEl(name, tag = "i") {
    const pieces = plain(name).split(/_([A-Za-z0-9](?![A-Za-z0-9]))/);
    return el(tag, { class: "n" }, pieces.map((piece, n) => (n % 2 ? el("sub", {}, piece) : raiseT(piece))));
}

/* Kᵀ, W_qᵀ and (A + B)ᵀ, where the language of rules has K', W_q' and (A + B)'. */
const transposes = text => (text || "").replace(/(\bd?[A-Z](?:_\w+)?|\b[a-z]|\bd[a-z]|\))'(?!\w)/g, "$1ᵀ");

/* What is said of a rule, also in bold. */
const ruleWords = text => raiseT(transposes(text));

/* What lessons write with the letters of a keyboard, set as formulas are: 2 × (−0.661 − 1), 10⁶, √d, −∞, “the”. A number does
 * not part from its sign at the end of a line. */
const typeset = text => transposes(text).replace(/-infinity\b/g, "−∞").replace(/sqrt\((\w+)\)/g, "√$1").replace(/\^2/g, "²")
    .replace(/([\d.]+)e([-+]?)0*(\d+)\b/g, (_, m, sign, power) => (m === "1" ? "" : m + "·") + "10" + superscript(sign.replace("+", "") + power))
    .replace(/-infinity\b/g, "−∞").replace(/(^|[\s(=])-(?=\d)/g, "$1−").replace(/ x (?=[(−\d]|\w+\(|$)/g, "\u00a0×\u00a0")
    .replace(/ - /g, "\u00a0−\u00a0").replace(/-$/, "−").replace(/ <- /g, " ← ").replace(/ -> /g, " → ").replace(/ = /g, " =\u00a0").replace(/(^|[\s(])"(?=\S)/g, "$1“")
    .replace(/"/g, "”").replace(/(\w)'/g, "$1’").replace(/×\u00a0(−[\d.]*\d)/g, "×\u00a0($1)");

/* The short name of a tensor whose name is a formula with blanks, as the rules write it; or the name itself. */
const shortened = name => (/ /.test(name) && state.lesson?.tape.tensors.find(t => t.title === name)?.symbol) || name;

/* Text with `names` between backquotes; a command is set as code. */
const prose = text => (text || "").split("`").map((piece, n) =>
    (n % 2 === 0 ? typeset(piece) : /^(build\/|--)/.test(piece) ? el("code", {}, piece) : nameEl(shortened(piece))));

/* Lines of algebra (algebra.h): the left side, the right side, and why the line follows. */
const drawAlgebra = lines => el("div", { class: "algebra" }, lines.flatMap(({ line, why }) => {
    const [, left, right] = /^(.*?=) (.*)$/.exec(line) || [line, line, ""], marks = { "<": piece => el("u", {}, prose(piece.slice(1, -1))),
        "[": piece => el("span", { class: "mean" }, prose(piece.slice(1, -1))) };
    return [el("span", { class: right ? "" : "all" }, prose(left)), right && el("span", { class: why ? "" : "wide" }, right.split(/(<.*?>|\[.*?\])/).map(piece => marks[piece[0]]?.(piece) ?? prose(piece))),
        why && el("span", { class: "why" }, prose(why))];
}));

const listed = list => list.flatMap((item, n) => [n ? ", " : "", item]);

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

const largestOf = numbers => Math.max(0, ...numbers.map(Math.abs).filter(Number.isFinite));
const isWhole = type => type === "int64" || type === "bool";

/* The format of a table, {d, e}: d decimals, after the numbers are divided by 10^e. Three digits for the largest number,
 * fewer if all numbers are short. */
function decimalsOf(numbers, type) {
    const some = isWhole(type) ? [] : numbers.map(Math.abs).filter(x => x > 0 && x < 1e5), most = Math.max(0, ...some);
    if (!most) return { d: 0, e: 0 };
    const power = Math.floor(Math.log10(most) + 1e-9), e = power < -2 ? power : 0;
    const isShort = n => some.every(x => Math.abs(x / 10 ** e - Number((x / 10 ** e).toFixed(n))) < 1e-9);
    let d = e ? 2 : Math.max(0, Math.min(3, 2 - power));
    while (d > 0 && isShort(d - 1)) d--;
    return { d, e };
}

const superscript = n => String(n).replace(/-/g, "⁻").replace(/\d/g, c => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]);

function fix(x, { d, e }) {
    if (x !== x) return "NaN";
    if (x === 0) return "0";
    const sign = x < 0 ? "−" : "", a = Math.abs(x);
    if (a === Infinity) return sign + "∞";
    if (a >= 1e5) {
        const power = Math.floor(Math.log10(a) + 1e-12), m = a / 10 ** power;
        return sign + (Math.abs(m - 1) < 1e-9 ? "" : m.toFixed(1) + "·") + "10" + superscript(power);
    }
    const text = (a / 10 ** e).toFixed(d), longer = (a / 10 ** e).toFixed(Math.max(d, 3));
    if (Number(text)) return sign + text;
    return Number(longer) ? sign + Number(longer) : text; /* not −0.000 */
}

/* A number alone: with the power of ten that a table would have above it. */
const written = (x, format) => fix(x, format) + (format.e && x ? "·10" + superscript(format.e) : "");

/* Of a constant: in full if it is short, else four digits. */
function formatOfConstant(x) {
    const most = Math.min(8, Math.max(0, 3 - Math.floor(Math.log10(Math.abs(x) || 1))));
    return { d: range(Math.max(most, 3) + 1, d => d).find(d => Number(x.toFixed(d)) === x) ?? most, e: 0 };
}

/* Three significant digits. */
const bare = x => (Number.isFinite(x) && x !== 0 ? written(x, decimalsOf([x])) : fix(x, { d: 0, e: 0 }));

const full = x => (Object.is(x, -0) ? "-0" : String(x));

/* The number that was typed in a field, {x}; or {refused}, what is said instead. A comma may stand for the point, and the long
 * minus for the short one. */
function typedNumber({ value }) {
    const text = value.trim().replace(",", ".").replace("\u2212", "-"), x = Number(text);
    if (!text) return { refused: "Enter a number first." };
    const isNumber = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) && Number.isFinite(x);
    return isNumber ? { x } : { refused: "That is no number." };
}

const percent = x => (100 * x).toFixed(1) + " %";

/* How strong a colour is, from 0 to 0.72: largest is the largest number of the table, top that of the lesson. A table of
 * small numbers is paler. */
function strengthOf(x, largest, top) {
    if (!x || x !== x) return 0;
    const most = Math.max(largest, 1e-300), paler = top ? Math.min(1, (most / top) ** 0.25) : 1;
    return (0.1 + 0.62 * Math.min(1, Math.abs(x) / most)) * paler;
}
