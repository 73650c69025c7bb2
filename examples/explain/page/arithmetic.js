/* arithmetic.js - the line of terms is right as it is printed: whoever works it out with the printed numbers gets the printed
 * result. Where numbers that are rounded as in their tables do not give it, all of them get one more decimal, 0.5 × 1.224 =
 * 0.612, and another one, until they do. */
"use strict";

const MOST_DECIMALS = 4; /* more than in the tables; NaN, infinity and sums of large numbers need no end */

/* The value of printed arithmetic, 0.508 × (6.42 − 4.01) + exp(−2.3); NaN if it is none. */
function evaluateLine(text) {
    const tokens = text.replace(/ /g, "").match(/\d+(\.\d+)?|exp|max|[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|./g) || [];
    let at = 0;
    const is = token => tokens[at] === token && ++at > 0;
    const power = () => Number([...tokens[at++]].map(c => "-0123456789"["⁻⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c)]).join(""));
    function number() {
        if (is("−")) return -number();
        if (is("exp")) return Math.exp(number());
        if (is("max")) return Math.max(...[is("(") && sums(), is(",") && sums(), is(")") && -Infinity]);
        const x = is("(") ? [sums(), is(")")][0] : /^\d/.test(tokens[at] || "") ? Number(tokens[at++]) : NaN;
        return /^[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]/.test(tokens[at] || "") ? x ** power() : x;
    }
    function products() {
        let x = number();
        for (;;) {
            if (is("×") || is("·")) x *= number();
            else if (is("/")) x /= number();
            else return x;
        }
    }
    function sums() {
        let x = products();
        for (;;) {
            if (is("+")) x += products();
            else if (is("−")) x -= products();
            else return x;
        }
    }
    const x = sums();
    return at === tokens.length ? x : NaN;
}

const isRounded = ({ x, text }) => Math.abs(evaluateLine(text) - x) > 1e-9 * Math.abs(x);

/* These terms with as many decimals as it takes to give x, as it is printed. A sum that is cut short stays as it is. */
function withDecimals(terms, x, format) {
    const isLine = terms.some(term => typeof term === "string" && /[×+−/²³]|exp|max/.test(term)) && !terms.some(term => term.note);
    for (let more = 0; isLine && more <= MOST_DECIMALS; more++) {
        const longer = terms.map(term => (more && term.format && isRounded(term)
            ? { ...term, text: written(term.x, { ...term.format, d: term.format.d + more }) } : term));
        const value = evaluateLine(longer.map(term => (typeof term === "string" ? term : `(${term.text})`)).join(""));
        if (value !== value || written(value, format) === written(x, format)) return value === value ? longer : terms;
    }
    return terms;
}
