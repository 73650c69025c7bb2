/* walk.js - what tests/page/test appends to a copy of a page, behind common.js: it walks through the page with keys
 * and clicks, as a reader does, and reports what it saw. It judges nothing that page-test can judge from the data.
 * WALK, written above it, says what to do: see page-test. */
/* The text of every cell that is shown. */
function look(lesson) {
    lookWide();
    lookFit();
    for (const view of all("#stage .view")) {
        const shows = view.dataset.shows, seen = (report.cells[lesson + " " + shows] ||= {});
        for (const cell of view.querySelectorAll("[data-i]")) {
            const text = cell.textContent, i = cell.dataset.i;
            if (seen[i] !== undefined && seen[i] !== text) fail(`${where()} ${shows}: element ${i} is ${text} here and ${seen[i]} elsewhere`);
            seen[i] = text;
            if (!cell.title.includes(": ") || cell.title !== cell.getAttribute("aria-label")) fail(`${where()} ${shows}: element ${i} has no words`);
        }
    }
    for (const badge of all("#stage .badge, #tape .badge")) report.badges.push([badge.classList.contains("wrong"), badge.title]);
    report.motion = Math.max(report.motion, document.getAnimations().length);
    expect($("#announce").textContent.length > 10, where() + ": nothing is announced");
    if (innerWidth >= 1100) expect(document.documentElement.scrollHeight <= innerHeight, where() + ": the page scrolls, and its columns, too");
    expect(all("#tape a").filter(a => a.tabIndex === 0).length === 1, where() + ": Tab reaches not one line of the tape");
    for (const [item, cells] of [["positive", ".pos"], ["masked", ".masked"], ["dropped", ".dropped"]]) {
        const shown = all("#legend span").find(span => span.textContent.includes(item)).hidden === false;
        expect(shown === !!$("#stage " + cells) || $("#stage .tint"), where() + ": the legend and " + item);
    }
}

/* Calls see for all panels, where they do not all fit. */
function turnPages(see) {
    const button = which => ($("#pager button:" + which) || { disabled: true });
    for (let turns = 0; !button("first-child").disabled && turns < 50; turns++) button("first-child").click();
    see();
    for (let turns = 0; !button("last-child").disabled && turns < 50; turns++) {
        button("last-child").click();
        see();
    }
}

/* The columns of all tensors with panels begin at the same places, also where views stand side by side. */
function lineUp() {
    const left = element => element.getBoundingClientRect().left;
    const lefts = all("#stage .view").map(view => [...view.querySelectorAll("table")].map(table => Math.round(left(table) - left(view))));
    const across = Number(getComputedStyle($("#stage .views")).getPropertyValue("--across"));
    expect(new Set(all("#stage .view").map(view => Math.round(left(view)))).size <= across, where() + ": views do not line up");
    const many = lefts.filter(list => list.length > 1);
    for (const list of many)
        for (let n = 0; n < Math.min(list.length, many[0].length); n++) expect(Math.abs(list[n] - many[0][n]) <= 1, where() + ": panels do not line up");
    for (const view of all("#stage .view"))
        expect(new Set([...view.querySelectorAll("table")].map(table => Math.round(table.getBoundingClientRect().top))).size <= 1, where() + ": panels wrap");
}

/* The terms of each gradient that is in view, as numbers in full. */
function readTerms(lesson) {
    for (const cell of all('#stage [data-cell^="g"]')) {
        cell.click();
        expect(cell.classList.contains("chosen") && where().endsWith("cell=" + cell.dataset.cell), where() + ": a click does not choose " + cell.dataset.cell);
        const parts = all("#why section").map(section => ({
            rule: (section.querySelector(".joined div:last-child") || {}).textContent || "",
            sum: section.querySelector("[data-sum]") && [section.querySelector("[data-sum]").dataset.sum, section.querySelector("[data-sum]").title],
            terms: [...section.querySelectorAll("[data-term]")].map(row => [row.dataset.term, ...[...row.querySelectorAll(".figure")].map(td => td.title)]),
        }));
        const known = $("#why .number output").textContent !== "\u00b7";
        expect(known === !$("#why .number").textContent.includes("not computed"), where() + ": what is not computed is no dot");
        report.terms[lesson + " " + cell.dataset.cell] ||= [parts, $("#why .number small").textContent, ($("#why .reason") || {}).textContent || ""];
        const links = all('#why a[href*="cell="]').map(a => a.getAttribute("href"));
        expect(links.length >= parts.flatMap(part => part.terms).length, where() + ": a term has no link");
    }
    press("Escape");
    expect(!$(".chosen"), where() + ": Escape does not let go");
}

async function walk({ number, last, chosen }) {
    await go(`#lesson=${number}`);
    press("Home");
    let steps = 1;
    for (let before = null; before !== where(); steps++) {
        turnPages(() => {
            look(number);
            lineUp();
        });
        before = where();
        press("ArrowRight");
        if (before === where()) break;
    }
    report.steps[number] = steps;
    expect(where().includes(`step=${last}`), `the keys end at ${where()}, not at step ${last}`);
    for (let n = 1; n < steps; n++) press("ArrowLeft");
    expect(/step=1$/.test(where()), "the keys back end at " + where());
    press("End");
    expect(where().includes(`step=${last}`), "End leads to " + where());
    if (!WALK.terms) return;
    for (let n = steps; n > 0; n--, press("ArrowLeft")) turnPages(() => readTerms(number));
    await deepLink(number, last, chosen);
    await keysInGrid(number, chosen);
}

async function deepLink(number, last, { cell, step }) {
    const link = `#lesson=${number}&step=${step}&cell=${cell}`;
    await go(link);
    const seen = $("#stage").textContent, why = $("#why").textContent;
    expect($(".chosen") && $(".chosen").dataset.cell === cell, link + ": the cell is not chosen");
    await go(`#lesson=${number}&step=1`);
    expect(!$(".chosen") && $("#stage").textContent !== seen, "the first step looks like " + link);
    await go(link);
    expect($("#stage").textContent === seen && $("#why").textContent === why && where() === link, link + " does not lead back");
    await go(`#lesson=${number}&step=99999&cell=g9999.1`);
    expect(where() === `#lesson=${number}&step=${last}`, "a wrong address leads to " + where());
    expect(!$("#notice").textContent && (!number || $("#end").textContent.includes("end of this lesson")), "nothing is said at the end of the lesson");
    await go("#lesson=9999&step=3");
    expect($("#notice").textContent.includes("no lesson 9999") && /step=1$/.test(where()), "a link to a lesson that is not there leads to " + where());
}

/* Tab reaches one cell of each grid; the arrows move inside it and do not step. */
async function keysInGrid(number, { cell, step }) {
    await go(`#lesson=${number}&step=${step}&cell=${cell}`);
    for (const view of all("#stage .view")) {
        const cells = [...view.querySelectorAll("[data-cell]")];
        expect(!cells.length || cells.filter(each => each.tabIndex === 0).length === 1, where() + ": Tab reaches not one cell of a grid");
    }
    const view = $(".chosen").closest(".view"), first = view.querySelector("[data-cell]");
    first.focus();
    press("Enter", first);
    press("ArrowRight", document.activeElement);
    press("ArrowDown", document.activeElement);
    expect(view.contains(document.activeElement) && document.activeElement.classList.contains("chosen"), where() + ": the arrows leave the grid");
    expect(where().includes(`step=${step}&`), where() + ": an arrow in a grid makes a step");
    press("Escape", document.activeElement);
    expect(document.activeElement === $("#stage") && !$(".chosen"), where() + ": Esc loses the focus or keeps the number");
    press("ArrowLeft", document.activeElement);
    expect(where().includes(`step=${step - 1}`), where() + ": the arrows do not step after Esc");
    press("ArrowRight", document.activeElement);
    const again = $(`#stage [data-cell="${cell}"]`);
    expect(!again.dispatchEvent(new MouseEvent("mousedown", { bubbles: true, cancelable: true })), where() + ": a click takes the focus from the steps");
    again.focus();
    press("Enter", again);
    const was = where();
    press("g");
    expect(where() !== was, "g changes nothing");
    press("g");
    expect(where() === was, "g does not come back");
    $("#why a, #why button").focus();
    $("#why a[href]").click();
    await wait();
    await wait();
    expect($("#why").contains(document.activeElement), "a link in the card of a number loses the focus");
    const line = $('#tape [tabindex="0"]');
    line.focus();
    press(line === all("#tape a")[0] ? "ArrowDown" : "ArrowUp", line);
    expect($("#tape").contains(document.activeElement) && document.activeElement !== line, "the arrows do not move in the tape");
    const summary = $("#stage summary");
    if (summary) summary.focus();
    if (summary) press("ArrowLeft", summary);
    expect(!summary || $("#stage").contains(document.activeElement), "a step loses the focus");
    press("?");
    expect($("#help").open, "? opens no help");
    $("#help").close();
}

/* An exercise: wrong, hint, right. The answers come from page-test. */
function answer(form, { kind, right, wrong }) {
    const pick = value => {
        if (kind === "choice") form.querySelectorAll("input")[value].checked = true;
        else if (kind === "zeros") form.querySelectorAll(".pick button").forEach((cell, i) => {
            if ((cell.getAttribute("aria-pressed") === "true") !== value.includes(i)) cell.click();
        });
        else form.querySelector("input").value = value;
        form.querySelector("[data-check]").click();
    };
    const marked = () => (form.querySelector(".result .right") ? "right" : form.querySelector(".result .wrong") ? "wrong" : "nothing");
    const seen = [];
    const button = text => [...form.querySelectorAll("button")].find(each => each.textContent === text);
    if (form.querySelector("[data-show]")) form.querySelector("[data-show]").click();
    if (kind === "number") expect(all("#stage .chosen").every(cell => cell.textContent === "?"), "the number to predict is in view");
    button("check").click();
    seen.push(marked());
    if (kind === "number" || kind === "count") expect(form.querySelector(".result").textContent.includes("Enter a number"), kind + ": an empty answer is only wrong");
    pick(wrong);
    seen.push(marked());
    button("hint").click();
    expect(form.querySelector(".result").textContent.length > 12, kind + ": no hint");
    expect(!button("reveal").hidden, kind + ": no reveal after a hint");
    pick(right);
    seen.push(marked());
    button("reveal").click();
    expect(form.querySelector(".result").textContent.length > 1, kind + ": nothing is revealed");
    expect(all("#stage .chosen").every(cell => cell.textContent !== "?"), "the number stays hidden");
    return [kind, ...seen];
}

begin(async () => {
    if (WALK.peek) {
        report.peek = [where(), ($(".chosen") || { dataset: {} }).dataset.cell];
    } else for (const lesson of WALK.lessons) {
        await walk(lesson);
        for (const [n, question] of lesson.questions.entries()) {
            await go(`#lesson=${lesson.number}&step=1`);
            report.exercises.push([lesson.number, n, ...answer(all(".question")[n], question)]);
            await wait();
        }
    }
    report.evil = all("#evil").length;
    report.text = WALK.names ? [...new Set(all("#tape span, figcaption span").map(span => span.textContent))] : [];
});
