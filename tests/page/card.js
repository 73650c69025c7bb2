/* card.js - what tests/page/test appends to a copy of a page, behind common.js: it writes the lines of each lesson's card, wrong
 * ones and right ones, in any order, and looks at the card that they become. WALK.lessons: their names; WALK.refused: the page
 * has no library, and must say this. */

const RIGHT = {
    1: { dA: "dY @ V'", dS: "A * (dA - sum(A * dA))", "d(U^2)": "-dS / 2", dU: "-U * dS", dw: "sum0(sum(dU * D))" },
    2: { dV: "A' @ dY", dA: "dY @ V'", dZ: "A * dA - A * sum(A * dA)", dS: "dZ / √d", dQ: "dS @ K", dK: "dS' @ Q" },
    3: { dV: "A' @ dY", dA: "dY @ V'", dZ: "A * (dA - sum(A * dA))", dS: "dZ / sqrt(d)", dQ: "dS @ K", dK: "dS' @ Q" },
    "3b": { dB: "dY @ V'", dF: "B * (dB - sum(B * dB))", dA: "dY @ V'", dV: "(A + B)' @ dY", dZ: "A * (dA - sum(A * dA)) + (1 - ignored) * dF", dS: "dZ / sqrt(d)" },
    4: { dV: "A_p' @ dY", dA_p: "dY @ V'", dA: "kept * dA_p / (1 - p)", dZ: "A * (dA - sum(A * dA))", dK: "dS' @ Q", dW_q: "dQ' @ x", dx: "dQ @ W_q + dK @ W_k + dV @ W_v" },
    5: { dC: "dY @ W_o", dW_o: "dY' @ C", dY_h: "dG * gate", dgate: "sum(sum(dG * Y_h)')", dA: "dY_h @ V_h'", dV_h: "A' @ dY_h", dZ: "A * (dA - sum(A * dA))" },
    6: { dW_2: "dY' @ H", db_2: "sum0(dY)", dH: "dY @ W_2", dP: "dH * H / P", dA: "dO @ x'", dS: "scale * A * (dA - sum(A * dA))", dW_q: "dQ' @ x" },
};
const lines = () => stepNow().lines, field = () => $("#rule-text"), said = () => $("#rule-said").textContent.replace(/\u00a0/g, " ");
const tally = () => /^\d+ of \d+/.exec($("#words .text").textContent)?.[0], labelNow = () => $("#rule-form label").textContent;
const labelOf = n => el("span", {}, nameEl(lines()[n].name), " =").textContent, openLines = () => all(".open-line");
const chooseIt = n => labelNow() === labelOf(n) || openLines().find(each => each.textContent === labelOf(n).replace(/ $/, ""))?.click() || openLines().find(each => each.textContent.trim() === labelOf(n).trim())?.click();

/* As a reader types it; Enter submits the form. */
function write(n, formula) {
    chooseIt(n);
    expect(labelNow() === labelOf(n), `the row is for ${labelNow()}, not for ${labelOf(n)}`);
    field().focus();
    field().value = formula;
    field().dispatchEvent(new Event("input", { bubbles: true }));
    press("Enter", field());
}

/* Nothing of the card lies outside of the window, also where the page cuts off what is too wide. */
function lookInside(what) {
    lookWide();
    for (const each of all("#door form > *, #step .keep, #step .keep td, #step .buttons > *")) {
        const { left, right } = each.getBoundingClientRect();
        expect(left >= 0 && right <= innerWidth + 1, `${what}: ${each.className || each.tagName} ends at ${right.toFixed(0)} of ${innerWidth}`);
    }
}

/* All that the page has but its data, and what stands in its fields. */
const anywhere = () => [...document.body.querySelectorAll("*")].filter(each => !/^(SCRIPT|STYLE)$/.test(each.tagName))
    .map(each => [...each.childNodes].filter(node => node.nodeType === Node.TEXT_NODE).map(node => node.data).join("") + [...each.attributes].map(({ value }) => value).join(" ") + (each.value ?? "")).join("\n");

/* No line has an answer that can be read anywhere: as it is typed, as the library says it, as the page sets it. */
function expectNoAnswer(what, answers) {
    const text = anywhere(), set = $("#below").textContent;
    for (const { shown, typeset } of answers) {
        expect(shown.length < 5 || !text.includes(shown), `${what}: ${shown} stands in the page`);
        expect(!set.includes(typeset), `${what}: ${typeset} can be read`);
    }
}

async function writeCard(name) {
    const right = RIGHT[name], what = `card ${name}`;
    forgetKept();
    for (const { kind, id } of state.lesson.steps.slice()) if (kind === "backward") { /* the box has shown right rules */
        await go(`#${name}/${id}`);
        for (let looks = 0; looks < 4 && isNudging(); looks++) press("ArrowRight");
    }
    await go(`#${name}/card`);
    expect(lines().map(line => line.name).join() === Object.keys(right).join(), `${what} asks for ${lines().map(line => line.name)}`);
    expect(tally() === `0 of ${lines().length}` && $("#count").textContent === "the card", `${what} begins with ${tally()}`);
    const answers = Controls.judgeCard(lines().map(line => `${line.name}: ${right[line.name]}`)).map(({ name: of, shown }) => ({ shown, typeset: typesetRule(of, shown).map(each => each.textContent ?? each).join("") }));
    expectNoAnswer(what, answers);
    lines().forEach(({ tensor }, n) => {
        const { panels, rows, columns } = state.lesson.tape.tensors[tensor];
        chooseIt(n);
        expect(labelNow() === labelOf(n) && document.activeElement === (n ? field() : document.activeElement) && field().labels[0].textContent === labelNow(), `${what}: a click on a line does not choose ${labelOf(n)}`);
        expect(said().includes(rows * columns * panels === 1 ? "one number" : `${rows} × ${columns}`), `${what}: the size: ${said()}`);
        expect(field().value === "" && !field().readOnly && parseFloat(getComputedStyle(field()).fontSize) >= 16, `${what}, ${labelNow()}: the field`);
        press("ArrowLeft", field());
    });
    expect(where() === `#${name}/card`, `${what}: an arrow in a field leads to ${where()}`);
    lookInside(what);
    const wide = innerWidth >= 1100, end = $("#step .keep").getBoundingClientRect().bottom + scrollY;
    expect(!wide || end <= innerHeight, `${what}: the lines end at ${end} of ${innerHeight}`);
    const words = Math.max(...all("#words .text, #words .end").map(each => each.getBoundingClientRect().bottom + scrollY));
    expect(innerWidth < 1280 || words <= innerHeight, `${what}: its words end at ${words.toFixed(0)} of ${innerHeight}`);
    for (let n = lines().length - 1; n >= 0; n--) {
        const { name: of } = lines()[n], done = lines().length - 1 - n;
        write(n, of);
        expect(/is what this line is to say/.test(said()) && document.activeElement === field(), `${what}: ${of} for ${of} says ${said()}`);
        write(n, `2 * (${right[of]})`);
        expect(/\?$/.test(said()) && $("#verdict").textContent.includes("not yet") && field().matches(".is-wrong") && tally() === `${done} of ${lines().length}`, `${what}: twice ${of} says ${said()}`);
        expectNoAnswer(`${what}, ${of}`, answers.slice(0, n));
        write(n, n % 2 ? `${of} = ${right[of]}` : ` ${right[of]} `);
        if (n) expect(openLines().length === n && $("#step .keep").textContent.includes(answers[n].typeset) && document.activeElement === field() && labelNow() === labelOf(0) && tally() === `${done + 1} of ${lines().length}`, `${what}: ${of} = ${right[of]} says ${said()}, ${tally()}`);
        expect($("#announce").textContent === `${of}: right`, `${what}: a right line is announced as ${$("#announce").textContent}`);
    }
    expectCard(what, answers);
    report.written = (report.written || 0) + lines().length;
}

/* The card: each rule with its line forward, on paper alone, as a picture, kept, and empty once more. */
function expectCard(what, answers) {
    const keep = $("#step .keep"), rows = all("#step .keep tbody tr");
    expect(keep && rows.length === lines().length && !openLines().length && !field().getClientRects().length && $("#door h2").textContent.includes("all yours") && document.activeElement === $("#print-card"), `${what}: no card comes`);
    if (!keep) return;
    for (const { typeset } of answers) expect(keep.textContent.includes(typeset), `${what} has no ${typeset}`);
    expect(rows.every(row => row.lastChild.textContent.length > 5), `${what}: a rule has no reason`);
    expect($("#words").textContent.includes("2/n E") && $("#words").textContent.includes("In papers: P for A") === !!state.lesson.letters, `${what} has no letters of papers`);
    lookInside(what);
    const bottom = keep.getBoundingClientRect().bottom + scrollY;
    expect(innerWidth < 1100 || bottom <= innerHeight, `${what} ends at ${bottom} of ${innerHeight}`);
    const saved = stepAsSvg().textContent;
    expect(saved.includes("Tapehead, lesson") && saved.includes("backward") === innerWidth > 700 && !saved.includes("matmul"), `${what} is saved as ${saved.slice(0, 60)}`);
    printed = "card";
    drawPaper();
    expect($("#paper .keep") && $("#paper").children.length === 1 && !$("#paper .tab"), `${what} is not printed alone`);
    clearPaper();
    comeAgain();
    expect($("#step .keep"), `${what} is not kept`);
    all("#step .buttons button").find(each => each.textContent === "once more, empty").click();
    expect(tally() === `0 of ${lines().length}` && document.activeElement === field() && !field().value, `${what} is not empty once more`);
    expectNoAnswer(`${what}, empty`, answers);
    comeAgain();
    expect(tally() === `0 of ${lines().length}`, `${what}: the store is not emptied`);
}

/* Mistakes, other numbers, and a store that is refused. */
async function writeOthers() {
    const { getItem, setItem } = Storage.prototype;
    Storage.prototype.getItem = Storage.prototype.setItem = () => { throw new Error("refused"); };
    isStoreRefused = false;
    kept.clear();
    await go("#2/card");
    for (const [n, formula, words] of [[1, "dY @ V", "At character 4: dY is 2 × 2 and V is 3 × 2: @ needs equal inner sizes. This is dY times V, where V is not transposed. Which"],
        [2, "A * dA - sum(A * dA)", "the difference needs a bracket. Where"], [5, "Q’ @ dS", "The formula is 4 × 3 and the gradient must be 3 × 4. This is QT times dS"],
        [3, "dZ", "This is dZ, without the factor 0.5."], [3, "0.25 dZ", "This is dZ with the factor 0.5 twice."], [3, "dZ / 2 / √d &", "At character 13: & is no sign"], [0, "", "Write a formula first."], [4, "dS @ K'", "This is dS times KT, where K is transposed: the other factor of S = Q KT is KT, and its transpose is K. Which numbers of KT does"], [4, "dS @", "At the end: the formula ends"]]) {
        write(n, formula);
        expect(said().replace(/ᵀ/g, "T").includes(words), `${formula}: ${said()}`);
    }
    lookInside("mistakes");
    await go("#2/f3");
    await go("#2/card");
    chooseIt(1);
    expect(field().value === "dY @ V" && /not transposed/.test(said()), "what was written is lost in this visit");
    chooseIt(0);
    field().value = "A' @";
    field().dispatchEvent(new Event("input", { bubbles: true }));
    field().focus();
    rebuild();
    expect(field().value === "A' @" && document.activeElement === field(), "another width takes what is typed, or the focus");
    chooseIt(1);
    chooseIt(0);
    expect(field().value === "A' @", "another line takes what is typed");
    await go("#2/card&keys=2&size=2&rule=softmax");
    write(1, "dY @ V");
    expect(/This is dY times V/.test(said()) && !/size/.test(said()), `square tables: ${said()}`);
    write(2, "A * dA");
    expect(/without the sum/.test(said()), "a planted rule makes a card's line right");
    await go("#5/card");
    write(2, "dG");
    expect(/right for these numbers, but not for all/.test(said()), `right by chance: ${said()}`);
    Object.assign(Storage.prototype, { getItem, setItem });
    isStoreRefused = false;
}

async function beRefused() {
    await go("#2/card");
    expect(lines().length === 6 && openLines().every(each => each.disabled) && !field().getClientRects().length && $("#words").textContent.includes(WALK.refused), `without the library: ${$("#words").textContent}`);
    lookWide();
}

begin(async () => {
    if (WALK.refused) return beRefused();
    for (const name of WALK.lessons) {
        await go(`#${name}`);
        await writeCard(name);
    }
    if (WALK.lessons.includes("5")) await writeOthers();
});
