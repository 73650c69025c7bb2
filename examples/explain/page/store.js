/* store.js - what a reader has done in a lesson: a map from places to texts. It outlives a reload where a page may store it, and
 * else this visit alone. Two windows may show one lesson: a text is written into what the store has by then, and what another
 * window writes is shown here, too. The places:
 *
 *     bet              the option of the cover
 *     rule A           the rule of a step, "written dY @ V'", or "shown" where the reader gave up
 *     card dZ          a line of the card
 *     1k3x ? 0         question 0, "right 6.42", "wrong 3", or "told" where its answer was revealed
 *     1k3x b4.0 g7.1   a hidden number of a step that was guessed or shown
 *
 * Answers are for numbers: 1k3x stands for those of this state of the lesson. */
"use strict";

const kept = new Map(); /* the name of a lesson -> its places */
let isStoreRefused = false;
const storeOf = name => `tapehead ${name}`;

function storedIn(name) {
    let text = null;
    try {
        text = localStorage.getItem(storeOf(name));
    } catch {
        isStoreRefused = true; /* by a browser, of a page from the disk, or in a private window */
    }
    if (isStoreRefused) return kept.get(name) || new Map();
    try {
        return new Map(JSON.parse(text));
    } catch {
        return new Map(); /* nothing that this page wrote */
    }
}

function keptIn({ name }) {
    if (!kept.has(name)) kept.set(name, storedIn(name));
    return kept.get(name);
}

/* [place, text], ...: null takes a text away. */
function keep({ name }, entries) {
    const places = storedIn(name);
    for (const [place, text] of entries) {
        if (text === null) places.delete(place);
        else places.set(place, text);
    }
    kept.set(name, places);
    try {
        if (places.size) localStorage.setItem(storeOf(name), JSON.stringify([...places]));
        else localStorage.removeItem(storeOf(name));
    } catch {
        isStoreRefused = true;
    }
}

/* The places that begin so, without their beginning, and their texts. */
const keptAt = (lesson, first) => [...keptIn(lesson)].filter(([place]) => place.startsWith(first)).map(([place, text]) => [place.slice(first.length), text]);
const forget = (lesson, first) => keep(lesson, keptAt(lesson, first).map(([place]) => [first + place, null]));

/* The same questions about the same numbers, whatever the learning rate is. (A recorded number and the one that is computed here
 * may differ in the last digit.) */
function printOf({ questions = [], tape: { tensors } }) {
    const text = JSON.stringify([questions.map(({ ask }) => ask), tensors.map(({ value, grad = [] }) => [...value, ...grad].map(x => Number(x).toPrecision(6)))]);
    let print = 0;
    for (let i = 0; i < text.length; i++) print = (31 * print + text.charCodeAt(i)) | 0;
    return (print >>> 0).toString(36) + " ";
}

const placeOfAnswer = (lesson, n) => `${lesson.print}? ${n}`;

/* What was answered and shown, as the store has it: the numbers of the questions that were answered right, and of those whose
 * answer stands there; the places of shown numbers; the keys that the reader says are 0. A form whose answer is the same stays. */
function restore(lesson) {
    lesson.print ??= printOf(lesson);
    const { questions = [], forms = [], print } = lesson, answers = questions.map((_, n) => keptIn(lesson).get(placeOfAnswer(lesson, n)) || "");
    const like = test => new Set([...answers.keys()].filter(n => test.test(answers[n])));
    Object.assign(lesson, { right: like(/^right/), told: like(/^(right|told)/), answers, forms: forms.map((form, n) => (lesson.answers?.[n] === answers[n] ? form : undefined)),
        shown: new Set(keptAt(lesson, print).map(([place]) => place).filter(place => place[0] !== "?")),
        picks: new Set(answers.filter((_, n) => questions[n].kind === "zeros").flatMap(text => text.split(" ").slice(1))) });
}

/* "4 answers, 1 rule": what would go; "" if there is nothing. */
function keptInWords(lesson) {
    const places = [...keptIn(lesson).keys()], kinds = { answer: / \? /, rule: /^rule /, line: /^card /, "shown number": /\.[\d*]+$|terms$/, bet: /^bet$/ };
    return Object.entries(kinds).map(([word, test]) => [places.filter(place => test.test(place)).length, word]).filter(([n]) => n)
        .map(([n, word]) => `${n} ${word}${n > 1 ? "s" : ""}`).join(", ");
}

/* As on the first day. */
function forgetAll(lesson) {
    for (const map of [drafts, door.tried]) for (const key of [...map.keys()]) if (key.startsWith(lesson.name + " ")) map.delete(key);
    chosenLines.delete(lesson.name);
    lesson.forms = [];
    door.filled = "";
    forget(lesson, "");
    restore(lesson);
    drawAgain();
}

/* Another window has written, or its reader begins again. */
function onStore({ key }) {
    for (const name of [...kept.keys()]) if (key === null || key === storeOf(name)) kept.delete(name);
    if (!state.lesson || kept.has(state.lesson.name)) return;
    restore(state.lesson);
    if (!isPlaying()) drawAgain();
}
