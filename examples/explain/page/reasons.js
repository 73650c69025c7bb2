/* reasons.js - why a number is 0. The data gives the reason of each column of a Jacobian that is 0. */
"use strict";

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
