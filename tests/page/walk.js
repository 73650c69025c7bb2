/* walk.js - what tests/page/test appends to a copy of a page, behind common.js: it walks through the page with keys
 * and clicks, as a reader does, and reports what it saw. It judges nothing that page-test can judge from the data.
 * WALK, written above it, says what to do: see page-test. */
const rule = () => $("#door h2")?.textContent || $("#step h1").textContent;

/* The text of every cell that is shown, with the power of ten above its table. */
function look(lesson) {
    const moving = document.getAnimations();
    report.motion = Math.max(report.motion, moving.length);
    report.flights = Math.max(report.flights, moving.filter(each => each.constructor === Animation).length); /* of tables and cells, by the script */
    settleMotion();
    lookWide();
    lookFit();
    for (const tab of all("#step .tab")) {
        const { shows } = tab.dataset, power = tab.querySelector(".ten")?.textContent || "", seen = shows && (report.cells[lesson + " " + shows] ||= {});
        for (const cell of tab.querySelectorAll(".c")) {
            const words = cell.getAttribute("aria-label"), text = cell.textContent;
            expect(words.includes(text === "?" ? "to be found" : text), `${where()} ${shows}: ${text} has the words ${words}`);
            if (seen && text !== "?") seen[cell.dataset.i] = [text, power];
        }
    }
    for (const tick of all("#door .tick")) report.checks.push([tick.classList.contains("right"), tick.title]);
    expect($("#announce").textContent.length > 10, where() + ": nothing is announced");
    expect(all(".node").filter(node => node.tabIndex === 0).length === 1, where() + ": Tab reaches not one table of the picture");
    for (const grid of all("#step .grid"))
        expect([...grid.querySelectorAll(".c")].filter(cell => cell.tabIndex === 0).length === 1, where() + ": Tab reaches not one cell of a grid");
    for (const control of all("button, a[href], input, select, summary")) if (control.getClientRects().length) {
        const name = control.getAttribute("aria-label") || control.textContent.trim() || control.labels?.[0]?.textContent.trim() || control.title;
        expect(name, `${where()}: ${control.outerHTML.slice(0, 80)} has no name`);
        const { width, height } = control.getBoundingClientRect(), inText = control.matches("a, .head a") || control.closest("label");
        if (!inText) expect(width >= 23.5 && height >= 23.5, `${where()}: ${name} is ${width.toFixed(0)} by ${height.toFixed(0)} pixels`);
    }
}

/* Calls see for all panels, of which one is shown at a time, and for all rows on a phone. */
function turnPages(see) {
    const groups = [".heads:not(.rows, .looks)", ".heads.rows"]; /* the looks at a step are stepped through */
    for (const group of groups) all(group + " button")[0]?.click();
    see();
    for (const group of groups) for (let n = 1; n < all(group + " button").length; n++) {
        all(group + " button")[n].click();
        see();
    }
}

/* Printed arithmetic, 0.508 × (6.42 − 4.01) + 1.2·10⁻³, as a number; NaN if it is no arithmetic. */
function evaluate(text) {
    const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹", plainText = text.replace(/·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)/g, (_, power) =>
        "e" + power.replace("⁻", "-").replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹]/g, c => digits.indexOf(c))).replace(/−/g, "-").replace(/×|·/g, "*")
        .replace(/²/g, "**2").replace(/^(-[\d.]+)\*\*2/, "($1)**2").replace(/max|exp|cos|sin/g, "Math.$&").trim();
    if (!/^[-+*/().,\d\se]*$/.test(plainText.replace(/Math\.(max|exp|cos|sin)/g, ""))) return NaN;
    try {
        return Number(new Function("return " + plainText)());
    } catch {
        return NaN;
    }
}

/* The line of terms of each number that the step computes gives that number, as it is printed. */
function readTerms() {
    for (const cell of all("#step .tab.main .c").slice(0, 12)) {
        if (!cell.isConnected) continue;
        cell.click();
        const { key } = cell.dataset, chosen = $(`#step .tab.main .c[data-key="${key}"]`);
        expect(chosen?.classList.contains("chosen"), `${where()}: a click does not choose ${key}`);
        lookSources();
        const mean = $("#terms .mean"); /* softmax has a second line */
        mean?.remove();
        readLine(cell, $("#terms").textContent);
        if (mean) readLine(cell, mean.textContent);
    }
    press("Escape");
    press("Escape");
}

/* Of each table that scrolls in itself the first number that is used is in view. */
function lookSources() {
    for (const grid of all("#step .grid")) {
        const source = grid.querySelector(".source")?.getBoundingClientRect(), { left, right } = grid.getBoundingClientRect();
        if (source) expect(source.left >= left - 1 && source.right <= right + 1, `${where()}: a number that is used is out of view`);
    }
}

/* Whoever works out the printed numbers gets the printed result. */
function readLine(cell, line) {
    const [, made, sum] = /^[^=]*? = (.*) = (\S+)( because.*)?$/.exec(line.replace(/ {2,}/g, " ")) || [];
    const [, moved] = /^[^=]*? = (\S+), moved( back)?$/.exec(line) || [];
    if (moved && !$("#step .tab.main .ten")) expect(moved === cell.textContent, `${where()}: ${line} is in its cell ${cell.textContent}`);
    const value = made && evaluate(made), wanted = sum && evaluate(sum);
    if (!Number.isFinite(value) || !Number.isFinite(wanted)) return;
    const [, decimals = "", power = ""] = /(?:\.(\d+))?(·10\S+)?$/.exec(sum), half = 0.5 * 10 ** -decimals.length * evaluate("1" + power);
    expect(Math.abs(value - wanted) <= 1.000001 * half, `${where()}: ${line} is ${value}`);
    report.terms++;
}

/* A question hides the table, or the terms, that it asks about, until it is answered or revealed. */
function reveal() {
    const form = $("form.zeros, form.count"), isZeros = form?.matches(".zeros"), cells = () => all("#step .tab:is(.main, .small) .c");
    const isHidden = () => (isZeros ? cells().every(cell => cell.textContent === "?") : !$("#terms .fac"));
    if (!form || form.querySelector(".result").textContent) return;
    expect(isHidden(), where() + ": the answer to the question is shown");
    for (const fold of all("details.others")) fold.open = true;
    for (const name of ["hint", "reveal"]) [...form.querySelectorAll("button")].find(each => each.textContent === name).click();
    expect(!isHidden(), where() + ": nothing is shown after the reveal");
}

/* Forward and backward by key; returns the names of the steps. The browser gets its turn at each step, as it does between
 * the keys of a reader: what a step no longer shows is only then let go, and keeps the next one waiting until it is. */
async function stepThrough(number) {
    const names = [];
    press("Home");
    for (let before = null; before !== where();) {
        const [name] = /^\w+(\.\d+)?/.exec(where().split("&")[0].split("/")[1] || "0");
        if (names[names.length - 1] !== name) names.push(name); /* and not another look at the same step */
        reveal();
        turnPages(() => look(number));
        before = where();
        press("Escape");
        before = where();
        press("ArrowRight");
        await wait(0);
    }
    return names;
}

async function walk({ number, ids, chosen, key, isLong }) {
    await walkKeys(number, key, isLong);
    const folded = await stepThrough(number);
    for (let n = 1; n < folded.length; n++) press("ArrowLeft");
    expect(/\/0$|^#?\w*$/.test(where()), "the keys back end at " + where());
    press("End");
    expect(/^\w+(\.\d+)?/.exec(where().split("/")[1])[0] === folded[folded.length - 1], "End leads to " + where());
    for (let opener; (opener = all(".opener").find(each => each.textContent !== "fold"));) opener.click();
    const open = await stepThrough(number);
    report.steps[number] = open.length;
    expect(open.join() === ids.join(), `lesson ${number}: the steps are ${open}, and not ${ids}`);
    if (!WALK.terms) return;
    for (let n = open.length; n > 1; n--, press("ArrowLeft")) {
        turnPages(readTerms);
        await wait(0);
    }
    await deepLink(number, open, chosen);
    await keysInGrid(number, chosen);
    await predict(number, open);
    await saves(`#${number}/${chosen.id}/${chosen.key}`);
}

/* The numbers of the key steps that the data name. */
const keysWanted = key => {
    const ends = state.lesson.steps.flatMap(({ unit }, n) => (unit ? [] : n)); /* the cover, and what follows backward */
    return [...new Set([...ends, ...key.map(id => stepOf(state.lesson, id)), state.lesson.steps.findLastIndex(({ unit }) => unit)])].sort((a, b) => a - b);
};

/* A long lesson begins with its key steps, another one with all; k leads from one to the other. */
async function walkKeys(number, key, isLong) {
    await go(`#${number}`);
    const { steps } = state.lesson, wanted = keysWanted(key), some = wanted.length - 1, count = steps.length - 1, button = () => $("#skip");
    expect(state.keys === isLong, `lesson ${number} begins with ${button()}`);
    expect(!isLong || $("#step .length").textContent.startsWith(`${some} steps`) && $("#step .length").textContent.endsWith(`; all ${count}`), `the cover says ${$("#step .length").textContent}`);
    if (!isLong) press("k");
    expect(some === count || (button().getAttribute("aria-pressed") === "true" && all("#scrub .beside").length === count - some), `lesson ${number}: the button says ${button().outerHTML}`);
    const said = [], counted = [];
    for (const n of wanted.slice(1)) {
        press("ArrowRight");
        said.push(Number($("#words .skipped")?.textContent.split(" ")[0] || 0));
        expect(state.step === n, `lesson ${number}: the arrow leads to step ${state.step}, and not to ${n}`);
        counted.push($("#count").textContent);
        const { as, kind } = stepNow(), known = as && lessons.some(each => as.startsWith(each.name + "/"));
        expect(!known || isNudging() || !!$("#words .known a"), `${where()}, ${kind}: it is not said that its rule is known`);
        const from = [...new Set(all("#words .skipped a").map(each => each.hash.slice(1).split("/")[0]))], told = /known from lessons? ([^:]*):/.exec($("#words .skipped")?.textContent);
        expect(from.every(each => told?.[1].split(/, | and /).includes(each)), `${where()}: the skipped steps lead to ${from}, and the words say ${$("#words .skipped")?.textContent}`);
        report.links = (report.links || 0) + all("#words .skipped a").length;
    }
    for (const way of ["forward", "backward"]) { /* what is counted is what a reader goes through */
        const on = counted.filter(text => text.startsWith(way));
        expect(on.every((text, m) => text === `${way} ${m + 1} of ${on.length}`), `lesson ${number}: ${on}`);
    }
    for (const step of steps.filter(({ as }) => as)) { /* a link where the page has the lesson, and a step of it */
        const [name, id] = step.as.split("/"), found = lessons.find(each => each.name === name), link = linkToKnown(step, "x");
        expect(found ? link.hash === `#${step.as}` && stepOf(found, id) >= 0 : link === "x", `lesson ${number}, ${step.id}: as ${step.as} leads to ${link}`);
    }
    expect(said.every((each, n) => each === wanted[n + 1] - wanted[n] - 1), `lesson ${number}: it says that ${said} steps were skipped`);
    const passed = steps.findIndex(each => !each.key);
    await go(`#${number}/${(steps[passed] || steps[0]).id}`);
    expect(passed < 0 || (!state.keys && button().getAttribute("aria-pressed") === "false" && state.step === passed), where() + ": a link to a step that is skipped does not show all");
    if (state.keys) press("k");
    await go(`#${number}`);
}

async function deepLink(number, open, { id, key, counted }) {
    const link = `#${number}/${id}/${key}`;
    await go(link);
    const seen = $("#step").textContent;
    expect($(".chosen") && $(".chosen").dataset.key === key, link + ": the cell is not chosen");
    await go(`#${number}/0`);
    expect($("#step").textContent !== seen, "the cover looks like " + link);
    await go(link);
    expect($("#step").textContent === seen && where() === link, link + " does not lead back");
    for (const old of [`#lesson=${number}&step=${counted}&cell=${key}`, `#${number}/${counted}`]) {
        await go(old);
        expect(where().startsWith(`#${number}/${id}`), `${old} leads to ${where()}, and not to ${id}`);
    }
    await go(`#${number}/zzz/g9999.1`);
    expect(where() === `#${number}/0` && $("#notice").textContent.includes("no step “zzz”"), "a wrong address leads to " + where());
    await go(`#${number}/f0&nonsense=3`);
    expect($("#notice").textContent.includes("nonsense"), "a word that means nothing is not named");
    await go(`#${number}/${id}&present`);
    expect(isPresenting() && state.hide && where() === `#${number}/${id}&present`, where() + " does not present");
    $("#exit").click();
    expect(!isPresenting() && where() === `#${number}/${id}&hide`, where() + ": the presentation does not end");
    press("h");
    const program = $(".opens"), isOpen = () => $("#program").getClientRects().length > 0 && $("#program").textContent.length > 10;
    program.click();
    expect(isOpen() && program.getAttribute("aria-expanded") === "true", where() + ": the program does not open");
    lookWide();
    program.click();
    expect(!isOpen(), where() + ": the program does not close");
    await go("#9999/f3");
    expect($("#notice").textContent.includes("no lesson 9999"), "a link to a lesson that is not there leads to " + where());
    await go(`#${number}`);
    press("End");
    expect($("#end").textContent.includes("The end"), "nothing is said at the end of the lesson");
    press("ArrowRight");
    const onward = $("#end a"), { bottom } = onward ? onward.getBoundingClientRect() : {};
    expect(!onward || (document.activeElement === onward && (innerWidth < 1100 || bottom <= innerHeight)), where() + ": the right arrow does not lead to what comes next");
}

/* Tab reaches one cell of each grid; the arrows move inside it and do not step. */
async function keysInGrid(number, { id, key }) {
    await go(`#${number}/${id}/${key}`);
    const grid = $(".chosen").closest(".grid"), first = grid.querySelector(".c");
    first.focus();
    press("Enter", first);
    press("ArrowRight", document.activeElement);
    press("ArrowDown", document.activeElement);
    expect(document.activeElement.closest(".grid") && document.activeElement.classList.contains("chosen"), where() + ": the arrows leave the grid");
    expect(where().startsWith(`#${number}/${id}`), where() + ": an arrow in a grid makes a step");
    press("Escape", document.activeElement);
    expect(document.activeElement === $("#step"), where() + ": Esc loses the focus");
    press("ArrowLeft", document.activeElement);
    expect(!where().startsWith(`#${number}/${id}`), where() + ": the arrows do not step after Esc");
    press("ArrowRight", document.activeElement);
    const again = $("#step .c"); /* of several panels, the one that is shown may not have that key */
    expect(!again.dispatchEvent(new MouseEvent("mousedown", { bubbles: true, cancelable: true })), where() + ": a click takes the focus from the steps");
    const node = $('.node[tabindex="0"]');
    node.focus();
    press(node === all(".node")[0] ? "ArrowDown" : "ArrowUp", node);
    expect(document.activeElement.matches(".node") && document.activeElement !== node, "the arrows do not move in the picture");
    press("ArrowLeft", document.activeElement);
    expect(!where().startsWith(`#${number}/${id}`), "a table of the picture keeps the arrows");
    for (const box of all("header button, #bar button:enabled, #tabs a")) {
        await go(`#${number}/f0`);
        box.focus();
        press("ArrowRight", box);
        expect(!where().startsWith(`#${number}/f0`), `${box.textContent || box.id} keeps the arrows`);
    }
    press("?");
    expect($("#help").open, "? opens no help");
    $("#help").close();
}

/* A hidden number stands nowhere: not in cells, titles, words or the picture. */
async function predict(number, open) {
    await go(`#${number}`);
    press("h");
    for (let n = 1; n < open.length; n++) {
        press("ArrowRight");
        await wait(0);
        toRule();
        const cells = all("#step .tab.main .c"), { kind, unit } = stepNow(), words = $("#words .text").textContent;
        if (kind === "start" || !unit) continue;
        expect(cells.every(cell => cell.textContent === "?" && !cell.title && cell.getAttribute("aria-label").endsWith("to be found")), where() + ": a number is not hidden");
        expect(!$("#terms output") && !$("#terms .fac"), where() + ": the line of terms tells it");
        expect(words.startsWith(isRuleHidden(stepNow()) ? "Forward, this line was" : "Predict first"), where() + ": the words of the step are there: " + words);
        const node = $(".node.current");
        expect(!node || node.matches(".secret-v, .secret-g"), where() + ": the picture shows it");
    }
    while (!stepNow().unit) press("ArrowLeft"); /* what follows backward computes no table */
    const guess = $("#terms .guess input");
    if (guess) {
        guess.value = "abc";
        guess.form.requestSubmit();
        expect($("#terms .said").textContent.includes("no number"), "a guess that is no number is only wrong");
        [...guess.form.querySelectorAll("button")].find(button => /reveal all|show it/.test(button.textContent)).click();
        expect(all("#step .tab.main .c").every(cell => cell.textContent !== "?"), where() + ": a number stays hidden");
    }
    press("h");
}

/* The texts and the tables of "save this step as SVG"; the link to the file is not followed. */
function saved() {
    const { prototype } = HTMLAnchorElement, { click } = prototype;
    let href = "";
    $("#b-share").click();
    prototype.click = function () { ({ href } = this); };
    all("#panel button").find(each => each.textContent.includes("SVG")).click();
    prototype.click = click;
    press("Escape");
    const picture = new DOMParser().parseFromString(decodeURIComponent(href.slice(href.indexOf(",") + 1)), "image/svg+xml");
    expect(picture.documentElement.localName === "svg", where() + ": the picture is no SVG");
    expect(/^@media\(prefers-color-scheme:(dark|light)\){\.c/.test(picture.querySelector("style")?.textContent), where() + ": the picture has one set of colours");
    return { texts: [...picture.querySelectorAll("text")].map(each => each.textContent),
        tables: picture.querySelectorAll("g > rect:first-child").length };
}

/* A saved step has the numbers, the tape and the words of the step, and nothing that is hidden. */
async function saves(link) {
    await go(link);
    const isSeen = each => getComputedStyle(each).opacity !== "0" && each.getClientRects().length > 0,
        cells = all("#step .c").map(cell => cell.textContent), look = () => {
            settleMotion();
            return all("#picture canvas").filter(isSeen).length;
        };
    const { texts, tables } = saved(), words = all("#words .text")[0].textContent;
    for (const text of [...cells, plain(picture.main.t.symbol)]) expect(texts.includes(text), `${link}: the picture has no ${text}`);
    expect(texts.join(" ").replace(/\s/g, "").includes(words.slice(-20).replace(/\s/g, "")), link + ": the picture has no words");
    expect(tables === look(), `${link}: the picture has ${tables} of ${look()} small tables`);
    press("h");
    const hidden = saved(), asked = all("#step .c").filter(cell => cell.textContent === "?").length;
    expect(asked > 0 && hidden.texts.filter(text => text === "?").length === asked + 1 + isRuleHidden(stepNow()) && hidden.tables === look(), link + ": the picture shows what is hidden");
    press("h");
}

/* Chooses these cells of the table that the step computes, the first one by a key; no others. */
function pickCells(wanted) {
    turnPages(() => {
        for (const { i } of all("#step .tab.main .c").map(cell => cell.dataset)) {
            const cell = () => $(`#step .tab.main .c[data-i="${i}"]`), isPicked = cell().textContent === "0";
            if (isPicked === wanted.includes(Number(i))) continue;
            if (i === "0") press("Enter", cell());
            else cell().click();
            expect(cell().getAttribute("aria-label").endsWith(isPicked ? "to be found" : "you say 0"), `${where()}: a click does not choose the cell ${i}`);
        }
    });
}

/* An exercise: wrong, hint, right. The answers come from page-test. */
async function answer(number, { kind, right, wrong, id }, n) {
    forgetKept(); /* what the walk has revealed */
    state.lesson.forms.length = 0;
    await go(`#${number}/f0`);
    await go(`#${number}/${id}`);
    toRule();
    for (const fold of all("details.others")) fold.open = true;
    const form = $(`form[aria-label="Question ${n + 1}"]`);
    if (!form) return [kind, "not at " + id];
    const pick = value => {
        if (kind === "choice") form.querySelectorAll("input")[value].checked = true;
        else if (kind === "zeros") pickCells(value);
        else form.querySelector("input").value = value;
        form.querySelector("[data-check]").click();
    };
    const marked = () => (form.querySelector(".result .right") ? "right" : form.querySelector(".result .wrong") ? "wrong" : "nothing");
    const result = () => form.querySelector(".result").textContent, seen = [];
    const button = text => [...form.querySelectorAll("button")].find(each => each.textContent === text);
    button("check").click();
    seen.push(marked());
    if (kind === "number" || kind === "count") {
        expect(result().includes("Enter a number"), kind + ": an empty answer is only wrong");
        pick("abc");
        expect(result().includes("no number"), kind + ": abc is only wrong");
    }
    for (const { value, why } of state.lesson.questions[n].wrong || []) {
        pick(kind === "count" ? String(value) : value.toFixed(3));
        expect(marked() === "wrong" && result().replace(/\s/g, "").includes(el("p", {}, prose(why)).textContent.replace(/\s/g, "")), `${where()}, question ${n + 1}: ${value} says ${result()}`);
    }
    pick(wrong);
    seen.push(marked());
    button("hint").click();
    expect(result().length > 12, kind + ": no hint");
    expect(!button("reveal").hidden, kind + ": no reveal after a hint");
    pick(right);
    seen.push(marked());
    const asked = keyAsked(state.lesson.questions[n]);
    if (kind === "number" && cellAt(asked)) expect(cellAt(asked).classList.contains("chosen") && !$("#terms").textContent.includes("?"),
        `${where()}: the answer is not worked out under the tables`);
    const cell = kind === "number" && $(`#step .c[data-key="${asked}"]`);
    if (cell && cell.textContent !== "0" && !cell.closest(".tab").querySelector(".ten")) {
        pick(cell.textContent);
        expect(marked() === "right", `${where()}: ${cell.textContent}, as the table shows it, is marked ${marked()}`);
    }
    window.dispatchEvent(new Event("resize"));
    await wait(150);
    expect(result().length > 1 && form.isConnected, kind + ": an answer vanishes when the window changes");
    return [kind, ...seen];
}

/* In present mode the rule, the worked number, the words and the open question of each step stand on the screen. */
async function presents({ number, key }) {
    await go(`#${number}/0&present`);
    const steps = state.lesson.steps.length, shown = selector => all(selector).filter(each => each.getClientRects().length);
    const look = () => {
        settleMotion();
        const ends = shown(".cover .go, .bet, #step .rule, #step .items, .nudged > *, #terms > *, #words > .text, #questions > .question")
            .map(each => each.getBoundingClientRect().bottom + scrollY);
        expect(Math.max(...ends) <= innerHeight, `${where()}: the step ends at ${Math.max(...ends).toFixed(0)} of ${innerHeight}`);
        lookWide();
        const [table, words] = ["#step .nudge", "#words"].map(selector => $(selector)?.getBoundingClientRect());
        expect(!table || table.right <= words.left || table.bottom <= words.top, `${where()}: the table of a nudge lies on the words`);
    };
    for (let presses = 0; state.step < steps - 1 && presses < 2 * steps; presses++) { /* a step has several looks */
        look();
        while ($("#step .nudged")) {
            press("ArrowRight");
            look();
        }
        if (presentsReveal()) look();
        if (presentsAnswers()) look();
        press("ArrowRight");
        await wait(0);
    }
    look();
    expect(state.step === steps - 1, where() + ": the keys do not lead through the presentation");
    const isTape = () => $("#machine").getClientRects().length > 0, was = isTape();
    press("t");
    expect(isTape() !== was, where() + ": the tape cannot be shown or hidden");
    press("t");
    expect(isTape() === was, where() + ": the tape cannot be shown or hidden again");
    state.tape = null;
    await presentsKeys(number, key);
}

/* A clicker shows what a step hides before it leads on; true if there was anything. A step that was shown stays so. */
function presentsReveal() {
    const isHidden = () => all("#step .tab.main .c").some(cell => cell.textContent === "?"), n = state.step;
    const isMissing = () => isHidden() || /^(Predict first|Forward, this line was)/.test($("#words > .text").textContent);
    if (!isHidden()) return false;
    press("PageDown");
    expect(state.step === n && !isMissing(), where() + ": the first press of a clicker does not show the numbers");
    const asked = questionsNow().find(({ question }) => question.kind === "number");
    expect(!asked || cellAt(keyAsked(asked.question))?.classList.contains("chosen"), where() + ": another number is worked out than the question asks for");
    for (let looks = 0; looks < 4 && state.step === n; looks++) press("PageUp");
    expect(state.step === n - 1, where() + ": a clicker does not lead back");
    goTo(n);
    expect(!isMissing(), where() + ": what was shown is hidden again");
    return true;
}

/* Nor before a question is answered, with its reason. */
function presentsAnswers() {
    const n = state.step, results = () => all("#questions .result").map(each => each.textContent), isOpen = results().includes("");
    if (isOpen) press("PageDown");
    expect(state.step === n && results().every(text => text.length > 1), `${where()}: a clicker leads past a question: ${results()}`);
    return isOpen;
}

/* The key steps alone: those that the data name. */
async function presentsKeys(number, key) {
    const wanted = keysWanted(key);
    await go(`#${number}/0&present`);
    press("k");
    expect(where() === `#${number}/0&present=key`, where() + " does not say that only key steps are shown");
    await go(`#${number}/f0&present`);
    await go(`#${number}/0&present=key`);
    const seen = [], last = wanted[wanted.length - 1];
    for (let before = -1; before !== state.step;) {
        seen.push(before = state.step);
        for (let presses = 0; presses < 3 && state.step === before && before < last; presses++) press("ArrowRight");
    }
    expect(seen.join() === wanted.join(), `lesson ${number}: the key steps are ${seen}, and not ${wanted}`);
    expect(seen.length > 3 && seen.length < state.lesson.steps.length, `lesson ${number} has ${seen.length} key steps`);
    press("ArrowLeft");
    expect(state.step === wanted[wanted.length - 2], where() + ": the key steps do not lead back");
    press("k");
    $("#exit").click();
}

begin(async () => {
    if (WALK.present) {
        for (const lesson of WALK.lessons) await presents(lesson);
    } else if (WALK.peek) {
        report.peek = [where(), ($(".chosen") || { dataset: {} }).dataset.key];
    } else for (const lesson of WALK.lessons) {
        await walk(lesson);
        for (const [n, question] of lesson.questions.entries()) report.exercises.push([lesson.number, n, ...await answer(lesson.number, question, n)]);
    }
    report.evil = all("#evil").length;
    report.text = WALK.names ? [...new Set(all(".node .name, figcaption b").map(name => name.textContent))] : [];
});
