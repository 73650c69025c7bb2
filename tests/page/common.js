/* common.js - what all scripts share that tests/page/test appends to a copy of a page: a report, keys, addresses. */
const report = { cells: {}, pending: 0, terms: {}, badges: [], failures: [], steps: {}, exercises: [], wide: [], motion: 0 };
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

/* Nothing is wider than the page. */
function lookWide() {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) report.wide.push(`${where()}: ${scrollWidth} > ${clientWidth}`);
}

/* No number is cut off. */
function lookFit() {
    const edge = $("#stage").getBoundingClientRect().right;
    for (const cell of all("#stage [data-i]")) {
        const fits = cell.scrollWidth <= cell.clientWidth + 1 && cell.getBoundingClientRect().right <= edge + 1;
        expect(fits, `${where()} ${cell.closest(".view").dataset.shows}: ${cell.textContent} does not fit`);
    }
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
