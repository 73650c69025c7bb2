/* common.js - what all scripts share that tests/page/test appends to a copy of a page: a report, keys, addresses. */
const report = { cells: {}, checks: [], failures: [], steps: {}, exercises: [], wide: [], motion: 0, flights: 0, terms: 0 };
const fail = text => report.failures.length < 20 && report.failures.push(text);
const expect = (right, text) => right || fail(text);
const $ = selector => document.querySelector(selector), all = selector => [...document.querySelectorAll(selector)];
const wait = (ms = 1) => new Promise(done => setTimeout(done, ms));
const press = (key, target = document.body) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const where = () => location.hash;
const go = async hash => {
    location.hash = hash;
    await wait();
    await wait();
};

/* A reader's first visit: nothing was answered or written. */
function forgetKept() {
    localStorage.clear();
    onStore({ key: null });
}

/* Another visit: what the page remembers is what the store has. */
const comeAgain = () => onStore({ key: null });

/* Lines of algebra, each with its reason. */
function lookAlgebra(box, lines) {
    const said = text => el("p", {}, prose(text)).textContent, bare = text => text.replace(/\s/g, "");
    const texts = [...box.querySelectorAll(".why")].map(why => why.textContent), pieces = [...box.children].filter(each => each.className !== "why");
    expect(texts.join() === lines.filter(({ why }) => why).map(({ why }) => said(why)).join(), `${where()}: the reasons are ${texts}`);
    const shown = pieces.map(each => each.textContent).join(""), wanted = lines.map(({ line }) => said(line.replace(/[<>[\]]/g, ""))).join("");
    expect(bare(shown) === bare(wanted), `${where()}: the lines are ${shown}`);
}

/* On to the rule of a step that begins with a nudge. */
function toRule() {
    for (let looks = 0; looks < 3 && $("#step .nudged"); looks++) press("ArrowRight");
}

/* Nothing is wider than the page. */
function lookWide() {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) report.wide.push(`${where()}: ${scrollWidth} > ${clientWidth}`);
    const tabs = all("#tabs > *").filter(each => each.getClientRects().length).pop()?.getBoundingClientRect(), tools = $("header .tools").getBoundingClientRect();
    if (tabs?.right > tools.left + 1) report.wide.push(`${where()}: the tabs end at ${tabs.right.toFixed(0)}, under the tools`);
    for (const each of all("#step .items .grid:not(.wide), #step .rule > *, #terms > *, #words > *, .nudged td, .derive")) {
        const { right } = each.getBoundingClientRect(), panels = each.closest(".panels"), isCut = panels && panels.scrollWidth > panels.clientWidth;
        if (right > innerWidth + 1 && !isCut) report.wide.push(`${where()}: ${each.className || each.tagName} ends at ${right.toFixed(0)}`);
    }
}

/* What moves is at its end. */
const settleMotion = () => document.getAnimations().forEach(each => (each.effect.getTiming().iterations === Infinity ? each.cancel() : each.finish()));

/* No number is cut off, no row of a small table, and in a wide window no step; tables of a recording may be too large for that. */
function lookFit(isRecording) {
    for (const cell of all("#step .c"))
        expect(cell.scrollWidth <= cell.clientWidth + 1, `${where()} ${cell.closest(".tab")?.dataset.shows}: ${cell.textContent} does not fit`);
    for (const panels of all("#step .panels"))
        expect(isPresenting() || panels.scrollHeight <= panels.clientHeight + 1 || panels.querySelector(".grid").querySelectorAll('[role="row"]').length > 8,
            `${where()}: rows of a small table are cut off`);
    if (isRecording || innerWidth < 1100 || innerHeight < 720 || !$("#terms, .nudged") || !$("#panel").hidden) return;
    const bottom = Math.max(...all("#step .items, #terms > *, .nudged > *, .legend").map(each => each.getBoundingClientRect().bottom)) + scrollY;
    expect(bottom <= innerHeight, `${where()}: the step ends at ${bottom.toFixed(0)} of ${innerHeight}`);
}

/* Runs the walk, and gives the report to page-test. */
async function begin(walk) {
    try {
        await Live.load();
        await wait();
        await walk();
        report.requests = performance.getEntriesByType("resource").map(entry => entry.name);
        const style = getComputedStyle(document.body);
        report.colours = [style.backgroundColor, style.color];
    } catch (error) {
        fail(`the walk stopped: ${error} ${error.stack}`); /* in Firefox the stack has no message */
    }
    report.console = window.pageErrors;
    parent.postMessage(JSON.stringify(report), "*");
}
