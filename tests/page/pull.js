/* pull.js - what tests/page/test appends to a copy of a page with the library in it, behind common.js: it pulls the arcs of
 * the first screen by keys and by the pointer, and compares what the page shows with answers of the library that it asks for
 * itself. WALK.still: the library is missing, and the old bet stands there. */
const grips = () => all(".grip"), chosen = () => $(".grip.on"), lossShown = () => $(".big b").textContent;
const valueNow = grip => Number(grip.getAttribute("aria-valuenow")), weightsShown = () => all(".pull .weight").map(each => Number(each.textContent));
const two = x => fix(x, { d: 2, e: 0 });

/* Where the handles stand, the library's forward: its loss, the weights and the answer of the row, and the gradient of the
 * chosen score. */
function answerOf(live, { first, moved, size, own, row, scores, weights, answer }) {
    const line = (c, h) => `probe ${first + c} ${moved[c] * size + h} ${moved[c] * size + h} 1 ${scores.name}`;
    const at = h => live.answer(["lesson 2", ...row.map((_, c) => line(c, c === own ? h : 0)), `show ${weights.name}`, `show ${answer.name}`, `show E^2`].join("\n")).probe;
    const found = at(0), [{ moved: cells, values }, of, squares] = found.shown, c = i => cells.indexOf(first + i);
    const answers = range(answer.columns, i => first / row.length * answer.columns + i).map(i => (of.moved.includes(i) ? of.values[of.moved.indexOf(i)][0] : answer.value[i]));
    const e = state.lesson.tape.tensors.find(({ name }) => name === "E^2").value.map((x, i) => (squares.moved.includes(i) ? squares.values[squares.moved.indexOf(i)][0] : x));
    return { answers, squares: e, loss: found.losses[0], slope: (at(1e-5).losses[0] - at(-1e-5).losses[0]) / 2e-5, weights: row.map((_, i) => (c(i) < 0 ? weights.value[first + i] : values[c(i)][0])) };
}

/* All that the screen shows is the library's. */
function compare(live, what) {
    const p = state.lesson.pulled, wanted = answerOf(live, p), { slope, loss } = pulledNow(state.lesson, p);
    expect(lossShown() === two(wanted.loss), `${what}: the loss is ${lossShown()}, and not ${wanted.loss}`);
    expect(Math.abs(loss - wanted.loss) < 1e-9 && Math.abs(slope - wanted.slope) < 1e-5, `${what}: the slope is ${slope}, and not ${wanted.slope}`);
    expect(String(weightsShown()) === String(wanted.weights.map(w => Number(two(w)))), `${what}: the weights are ${weightsShown()}`);
    const wants = range(p.wanted.columns, i => p.wanted.value[p.first / p.row.length * p.wanted.columns + i]);
    expect(all(".big .pulled .c").map(each => each.textContent).join() === [...wanted.answers, ...wants].map(two).join(), `${what}: the answer is ${wanted.answers}, and should be ${wants}, but there stands ${$(".big").textContent}`);
    expect(all(".big .pulled .c").every(each => each.textContent.includes("−") === each.classList.contains("neg") || Number(each.textContent.replace("−", "-")) === 0), `${what}: a colour of the answer is wrong`);
    expect(Math.abs(sum(pulledNow(state.lesson, p).weights) - 1) < 1e-9, `${what}: the weights do not sum to 1`);
    const [, x1, y1, x2, y2] = /M(\S+) (\S+)L(\S+) (\S+)/.exec($(".plot .slope")?.getAttribute("d")) || [], grid = all(".plot .base").map(each => Number(/ (.*)H/.exec(each.getAttribute("d"))[1]));
    const labels = all(".plot .base + text").map(each => Number(each.textContent)), unit = (grid[0] - grid[1]) / (labels[1] - labels[0]), score = 326 / (p.high - p.low);
    expect(Math.abs((y1 - y2) / unit / ((x2 - x1) / score) - wanted.slope) < 1e-4, `${what}: the tangent is steeper than ${wanted.slope}`);
    expect($(".plot .slope").classList.contains(wanted.slope > 0 ? "pos" : "neg"), `${what}: the tangent has the other sign`);
    expect([x1, x2].every(x => x >= 33.9 && x <= 408.1) && [y1, y2].every(y => y >= 9.9 && y <= 160.1), `${what}: the tangent leaves the plot: ${[x1, y1, x2, y2]}`);
    const [x, y] = ["cx", "cy"].map(name => Number($(".plot .dot").getAttribute(name)));
    expect(Math.abs((grid[0] - y) / unit - wanted.loss) < 0.01 && Math.abs((x - 58) / score + p.low - valueNow(chosen())) < 0.01, `${what}: the dot stands elsewhere`);
    addsUp(wanted, what);
    if (p.runs) compareWords(live, wanted, p, what);
}

/* Where the loss comes from: the squares of the row, and what the other rows add, right as it is printed. */
function addsUp({ loss, squares }, what) {
    const said = $(".squares").textContent, [total, ...parts] = said.match(/\d+\.\d+/g).map(Number).reverse(), d = /\.(\d+)$/.exec(said)[1].length;
    expect(Math.abs(sum(parts) - total) < 1e-9 && Math.abs(total - loss) <= 0.51 * 10 ** -d, `${what}: the squares say ${said}, and the loss is ${loss}`);
    const { columns } = state.lesson.pulled.squares, r = state.lesson.pulled.first / state.lesson.pulled.row.length, own = squares.slice(r * columns, (r + 1) * columns);
    expect(own.every((x, i) => Math.abs(parts[parts.length - 1 - i] - x) <= 0.51 * 10 ** -d), `${what}: the squares are ${own}, and not ${said}`);
}

/* The loss far beyond both ends of the chosen arc. */
const limitsOf = (live, { first, moved, size, own, row, scores }) => live.answer(["lesson 2", ...row.map((_, c) =>
    `probe ${first + c} ${c === own ? -40 : moved[c] * size} ${c === own ? 40 : moved[c] * size} 2 ${scores.name}`)].join("\n")).probe.losses;

/* "Lowest" is said only where the slope is near 0, inside the arc, and nothing beyond an end is lower. */
function compareWords(live, wanted, p, what) {
    const words = $(".saying").textContent, isFlat = Math.abs(wanted.slope) < 0.08, { losses } = courseOf(p), limits = limitsOf(live, p);
    const least = Math.min(...losses), isDone = wanted.loss - least < 0.05 * Math.max(1, Math.max(...losses) - least), place = p.moved[p.own], [low, high] = [leastStep(p, p.own), mostStep(p, p.own)];
    expect(!/lowest/.test(words) || (isFlat && place > low && place < high && bare(wanted.loss) === bare(Math.min(least, ...limits))), `${what}: it says ${words}`);
    const isEnd = place === low || place === high, limit = limits[place === low ? 0 : 1];
    if (isEnd) expect(words.includes("The arc ends here") && (Math.abs(limit - wanted.loss) < 0.01 ? words.includes("would stay") : words.includes(`${limit < wanted.loss ? "still sink" : "grow on"}, to ${bare(limit)}`)) &&
        words.includes(place === low ? `not look at “${p.words[p.own]}” at all` : `look at “${p.words[p.own]}” alone`), `${what}: it says ${words}`);
    else if (isFlat) expect(words.includes("almost 0") && (!isDone ? words.includes("it is flat here") : /lowest|what it can/.test(words)), `${what}: it says ${words}`);
    else expect(words.includes(two(wanted.slope)) && words.includes(wanted.slope > 0 ? "look less" : "look more"), `${what}: it says ${words}`);
    const ends = all(".plot .beyond").map(each => Number(/L\S+ (\S+)/.exec(each.getAttribute("d"))[1])), grid = all(".plot .base").map(each => Number(/ (.*)H/.exec(each.getAttribute("d"))[1]));
    const unit = (grid[0] - grid[1]) / (Number(all(".plot .base + text")[1].textContent) - Number(all(".plot .base + text")[0].textContent));
    expect(ends.length === 2 && ends.every((y, n) => Math.abs((grid[0] - y) / unit - limits[n]) < 1e-6), `${what}: beyond the ends the curve goes to ${ends}`);
}

/* The weight above a handle stays in the picture; a line of text is some pixels higher than its digits. */
function lookInside() {
    const { top } = $(".pull").getBoundingClientRect();
    for (const weight of all(".pull .weight")) expect(weight.getBoundingClientRect().top >= top - 2, `a weight stands ${(top - weight.getBoundingClientRect().top).toFixed(0)} pixels above the picture`);
}

/* The arcs, the loss and its plot are seen together in a window that is low and not narrow. */
function lookLow() {
    if (innerHeight < 500) for (const each of all(".pull, .big b, .plot, .saying, #step .go")) expect(each.getBoundingClientRect().bottom <= innerHeight, `${each.getAttribute("class") || each.tagName} ends below a low window`);
}

/* Before the first pull the tangent says the slope; the curve, and the way down, are for the reader to find. */
function untold() {
    const { pull, tape: { tensors } } = state.lesson, slope = two(Math.abs(tensors[pull.tensor].grad[pull.cell]));
    expect($(".plot .slope") && $(".saying").textContent.includes(slope), "the slope is not there before the first pull");
    expect(!$(".plot .curve, .plot .beyond") && !/grows|shrinks|look less|sink|lowest/.test($("#step").textContent), "the way down stands there before the first pull");
    expect($(".untouched .grip.on"), "no handle says that it can be pulled");
}

const drag = (grip, y) => {
    const event = (name, clientY) => grip.dispatchEvent(new PointerEvent(name, { pointerId: 7, clientX: 0, clientY, bubbles: true, cancelable: true }));
    grip.setPointerCapture = grip.hasPointerCapture = () => true;
    event("pointerdown", 0);
    event("pointermove", y);
};

/* The pointer's place for a score of the chosen handle. */
const heightOf = score => {
    const { top, height } = $(".pull").getBoundingClientRect(), { low, high } = state.lesson.pulled;
    return top + (PULL.base - PULL.least - (score - low) / (high - low) * PULL.most - PULL.top) * height / PULL.height;
};

async function pulls(live) {
    expect(state.lesson.name === "2" && state.step === 0 && $("#step h1"), "the page does not open with lesson 2");
    expect(/attention/i.test($("#step").textContent) && /backpropagation/i.test($("#step").textContent), "the first screen does not say what the page is about");
    untold();
    expect(isWaiting(), "the third panel does not wait for the first pull");
    const still = all(".arcs, .plot, .go, .third").map(each => each.getBoundingClientRect().top).join();
    expect(lossShown() === two(lossOf(state.lesson)), `the loss at the start is ${lossShown()}`);
    expect($("#step a[href], #step button, .grip") === grips()[0] && grips()[0] === chosen(), "the filled handle is not the first to be reached");
    lookWide();
    const start = $("#step").textContent, key = (name, times = 1) => {
        for (; times > 0; times--) press(name, document.activeElement);
    };
    chosen().focus();
    key("ArrowDown");
    expect(!$(".untouched") && where() === "" && state.step === 0, "an arrow on a handle makes a step: " + where());
    lookLow();
    expect(innerWidth < 1100 || still === all(".arcs, .plot, .go, .third").map(each => each.getBoundingClientRect().top).join(), "the first pull moves the screen");
    expect(innerWidth < 1100 || document.documentElement.scrollHeight <= innerHeight, `the first screen is ${document.documentElement.scrollHeight} pixels high`);
    if ($(".third").getClientRects().length) await writesRule(live);
    chosen().focus();
    compare(live, "one key");
    key("PageUp", 2);
    compare(live, "two page keys");
    const byKey = valueNow(chosen()), loss = lossShown(), p = state.lesson.pulled;
    compare(live, "in between");
    key("Home");
    expect(valueNow(chosen()) < p.low + p.size, "Home does not lead to the lowest place");
    compare(live, "the lowest place");
    key("End");
    expect(valueNow(chosen()) > p.high - p.size, "End does not lead to the highest place");
    compare(live, "the highest place");
    lookInside();
    drag(chosen(), heightOf(byKey));
    expect(valueNow(chosen()) === byKey && lossShown() === loss, `by key ${byKey} with the loss ${loss}, by pointer ${valueNow(chosen())} with ${lossShown()}`);
    for (const grip of grips().reverse()) {
        grip.focus();
        expect(chosen() === grip, "a handle is not chosen by the focus");
        key("ArrowUp", 3);
        compare(live, "three keys on " + grip.getAttribute("aria-label"));
        expect(grip.getAttribute("aria-valuetext").endsWith("loss " + lossShown()), "a handle says " + grip.getAttribute("aria-valuetext"));
    }
    expect($("#step .length").textContent.includes(`${p.runs} times`), "the price of trying is not said");
    plateau(live, key);
    [...all("#step button")].find(button => button.textContent === "put back").click();
    expect(lossShown() === two(lossOf(state.lesson)) && String(p.moved) === "0,0,0" && all(".score").every(each => start.includes(each.textContent)), "put back does not put back");
    expect(Math.abs(pulledNow(state.lesson, p).slope - p.scores.grad[p.first + p.own]) === 0, "the slope at the start is not the gradient");
    await leads(key);
}

/* The third panel waits for the first pull; then the row of the steps stands in it. What is judged there is said, planted nowhere,
 * and moves nothing. */
const isWaiting = () => $(".third").textContent.includes("Pull an arc first") && !$(".third #door") && ($(".waits").getClientRects().length > 0 || innerHeight < 500);
async function writesRule(live) {
    const text = $("#rule-text"), { scores, first, row } = state.lesson.pulled, recorded = state.lesson, places = () => all(".arcs, .plot, .go, .third, .slopes").map(each => Math.round(each.getBoundingClientRect().top)).join(), before = places();
    const slopes = grad => range(row.length, c => two(grad[first + c])).join();
    const enter = formula => {
        text.focus();
        text.value = formula;
        text.dispatchEvent(new Event("input", { bubbles: true }));
        press("Enter", text);
    };
    const said = () => $("#rule-said").textContent, rows = () => all(".slopes .pulled:not(:first-child) > span").map(each => [...each.children].map(cell => cell.textContent).join());
    expect($(".third #door") && text.getClientRects().length && !text.value && all("#door").length === 1, "no box stands in the third panel");
    expect(said() === "Enter judges. sum( ) adds up a row.", `under the empty box stands ${said()}`);
    enter("A * dA");
    const judged = live.answer("lesson 2\nrule A: A * dA").lessons[0].tape.tensors[scores.number];
    expect(rows().join(";") === [slopes(scores.grad), slopes(judged.grad)].join(";"), `the slopes are ${rows()}`);
    expect($(".slopes").textContent.includes("slope at first"), "the slopes do not say when they were so");
    const middles = each => [...each.querySelectorAll("i")].map(cell => Math.round(cell.getBoundingClientRect().x + cell.offsetWidth / 2)).join();
    expect(new Set(all(".slopes .pulled").map(middles)).size === 1, "a name stands beside its slope");
    expect(/wrong This is A \* dA, without the sum over the row/.test(said()) && !/training/.test(said()) && $(".go").textContent.startsWith("Find the rule"), `A * dA is judged ${said()}`);
    expect(innerWidth < 1100 || places() === before, `the verdict moves the screen from ${before} to ${places()}`);
    lookWide();
    const [field, judge] = ["#door .field", "#door .judge"].map(each => $(each).getBoundingClientRect());
    expect(innerWidth < 1100 || judge.left >= field.right, "the button stands under its box");
    enter("A * dz");
    expect(/At character 5: there is no dz here/.test(said()), `an error says ${said()}`);
    expect(!$(".slopes").textContent, `an error leaves the slopes of another rule: ${rows()}`);
    enter("A * (dA - sum(A * dA))");
    expect(/right It holds for other numbers, too\. Go on: →\. $/.test(said()) && $(".go").textContent.startsWith("See why") && new Set(rows()).size === 1, `the right rule is judged ${said()}, ${rows()}`);
    expect(state.lesson === recorded && where() === "" && document.activeElement === text, "a rule on the first screen is planted, or leaves the box");
    press("ArrowRight", text);
    expect(state.step === 1, "at the end of a right rule → does not go on from the first screen");
    await go("#2/0");
}

/* Flat, and far from the smallest loss of the curve: by a key from an end of the arc. */
function plateau(live, key) {
    for (const [c, name] of [[0, "End"], [2, "Home"]]) {
        grips().find(grip => grip.getAttribute("aria-label").includes(`“${state.lesson.pulled.words[c]}”`)).focus();
        key(name);
    }
    key("ArrowUp");
    compare(live, "a plateau");
    expect(Number(lossShown()) > 7 && $(".saying").textContent.includes("flat here"), `a plateau with the loss ${lossShown()}: ${$(".saying").textContent}`);
}

/* From another lesson: a question about it stands under all three panels, which stand as they stood under their title. */
async function comesBack() {
    const box = each => each.getBoundingClientRect(), boxes = () => all(".arcs, .plot, .go, .third").map(box).map(({ top, left, width }) =>
        width && [top - box($("#step h1")).top, left, width].map(Math.round)).join("; ");
    await go("#2/0");
    const before = boxes();
    await go("#1");
    await go("#2");
    const card = $(".again"), low = Math.max(...all("#step > :not(.again), .cover > *").map(each => box(each).bottom));
    expect(card, "no card asks about the lesson before");
    expect(boxes() === before, `the card moves the first screen from ${before} to ${boxes()}`);
    expect(card && box(card).top >= low, `the card begins at ${card && box(card).top}, and the panels end at ${low}`);
    lookWide();
}

/* The button begins with the forward pass; what was pulled stays. */
async function leads(key) {
    const p = state.lesson.pulled, last = grips().find(grip => grip.getAttribute("aria-label").includes(`“${p.words[p.words.length - 1]}”`));
    last.focus();
    key("ArrowDown", 4);
    $("#step .go").click();
    expect(state.step === 1 && $("main").previousElementSibling === $("#door"), "the button leads to " + where());
    expect(innerHeight < 500 || !$("#machine").hidden && $("#bar").getClientRects().length > 0 && $("#picture canvas").getBoundingClientRect().width > 5, "the tape is not there after the first screen");
    await go("#2/0");
    expect($(".grip") && valueNow(grips().find(grip => grip.getAttribute("aria-label").includes(`“${p.words[p.words.length - 1]}”`))) !== p.row[p.words.length - 1], "what was pulled is forgotten");
    press("ArrowRight");
    expect(state.step === 1, "the arrow key does not lead to the first step");
    if (lessons.length > 1) await comesBack();
    await go("#2/0&keys=7");
    expect(!$(".grip") && $(".bet"), "seven words are pulled");
    await go("#2/0&keys=6&queries=6&seed=9");
    expect(grips().length === 6, "six words are not pulled");
    lookWide();
    $("#b-help").click();
    expect($("#made").textContent.includes("build/explain --lesson 2"), "the help does not say how the example is made");
    $("#help").close();
}

begin(async () => {
    const live = await Live.load();
    await wait(50);
    if (WALK.still) expect(!$(".grip") && $(".arcs") && all(".bet button").length === 2, "without the library there is no picture with a bet");
    else await pulls(live);
});
