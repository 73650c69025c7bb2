/* touch.js - what tests/page/test appends to a copy of a page, behind common.js: it moves what a reader can move, and compares
 * what happens with answers of the library that it asks for itself. WALK.refused: the library is not there. */
let live = null;
const numberIn = text => Number(text.replace("−", "-").replace("+", "").replace(/[()≈ ]/g, ""));
const isRounding = (text, x) => Math.abs(numberIn(text) - x) <= 0.5001 * 10 ** -(text.split(".")[1] || "").length;

/* ---- a nudge ------------------------------------------------------------------------------------------------------ */

const slider = () => $(".knob input"), nudgedSteps = kind => state.lesson.steps.filter(step => step.nudge?.kind === kind);
const cellsOf = key => all(`.nudge tbody td[data-k="${key}"]`), lossRow = () => all(".nudge tr").pop();

function slide(n) {
    slider().focus();
    slider().value = String(n);
    slider().dispatchEvent(new Event("input", { bubbles: true }));
    expect(document.activeElement === slider(), `${where()}: the slider loses the focus`);
}

/* What the library says of this nudge: {losses, moved, values}. */
function probed({ part: { tensor, line } }, i) {
    const { probe, error } = live.answer(`lesson ${state.lesson.name}\nprobe ${i} -1 1 41 ${tensor.name}\nshow ${line.result.name}`);
    expect(probe, `${where()}: ${error}`);
    return { losses: probe.losses, ...probe.shown[0] };
}

/* A mark stands where h times the derivative is, a bar ends where the change is: on the scale of the other bars. */
function lookBars(rows) {
    const middle = 50, scales = rows.map(({ bar, predicted }) => (parseFloat(bar.querySelector("s").style.left) - middle) / predicted).filter(Number.isFinite);
    expect(scales.every(scale => scale > 0 && Math.abs(scale / scales[0] - 1) < 1e-3), `${where()}: a mark stands elsewhere: ${scales}`);
    for (const { bar, real } of scales.length ? rows : []) {
        const { style, className } = bar.querySelector("i"), width = parseFloat(style.width);
        expect(Math.abs(width - scales[0] * Math.abs(real)) < 0.02 && (real === 0 || className === (real < 0 ? "neg" : "pos")), `${where()}: a bar of ${width} for ${real}`);
    }
}

const evaluateLine = text => Number(new Function("return " + text.replace(/−/g, "-").replace(/×/g, "*").replace(/\+(?=[\d.])/g, ""))());

/* "0.508 × 0.492 = +0.250", and " × 6.42 = +1.61" behind it: right as they are printed. */
function lookPrinted(rate, product) {
    const [line, sum] = rate.split(" = "), isRight = (text, made) => Math.abs(evaluateLine(text) - numberIn(made)) <= 0.50001 * 10 ** -(made.split(".")[1] || "").length;
    if (sum) expect(isRight(line, sum), `${where()}: ${rate}`);
    const [times, made] = product.split(" = ");
    expect(isRight(numberIn(sum || rate) + " " + times, made), `${where()}: ${rate} ${product}`);
    return numberIn(made);
}

/* The look 3 of a softmax shows all: the changes of a row at each nudge, its rates, and their sum. */
function lookWeights(step, i) {
    const { part: { line: { result: y }, jacobian } } = step, answer = probed(step, i), C = y.columns, first = i - i % C, rows = range(C, c => first + c);
    const rateOf = j => { const n = jacobian[i].findIndex((x, k) => k % 2 === 0 && x === j); return n < 0 ? 0 : Number(jacobian[i][n + 1]); };
    const changeOf = (j, n) => { const row = answer.moved.indexOf(j); return row < 0 ? 0 : answer.values[row][n] - answer.values[row][20]; };
    for (const n of [0, 18, 22, 26, 40, 20]) {
        slide(n);
        expect(isRounding($(".knob output").textContent, (n - 20) / 20), `${where()}: the nudge is called ${$(".knob output").textContent}`);
        cellsOf("change").forEach((cell, row) => expect(isRounding(cell.textContent, changeOf(rows[row], n)), `${where()}: ${cell.textContent} and not ${changeOf(rows[row], n)}`));
        if (n !== 20) lookBars(cellsOf("change").map((cell, row) => ({ bar: cell.querySelector(".bar-d"), real: changeOf(rows[row], n), predicted: rateOf(rows[row]) * (n - 20) / 20 })));
        expect(isRounding(lossRow().querySelector(".num").textContent, answer.losses[n] - answer.losses[20]), `${where()}: the loss changes by ${lossRow().textContent}`);
    }
    const rates = cellsOf("per nudge").map(cell => cell.textContent), products = cellsOf("loss").map(cell => cell.textContent);
    rates.forEach((text, row) => expect(isRounding(text.split(" = ").pop(), rateOf(rows[row])), `${where()}: ${text} and not ${rateOf(rows[row])}`));
    const total = rates.map((rate, row) => lookPrinted(rate, products[row])).reduce((a, b) => a + b, 0), shown = $('.sum-row td[data-k="loss"]').textContent;
    if (!shown.includes("≈")) expect(isRounding(shown, total), `${where()}: the products sum to ${total} and not ${shown}`);
    expect(isRounding(shown.replace("≈", ""), step.part.dx[i]), `${where()}: the sum is ${shown}, the gradient ${step.part.dx[i]}`);
    report.nudges++;
}

/* A tick is what is predicted, in each column; a number does not touch its bar. */
function lookMarks() {
    const left = each => each.getBoundingClientRect().left, names = $(".legend")?.textContent;
    for (const bar of all(".nudge .bar-v")) expect(left(bar.querySelector("s")) === left(bar), `${where()}: a weight has a tick`);
    for (const bar of all(".nudge .bar-d")) expect(bar.nextSibling.getBoundingClientRect().left - bar.getBoundingClientRect().right > 4, `${where()}: a number touches its bar`);
    expect(!$(".nudge .bar-v") || /^weight: before ?now ?change: what happens/.test(names), `${where()}: the marks are called ${names}`);
}

/* The looks by key, by their buttons, and in the address. */
async function looks(name, { id, part: { tensor }, look, most }) {
    const at = `#${name}/${id}`, i = look ?? most, cell = `g${tensor.number}.${i}`;
    await go(at);
    expect($("#step h2").textContent.endsWith("= ?") && !$("#step .c") && !cellsOf("per nudge").length && where() === at, `${where()}: it does not begin with the weights alone`);
    for (const n of [2, 3]) {
        press("ArrowRight");
        expect(where() === `${at}.${n}` && $(".looks [aria-pressed=true]").textContent.startsWith(n), `${where()}: the look ${n} is not the next one`);
        lookWide();
        lookMarks();
        lookFit();
    }
    expect(cellsOf("loss").length > 0, `${where()}: nothing is said of the loss`);
    expect(/^sum\(/.test($("#step .mean")?.textContent) || state.asked, `${where()}: the weighted mean comes from nowhere`);
    press("ArrowRight");
    expect(where() === `${at}.4` && $("#step .tab.main .c"), `${where()}: the rule does not follow`);
    const [, second] = all(".looks button");
    second.focus();
    second.click();
    expect(where() === `${at}.2` && document.activeElement === all(".looks button")[1], `${where()}: a button of the looks loses the focus`);
    slide(30);
    press("ArrowRight", slider());
    expect(where() === `${at}.2`, `${where()}: an arrow on the slider makes a step`);
    slider().focus();
    slider().dispatchEvent(new PointerEvent("pointerup", { bubbles: true }));
    expect(document.activeElement !== slider(), `${where()}: a slider that a pointer has moved keeps the arrows`);
    await go(`${at}/${cell}`);
    expect($("#step .tab.main .chosen") && where() === `${at}/${cell}`, `${where()}: a link with a number does not show the rule`);
    press("ArrowRight");
    expect(stepNow().id !== id, `${where()}: the rule is not the last look`);
    press("ArrowLeft");
    expect(stepNow().id === id && $("#step .tab.main .c"), `${where()}: back does not lead to the rule`);
    await go(`${at}.1`);
    for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft"]) press(key);
    expect(where() === `${at}.2`, `${where()}: back does not lead to the look before`);
    await go(`${at}.3`);
    expect(where() === `${at}.3` && $(".nudge"), `${at}.3 does not lead back`);
}

/* Predict first hides the gradient. */
async function hides(name, { id }) {
    await go(`#${name}/${id}.3`);
    const sums = () => all(".sum-row td").slice(0, 3).map(cell => cell.textContent);
    if (asksBeside()) revealAnswers();
    expect(sums().join() === "1,0,0", `${where()}: the sums are ${sums()}`);
    press("h");
    expect($('.sum-row td[data-k="loss"]').textContent === "?" && !$(".nudge .plain") && !$("#step output.sum"), `${where()}: the gradient is not hidden`);
    press("h");
    expect(state.asked || $(".nudge .plain") && $("#step output.sum"), `${where()}: the gradient stays hidden`);
}

/* Another number of the table is nudged; its place stands at the slider. */
async function chooses(name, step) {
    const { part: { tensor } } = step, others = [0, tensor.value.length - 1];
    for (const i of others) {
        await go(`#${name}/${step.id}/g${tensor.number}.${i}`);
        revealAnswers();
        all(".looks button")[2].click();
        expect(where() === `#${name}/${step.id}.3/g${tensor.number}.${i}` && slider().getAttribute("aria-label").endsWith(placeWords(valueView(tensor), i)), `${where()}: another number is nudged`);
        lookWeights(step, i);
        const { columns: C, value } = step.part.line.result, row = value.slice(i - i % C, i - i % C + C);
        expect($('.sum-row td[data-k="weights"]').textContent === (row.some(p => p) ? "1" : "0"), `${where()}: the sum of ${row}`);
    }
}

/* A wrong rule predicts, and the bars say what happens. */
async function plantedRule() {
    await go("#2/b3.0&rule=A: A * dA");
    const step = stepNow();
    expect(step.id === "b3.0" && !$("#step .nudged") && $("#step .off"), `${where()}: a planted rule does not show its numbers`);
    all(".looks button")[2].click();
    const { dx, line: { result } } = step.part, i = step.look, own = result.value[i];
    slide(26);
    const [rate, other] = cellsOf("per nudge").map(cell => cell.textContent), loss = $(".nudge .plain").textContent;
    expect(isRounding(rate, own) && other === "0", `${where()}: the rule predicts ${rate} and ${other}`);
    expect(loss.includes(fix(dx[i], { d: 2, e: 0 })) && isRounding($(".nudge .plain .num").textContent, probed(step, i).losses[26] - probed(step, i).losses[20]), `${where()}: ${loss}`);
    await go("#2/0");
}

/* One number of a product: what it meets and moves is outlined, and what moves are the numbers that the library says. */
async function product(name, step) {
    const { id, part: { tensor, line: { result: y } } } = step;
    for (const i of [0, tensor.value.length - 1]) {
        await go(`#${name}/${id}.1/g${tensor.number}.${i}`);
        const { moved, values, losses } = probed(step, i), cell = key => $(`#step .c[data-key="${key}"]`);
        slide(38);
        if (isAskedFor(`g${tensor.number}.${i}`)) expect(!lossRow() && !$("#step output.sum"), `${where()}: the answer of the question is shown`);
        if (isAskedFor(`g${tensor.number}.${i}`)) continue;
        for (const j of range(y.value.length, n => n)) {
            const shown = cell(`v${y.number}.${j}`), row = moved.indexOf(j);
            if (!shown) continue;
            expect(shown.classList.contains("source") === row >= 0, `${where()}: ${j} is ${shown.className}`);
            if (row >= 0) expect(isRounding(shown.textContent, values[row][38]), `${where()}: ${shown.textContent} and not ${values[row][38]}`);
        }
        expect(cell(`v${tensor.number}.${i}`).classList.contains("chosen") && isRounding(cell(`v${tensor.number}.${i}`).textContent, tensor.value[i] + 0.9), `${where()}: the number is not moved`);
        const met = step.part.line.inputs.find(t => t && t !== tensor && t.number !== y.number);
        const inOrder = list => list.sort((x, y) => x - y), meets = inOrder(all(`#step .c.source[data-key^="v${met.number}."]`).map(each => met.value[each.dataset.i]));
        expect(String(inOrder(values.map(list => list[40] - list[20])).map(x => x.toFixed(6))) === String(meets.map(x => x.toFixed(6))), `${where()}: it meets ${meets}`);
        expect(isRounding(lossRow().querySelector(".num").textContent, losses[38] - losses[20]), `${where()}: the loss changes by ${lossRow().textContent}`);
        const [, line, sum] = / = (.*) = (\S+)$/.exec($(".derive").textContent.trim()) || [];
        if (line && !line.includes("…") && !/[⁻·]/.test(line + sum)) expect(Math.abs(evaluateLine(line) - numberIn(sum)) <= 0.50001 * 10 ** -(sum.split(".")[1] || "").length, `${where()}: ${line} = ${sum}`);
        lookWide();
        lookMarks();
        report.nudges++;
    }
}

/* One number moves one number. */
async function each(name, step) {
    const { id, part: { tensor, line: { result: y }, jacobian } } = step, i = step.look ?? step.most;
    await go(`#${name}/${id}.1`);
    const { moved, values } = probed(step, i), [j, rate] = jacobian[i];
    slide(30);
    if (!jacobian[i].length) return;
    expect(moved.length === 1 && moved[0] === j, `${where()}: ${moved} move`);
    expect(isRounding($(".nudge .num").textContent, values[0][30] - values[0][20]), `${where()}: ${$(".nudge").textContent}`);
    expect($(".nudge").textContent.includes(bare(Number(rate))), `${where()}: the slope ${rate} is not there`);
    expect(all(`#step .c.chosen`).length === 1 && $("#step .c.chosen").dataset.key === `v${tensor.number}.${i}` && $(`.source[data-key="v${y.number}.${j}"]`), `${where()}: other numbers are outlined`);
    lookWide();
    report.nudges++;
}

async function nudges(name) {
    await go(`#${name}`);
    if (state.keys) press("k"); /* a long lesson begins with its rules */
    for (const step of nudgedSteps("softmax")) {
        if (nudgedSteps("softmax")[0] === step) await looks(name, step);
        await hides(name, step);
        if (step.part.line.result.columns <= 8) await chooses(name, step);
    }
    for (const step of nudgedSteps("product")) await product(name, step);
    for (const step of nudgedSteps("each")) await each(name, step);
}

/* Without the library: one recorded nudge, and no slider; of another number nothing is said but what is predicted. */
async function recorded() {
    for (const kind of ["softmax", "product", "each"]) {
        const step = nudgedSteps(kind)[0], { part: { tensor, dx }, nudge: { changes } } = step, i = step.look ?? step.most, other = dx.length - 1 - (i === dx.length - 1);
        await go(`#${state.lesson.name}/${step.id}.1`);
        expect(!slider() && $(".knob").textContent.includes("a recorded nudge") && isRounding($(".knob output").textContent, 0.3), `${where()}: no recorded nudge`);
        if (kind === "softmax") cellsOf("change").forEach((cell, c) => expect(isRounding(cell.textContent, changes[c]), `${where()}: ${cell.textContent} and not ${changes[c]}`));
        await go(`#${state.lesson.name}/${step.id}.${kind === "softmax" ? 3 : 1}/g${tensor.number}.${other}`);
        expect($(".nudge .plain").textContent.includes(fix(dx[other], { d: 2, e: 0 }).slice(0, 4)), `${where()}: ${$(".nudge .plain").textContent}`);
        report.nudges++;
    }
}

/* Tables in several lines: no line begins with a comma, and no curve crosses a table. */
async function definitions() {
    await go("#3/f8");
    if (!$("#step .items.wrap")) return;
    const tops = all("#step .grid").map(grid => grid.getBoundingClientRect().top);
    expect(all("#step .op").every(each => !each.textContent.startsWith(",")), `${where()}: a line begins with a comma`);
    expect(Math.max(...tops) - Math.min(...tops) < 60 || !$("#curves path"), `${where()}: a curve crosses tables`);
    lookWide();
}

begin(async () => {
    live = await Live.load();
    await wait();
    report.nudges = 0;
    if (WALK.refused) {
        await go("#2");
        return recorded();
    }
    for (const name of WALK.lessons) await nudges(name);
    if (WALK.lessons.includes("2")) await plantedRule();
    if (WALK.lessons.includes("3")) await definitions();
});
